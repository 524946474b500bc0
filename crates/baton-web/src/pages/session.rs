//! One session: its turns, its handoff and its summary.

use baton_app::handoff::HandoffSummary;
use baton_app::observation::SummaryView;
use baton_app::session::{SessionView, ShowSession};
use baton_app::turn::{ListTurns, ShowTurn, ShowTurnOutput, TurnAction};
use baton_core::Timestamp;
use baton_core::observation::TurnStatus;
use baton_observation::is_failure;
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use super::sessions::state;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{count, duration, empty, line, list, prose, repo_name, time};

/// Maximum number of turns on a page.
const TURNS: i64 = 15;
/// Maximum number of tool uses of a turn that are listed.
const MAX_ACTIONS: usize = 200;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let id = query.get("session_id").unwrap_or_default();
    let shown = visitor.ask::<ShowSession>(json!({ "session_id": id })).await?;
    let listed = visitor
        .ask::<ListTurns>(json!({ "session_id": id, "limit": TURNS, "before": query.get("before") }))
        .await?;
    let mut turns = Vec::new();
    for turn in &listed.turns {
        turns.push(visitor.ask::<ShowTurn>(json!({ "turn_id": turn.id })).await?);
    }
    let session = &shown.session;
    let page = format!("/ui/sessions/{id}");
    let body = html! {
        div id="live" hx-get=(query.url(&page, &["before"])) hx-trigger="sse:change" hx-select="#live" hx-swap="outerHTML" {
            (heading(session, visitor.now))
            @if let Some(summary) = &shown.summary { (summary_panel(summary)) }
            @if let Some(handoff) = &shown.handoff { (handoff_panel(handoff, visitor.now)) }
            h2 { "What happened" }
            @if turns.is_empty() { (no_turns(session)) }
            @if query.get("before").is_some() { p { a href=(page) { "Latest turns" } } }
            // The list starts with the newest turn; the page starts with the oldest.
            ol.story { @for turn in turns.iter().rev() { (turn_entry(turn, visitor.now)) } }
            @if let Some(before) = listed.next_before {
                p.pager { a.button href=(url(&page, [("before", before.to_string().as_str())])) { "Earlier turns" } }
            }
        }
    };
    let title = format!("{} in {}", session.agent, session.repo);
    Ok(PageContent::new(title, format!("/sessions/{id}"), body).live())
}

fn heading(session: &SessionView, now: Timestamp) -> Markup {
    let until = session.ended_at.unwrap_or(session.last_heartbeat_at);
    let fact = |name: &str, value: Option<Markup>| {
        html! { @if let Some(value) = value { div { dt { (name) } dd { (value) } } } }
    };
    let code = |text: &Option<String>| text.as_ref().map(|text| html! { code { (text) } });
    html! {
        p.meta { a href="/ui/sessions" { "Sessions" } }
        h1 data-state=(state(session)) { (session.agent) " in " (repo_name(&session.repo)) }
        dl.facts {
            (fact("Status", Some(html! { (session.status.as_str()) @if let Some(reason) = session.end_reason { " (" (reason.as_str()) ")" } })))
            (fact("Started", Some(time(session.created_at, now))))
            (fact("Duration", Some(html! { (duration(session.created_at, until)) })))
            (fact("Last heartbeat", Some(time(session.last_heartbeat_at, now))))
            (fact("Branch", code(&session.branch)))
            (fact("Commit", code(&session.commit_sha.as_ref().map(|sha| sha.chars().take(12).collect()))))
            (fact("Client", session.client.as_ref().map(|client| html! { (client) " " (session.client_version.as_deref().unwrap_or_default()) })))
            (fact("Host", session.host.as_ref().map(|host| html! { (host) })))
            (fact("Venture", Some(html! { (session.venture) })))
            (fact("Id", Some(html! { span.id { (session.id) } })))
        }
        p.actions {
            a.button href=(url("/ui/next", [("repo", session.repo.as_str()), ("venture", session.venture.as_str())])) { "Context of the next chat" }
        }
    }
}

