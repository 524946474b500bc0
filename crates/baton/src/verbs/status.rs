//! `baton status`: how things stand, at a glance.

use baton_app::session::ListSessions;
use serde_json::json;

use crate::backend::Backend;
use crate::cli::VERSION;
use crate::config::Config;
use crate::output::{Answer, Failure};

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::open(config)?;
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
    let data = json!({
        "version": VERSION, "store": place, "venture": venture, "active_sessions": output.sessions,
    });
    Ok(Answer::new(data, lines.join("\n")))
}
