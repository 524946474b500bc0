//! *Agents*: which agents reported in the latest sessions, and when.

use std::collections::BTreeMap;

use baton_app::session::{SessionHistory, SessionView};
use baton_core::SessionStatus;
use maud::{Markup, html};
use serde_json::json;

use super::View;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{count, empty, time};

/// Number of latest sessions that are read.
const SESSIONS: i64 = 200;

pub(super) async fn render(visitor: &Visitor, _: &Query) -> Result<View, Problem> {
    let sessions = visitor.ask::<SessionHistory>(json!({ "limit": SESSIONS })).await?.sessions;
    let mut agents: BTreeMap<(&str, &str), Vec<&SessionView>> = BTreeMap::new();
    for session in &sessions {
        let key = (session.client.as_deref().unwrap_or("unknown program"), session.agent.as_str());
        agents.entry(key).or_default().push(session);
    }
    let mut agents: Vec<_> = agents.into_iter().collect();
    agents.sort_by_key(|(_, sessions)| std::cmp::Reverse(last_seen(sessions)));
    let body = html! {
        h1 { "Agents" }
        p.lead { "Agents of the latest sessions. Check the connection of every agent on a machine with " code { "baton doctor" } "." }
        @if agents.is_empty() {
            (empty("No agent has reported yet", html! { p { "Connect the agents on this machine:" } pre { code { "baton setup" } } }))
        }
        ul.rows { @for ((client, agent), sessions) in &agents { (row(visitor, client, agent, sessions)) } }
    };
    Ok(View::new("Agents", "/sessions?limit=200", body))
}

fn last_seen(sessions: &[&SessionView]) -> Option<baton_core::Timestamp> {
    sessions.iter().map(|session| session.last_heartbeat_at).max()
}

fn row(visitor: &Visitor, client: &str, agent: &str, sessions: &[&SessionView]) -> Markup {
    let active = sessions.iter().filter(|session| session.status == SessionStatus::Active).count();
    let version = sessions.first().and_then(|session| session.client_version.as_deref()).unwrap_or_default();
    html! {
        li data-row data-state=(if active > 0 { "live" } else { "ended" }) {
            div.head {
                span.dot aria-hidden="true" {}
                a.title href=(url("/ui/sessions", [("agent", agent)])) { (agent) }
                @if let Some(at) = last_seen(sessions) { span.when { "last seen " (time(at, visitor.now)) } }
            }
            p.meta { span { (client) " " (version) } span { (count(sessions.len(), "session")) } span { (active) " active" } }
        }
    }
}