fn no_turns(session: &SessionView) -> Markup {
    empty(
        "No turns were recorded",
        html! { p { "Turns are recorded by the hooks of " (session.client.as_deref().unwrap_or("the agent")) ". Check them with:" } pre { code { "baton doctor" } } },
    )
}

fn summary_panel(summary: &SummaryView) -> Markup {
    html! {
        section.panel {
            h2 { "Summary" }
            (prose(&summary.summary))
            (list("Decisions", &summary.key_decisions))
            (list("Key files", &summary.key_files))
        }
    }
}

fn handoff_panel(handoff: &HandoffSummary, now: Timestamp) -> Markup {
    html! {
        section.panel {
            h2 { a href=(format!("/ui/handoffs/{}", handoff.id)) { "Handoff" } }
            p.meta { (handoff.status_label.as_deref().unwrap_or("no status")) " · " (time(handoff.created_at, now)) }
            (prose(&handoff.summary))
            (list("Blockers", &handoff.fields.blockers))
            (list("Next actions", &handoff.fields.next_actions))
        }
    }
}

fn turn_entry(shown: &ShowTurnOutput, now: Timestamp) -> Markup {
    let turn = &shown.turn;
    let (label, tone) = match turn.status {
        TurnStatus::Open => ("working", "warn"),
        TurnStatus::Done => ("done", "good"),
        TurnStatus::Failed => ("failed", "bad"),
        TurnStatus::Interrupted => ("interrupted", "warn"),
        TurnStatus::Unfinished => ("unfinished", "warn"),
        TurnStatus::Unknown => ("recorded", ""),
    };
    html! {
        li.turn.failed-turn[turn.status == TurnStatus::Failed] id=(turn.id) data-row {
            p.turn-head {
                a.id href=(format!("#{}", turn.id)) { (turn.id) }
                span class=(format!("label {tone}")) { (label) }
                (time(turn.started_at, now))
                @if let Some(ended) = turn.ended_at { span { "took " (duration(turn.started_at, ended)) } }
            }
            @if turn.prompt.is_empty() { p.request { "(the request was not reported)" } } @else { div.request { (prose(&turn.prompt)) } }
            @if !shown.actions.is_empty() { (actions(shown)) }
            @if !shown.checks.is_empty() { ul.checks aria-label="Checks" { @for check in &shown.checks { (check_label(check)) } } }
            @if !shown.commits.is_empty() { (list("Commits", &shown.commits)) }
            @if let Some(failure) = &turn.failure { p.failed { (failure) } }
            @if let Some(closing) = &turn.closing { div.reply { (prose(closing)) } }
        }
    }
}

fn actions(shown: &ShowTurnOutput) -> Markup {
    let used: Vec<String> =
        shown.tools.iter().take(4).map(|tool| format!("{} {}", tool.tool, tool.uses)).collect();
    let changed = shown.files_changed.len();
    html! {
        details id=(format!("actions-{}", shown.turn.id)) {
            summary {
                (count(shown.actions.len(), "action")) " (" (used.join(", ")) ")"
                @if changed > 0 { ", " (count(changed, "file")) " changed" }
                @if !shown.failures.is_empty() { ", " (shown.failures.len()) " failed" }
            }
            ol.steps {
                @for action in shown.actions.iter().take(MAX_ACTIONS) {
                    li { a href=(format!("/ui/items/{}", action.observation_id)) { (line(&action.title, 200)) } }
                }
                @if shown.actions.len() > MAX_ACTIONS { li { "and " (shown.actions.len() - MAX_ACTIONS) " more" } }
            }
            @if changed > 0 { p.files { @for file in &shown.files_changed { code { (file) } } } }
        }
    }
}

fn check_label(check: &TurnAction) -> Markup {
    let tone = if is_failure(&check.title) { "label bad" } else { "label good" };
    html! { li { a class=(tone) href=(format!("/ui/items/{}", check.observation_id)) { (line(&check.title, 120)) } } }
}
