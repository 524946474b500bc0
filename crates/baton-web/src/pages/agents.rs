//! *Agents*: the connections of agents on the server's machine, and the agents of the latest sessions.

use std::collections::BTreeMap;

use baton_app::agent::{AgentConnection, ListAgents, ListAgentsOutput, McpServerState};
use baton_app::session::{SessionHistory, SessionView};
use baton_core::{ErrorCode, SessionStatus, Timestamp};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{count, empty, time};

/// Number of latest sessions that are read.
const SESSIONS: i64 = 200;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let probe = query.get("probe") == Some("true");
    let connected = match visitor.ask::<ListAgents>(json!({ "probe": probe })).await {
        Ok(connected) => Some(connected),
        // A token that is limited to ventures does not see the machine.
        Err(problem) if problem.code == ErrorCode::Forbidden => None,
        Err(problem) => return Err(problem),
    };
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
        @if let Some(connected) = &connected { (connections(connected, probe, visitor.now)) }
        h2 { "In the latest sessions" }
        @if agents.is_empty() { p.hint { "No agent has reported yet." } }
        ul.rows { @for ((client, agent), sessions) in &agents { (row(visitor, client, agent, sessions)) } }
    };
    let json =
        if connected.is_some() { query.url("/api/agents", &["probe"]) } else { "/sessions?limit=200".into() };
    Ok(PageContent::new("Agents", json, body))
}

fn connections(connected: &ListAgentsOutput, probe: bool, now: Timestamp) -> Markup {
    html! {
        p.lead { "Agents that are set up on " (connected.host) ", the machine of this server." }
        @if connected.connections.is_empty() {
            (empty("No agent is connected on this machine", html! { p { "Connect the installed agents:" } pre { code { "baton setup" } } }))
        } @else {
            ul.rows {
                @for agent in &connected.connections { (connection(agent, now)) }
                @if let Some(server) = &connected.mcp_server { (mcp_server(server)) }
            }
            @if !probe {
                p.actions {
                    a.button href="/ui/agents?probe=true" { "Also check the MCP server and Codex" }
                    span.hint { "Starts the MCP server, and asks Codex whether it trusts the hooks." }
                }
            }
        }
    }
}

fn connection(agent: &AgentConnection, now: Timestamp) -> Markup {
    html! {
        li data-row tabindex="-1" {
            div.head {
                span.title { (agent.name) }
                (state_label(agent.problem.is_none()))
                span.when {
                    @match agent.last_event_at { Some(at) => { "last event " (time(at, now)) }, None => "no event yet" }
                }
            }
            p.meta { span { "set up for the " (agent.scope) } span.id { (agent.id) } }
            (problem_and_fix(agent.problem.as_deref(), agent.fix.as_deref()))
        }
    }
}

fn mcp_server(server: &McpServerState) -> Markup {
    html! {
        li data-row tabindex="-1" {
            div.head { span.title { "MCP server" } (state_label(server.problem.is_none())) }
            p.meta {
                code { (server.binary) }
                @if let Some(tools) = server.tools { span { "responds with " (count(tools, "tool")) } }
            }
            (problem_and_fix(server.problem.as_deref(), None))
        }
    }
}

fn state_label(is_good: bool) -> Markup {
    html! { @if is_good { span.label.good { "connected" } } @else { span.label.warn { "problem" } } }
}

fn problem_and_fix(problem: Option<&str>, fix: Option<&str>) -> Markup {
    html! {
        @if let Some(problem) = problem { p.failed { (problem) } }
        @if let Some(fix) = fix { p.hint { "Fix: " (fix) } }
    }
}

fn last_seen(sessions: &[&SessionView]) -> Option<Timestamp> {
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
