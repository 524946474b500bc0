//! `baton status`: the store, the venture, its active sessions and lost hook reports.

use baton_app::observation::WorkerHealth;
use baton_app::session::ListSessions;
use serde_json::json;

use crate::backend::Backend;
use crate::cli::VERSION;
use crate::config::Config;
use crate::hooks::{CaptureFailures, LastCaptured};
use crate::output::{Answer, Failure, warn};
use crate::verbs::pause::CaptureState;

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let capture_failure = CaptureFailures::of(&config.data_dir).read();
    let backend = Backend::open(config).inspect_err(|_| {
        if let Some(failure) = &capture_failure {
            warn(&failure.describe());
        }
    })?;
    let venture = &config.venture;
    let (output, _) = backend.call::<ListSessions>(&json!({ "venture": venture, "limit": 200 }), None)?;
    let place = match (&config.server, &config.database_url) {
        (Some(url), _) => format!("server {url}"),
        (None, Some(_)) => "PostgreSQL".to_owned(),
        (None, None) => config.data_dir.join("baton.db").display().to_string(),
    };
    let count = output.sessions.len();
    let more = if output.pagination.next_cursor.is_some() { "+" } else { "" };
    let mut lines = vec![
        format!("baton {VERSION}"),
        format!("store    {place}"),
        format!("venture  {venture}"),
        format!("active   {count}{more} session{}", if count == 1 { "" } else { "s" }),
    ];
    lines.extend(
        output
            .sessions
            .iter()
            .take(10)
            .map(|session| format!("  {}  {} in {}", session.id, session.agent, session.repo)),
    );
    // A token without access to all ventures cannot read the usage.
    let health = backend.call::<WorkerHealth>(&json!({}), None).ok().map(|(health, _)| health);
    for day in health.iter().flat_map(|health| &health.cost_by_day) {
        lines.push(format!("cost     {}: ${:.4}, {} tokens", day.day, day.cost_usd, day.tokens));
    }
    for session in health.iter().flat_map(|health| &health.cost_by_session) {
        lines.push(format!(
            "cost     {}: ${:.4}, {} tokens",
            session.session_id, session.cost_usd, session.tokens
        ));
    }
    let capture = CaptureState::of(config);
    if capture != CaptureState::On {
        lines.push(format!("capture  {}", capture.describe()));
    }
    let captured = LastCaptured::of(&config.data_dir).read();
    lines.extend(captured.iter().map(|(client, at)| format!("captured {client}, last {at}")));
    lines.extend(capture_failure.as_ref().map(|failure| format!("capture  {}", failure.describe())));
    let data = json!({
        "version": VERSION, "store": place, "venture": venture, "active_sessions": output.sessions,
        "cost_by_day": health.as_ref().map(|health| &health.cost_by_day),
        "cost_by_session": health.as_ref().map(|health| &health.cost_by_session),
        "capture": capture, "capture_failure": capture_failure, "last_captured": captured,
    });
    Ok(Answer::new(data, lines.join("\n")))
}
