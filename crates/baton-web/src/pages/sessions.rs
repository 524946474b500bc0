//! *Sessions*: all sessions, newest first, with filters.

use baton_app::session::{SessionHistory, SessionView};
use baton_core::{SessionStatus, Timestamp};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{duration, empty, time};

const FILTERS: [&str; 4] = ["repo", "agent", "status", "venture"];
const LIMIT: i64 = 50;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let params = query.params(&["repo", "agent", "status", "venture", "cursor"], json!({ "limit": LIMIT }));
    let found = visitor.ask::<SessionHistory>(params).await?;
    let is_filtered = FILTERS.iter().any(|name| query.get(name).is_some());
    let body = html! {
        h1 { "Sessions" }
        (filters(query))
        @if found.sessions.is_empty() {
            (nothing(is_filtered))
        } @else {
            ul.rows { @for session in &found.sessions { (row(session, visitor.now)) } }
        }
        @if let Some(cursor) = &found.pagination.next_cursor {
            @let pairs = FILTERS.iter().filter_map(|name| Some((*name, query.get(name)?)));
            p.pager { a.button rel="next" href=(url("/ui/sessions", pairs.chain([("cursor", cursor.as_str())]))) { "Earlier sessions" } }
        }
    };
    Ok(PageContent::new("Sessions", query.url("/sessions", &FILTERS), body))
}

fn filters(query: &Query) -> Markup {
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    html! {
        form.filters method="get" action="/ui/sessions" {
            div { label for="repo" { "Repository" } input id="repo" name="repo" value=(value("repo")) placeholder="owner/name" data-search; }
            div { label for="agent" { "Agent" } input id="agent" name="agent" value=(value("agent")) placeholder="claude-1"; }
            div {
                label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "Any" }
                    @for status in ["active", "ended", "abandoned"] {
                        option value=(status) selected[query.get("status") == Some(status)] { (status) }
                    }
                }
            }
            div { button { "Filter" } }
        }
    }
}

fn nothing(is_filtered: bool) -> Markup {
    if is_filtered {
        return empty("No session matches", html! { p { a href="/ui/sessions" { "Show all sessions" } } });
    }
    empty(
        "No sessions yet",
        html! {
            p { "A session is recorded when a connected agent starts. Connect the agents on this machine:" }
            pre { code { "baton setup" } }
            p { "or import earlier chats with " code { "baton import claude-code" } "." }
        },
    )
}

fn row(session: &SessionView, now: Timestamp) -> Markup {
    html! {
        li data-row id=(session.id) data-state=(state(session)) {
            div.head {
                span.dot aria-hidden="true" {}
                a.title href=(format!("/ui/sessions/{}", session.id)) { (session.agent) " in " (session.repo) }
                @if let Some(branch) = &session.branch { code.branch { (branch) } }
                span.when { (time(session.created_at, now)) }
            }
            p.meta {
                span { (session.status.as_str()) @if let Some(reason) = session.end_reason { " (" (reason.as_str()) ")" } }
                span { (duration(session.created_at, session.ended_at.unwrap_or(session.last_heartbeat_at))) }
                @if let Some(client) = &session.client { span { (client) } }
                @if let Some(host) = &session.host { span { (host) } }
                @if session.venture != "local" { span { "venture " (session.venture) } }
            }
        }
    }
}

/// Returns the state that the dot shows.
pub(super) const fn state(session: &SessionView) -> &'static str {
    match session.status {
        SessionStatus::Active => "live",
        SessionStatus::Abandoned => "stale",
        SessionStatus::Ended => "ended",
    }
}
