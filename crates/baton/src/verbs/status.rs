//! `baton status`, and `baton` without a verb: the store, the venture, its active sessions, lost hook reports, and the next
//! useful command.

use baton_app::observation::WorkerHealth;
use serde_json::json;

use crate::VERSION;
use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::hooks::{CaptureFailures, LastCaptured};
use crate::live_session::live_sessions;
use crate::output::{Answer, Failure, warn};
use crate::setup::Records;
use crate::terminal::{when, wrap};
use crate::verbs::pause::CaptureState;

/// Width of the labels before the values.
const LABEL_WIDTH: usize = "venture  ".len();

/// Shows the state. A store that does not exist is not created.
pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let database = DataDir::at(&config.data_dir).database();
    if config.server.is_none()
        && config.database_url.is_none()
        && matches!(config.data_dir.try_exists(), Ok(false))
    {
        let next = ("baton setup", "connect your coding agents");
        let text = format!(
            "baton {VERSION}\nstore    {}, not created yet\nventure  {}\n{}",
            database.display(),
            config.venture,
            describe_next(next)
        );
        let data = json!({
            "version": VERSION, "store": database, "venture": config.venture, "active_sessions": [],
            "cost_by_day": null, "cost_by_session": null, "capture": CaptureState::of(config),
            "capture_failure": null, "last_captured": {}, "next": next.0,
        });
        return Answer::new(&data, wrap(&text, LABEL_WIDTH));
    }
    let capture_failure = CaptureFailures::of(&config.data_dir).read();
    let backend = Backend::open(config).inspect_err(|_| {
        if let Some(failure) = &capture_failure {
            warn(&failure.describe());
        }
    })?;
    // A server uses the venture of the token or its own default, unless one is configured here.
    let venture =
        if config.server.is_some() { config.chosen_venture(None) } else { Some(config.venture.to_string()) };
    let output = live_sessions(None, None, config, &backend)?;
    let store = match (&config.server, &config.database_url) {
        (Some(url), _) => format!("server {url}"),
        (None, Some(_)) => "PostgreSQL".to_owned(),
        (None, None) => config.data_dir.join("baton.db").display().to_string(),
    };
    let count = output.sessions.len();
    let more = if output.pagination.next_cursor.is_some() { "+" } else { "" };
    let mut lines = vec![
        format!("baton {VERSION}"),
        format!("store    {store}"),
        format!("venture  {}", venture.as_deref().unwrap_or("default of the server")),
        format!("active   {count}{more} session{}", if count == 1 { "" } else { "s" }),
    ];
    lines.extend(output.sessions.iter().take(10).map(|session| {
        let heartbeat = when(session.last_heartbeat_at);
        let (agent, repo) = (&session.agent, &session.repo);
        wrap(&format!("  {}  {agent} in {repo}, last heartbeat {heartbeat}", session.id), 4)
    }));
    // A token without access to all ventures cannot read the usage.
    let health = backend.call::<WorkerHealth>(&WorkerHealth {}, None).ok();
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
    lines.extend(captured.iter().map(|(client, at)| format!("captured {client}, last {}", when(*at))));
    lines.extend(capture_failure.as_ref().map(|failure| format!("capture  {}", failure.describe())));
    let errors = health.as_ref().map_or(0, |health| health.errors);
    let next = if let Some(failure) = &capture_failure {
        let purpose = if failure.lost == 0 {
            "find out why hook reports were saved elsewhere"
        } else {
            "find out why hook reports were lost"
        };
        ("baton doctor", purpose)
    } else if matches!(capture, CaptureState::Paused { .. }) {
        ("baton pause --end", "let hooks record again")
    } else if capture == CaptureState::Off {
        ("baton config show", "see where capture.enabled is set")
    } else if captured.is_empty() && !Records::of(&config.data_dir).exist() {
        ("baton setup", "connect your coding agents")
    } else if errors > 0 {
        ("baton queue list --errors", "see tool uses that could not be processed")
    } else if repository_here().is_ok_and(|repo| repo.is_some()) {
        ("baton context", "see what the next chat in this repository receives")
    } else {
        ("baton search WORDS", "search everything recorded")
    };
    lines.push(describe_next(next));
    let data = json!({
        "version": VERSION, "store": store, "venture": venture, "active_sessions": output.sessions,
        "cost_by_day": health.as_ref().map(|health| &health.cost_by_day),
        "cost_by_session": health.as_ref().map(|health| &health.cost_by_session),
        "capture": capture, "capture_failure": capture_failure, "last_captured": captured,
        "next": next.0,
    });
    Answer::new(&data, wrap(&lines.join("\n"), LABEL_WIDTH))
}

fn describe_next((command, purpose): (&str, &str)) -> String {
    format!("next: {command}   # {purpose}")
}
