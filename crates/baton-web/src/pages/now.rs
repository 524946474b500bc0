//! *Now*: what needs attention, active sessions by repository, files that several agents change.

use std::collections::{BTreeMap, BTreeSet};

use baton_app::session::{
    Attention, AttentionKind, LiveSession, SessionOverview, SessionOverviewOutput, SharedFile,
};
use baton_core::Timestamp;
use baton_core::observation::TurnStatus;
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{count, empty, line, page_of, repo_name, time};

const MAX_PROMPT_CHARS: usize = 160;
const MAX_CLOSING_CHARS: usize = 280;
const MAX_FILES: usize = 4;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let overview = visitor.ask::<SessionOverview>(query.params(&["venture"], json!({}))).await?;
    let body = html! {
        div id="live" hx-get=(query.url("/", &["venture"])) hx-trigger="sse:change" hx-select="#live" hx-swap="outerHTML" {
            h1 { "Now" }
            p.lead { (summary(&overview)) }
            @if !overview.attention.is_empty() {
                section aria-labelledby="attention" {
                    h2 id="attention" { "Needs attention" }
                    ul.attention { @for problem in &overview.attention { (attention(problem, visitor.now)) } }
                }
            }
            @if overview.sessions.is_empty() { (no_sessions()) }
            @for (repo, sessions) in by_repo(&overview) {
                section.repo {
                    h2 { (repo_name(repo)) }
                    @let shared: Vec<&SharedFile> = overview.shared_files.iter().filter(|file| file.repo == repo).collect();
                    @if !shared.is_empty() { (shared_files(&shared, &overview.sessions)) }
                    ul.cards { @for session in sessions { (card(session, visitor.now)) } }
                }
            }
            @if overview.has_more {
                p.more { a href="/ui/sessions?status=active" { "More active sessions" } }
            }
        }
    };
    Ok(PageContent::new("Now", query.url("/api/overview", &["venture"]), body).live())
}

fn summary(overview: &SessionOverviewOutput) -> String {
    let active: Vec<&LiveSession> = overview.sessions.iter().filter(|session| !session.is_stale).collect();
    let stale = overview.sessions.len() - active.len();
    let repos: BTreeSet<&str> = active.iter().map(|session| session.repo.as_str()).collect();
    let sessions = count(active.len(), "active session");
    let mut text = match repos.len() {
        0 => "No session is active.".to_owned(),
        1 => format!("{sessions} in 1 repository."),
        several => format!("{sessions} in {several} repositories."),
    };
    if stale > 0 {
        text.push_str(&format!(" {} without a recent heartbeat.", count(stale, "session")));
    }
    text
}

/// Groups sessions by repository; repositories with a live session come first.
fn by_repo(overview: &SessionOverviewOutput) -> Vec<(&str, Vec<&LiveSession>)> {
    let mut repos: BTreeMap<&str, Vec<&LiveSession>> = BTreeMap::new();
    for session in &overview.sessions {
        repos.entry(&session.repo).or_default().push(session);
    }
    let mut repos: Vec<_> = repos.into_iter().collect();
    for (_, sessions) in &mut repos {
        sessions.sort_by_key(|session| (session.is_stale, std::cmp::Reverse(session.last_heartbeat_at)));
    }
    repos.sort_by_key(|(repo, sessions)| (sessions.iter().all(|session| session.is_stale), *repo));
    repos
}

fn attention(problem: &Attention, now: Timestamp) -> Markup {
    let (label, page) = match problem.kind {
        AttentionKind::Blocked => ("Blocked", problem.id.as_deref().and_then(page_of)),
        AttentionKind::Drifted => ("Drifted", problem.id.as_deref().and_then(page_of)),
        AttentionKind::CaptureFailing => ("Capture failing", Some("/ui/worker".to_owned())),
        AttentionKind::OverBudget => ("Over budget", Some("/ui/worker".to_owned())),
        AttentionKind::TurnFailed => ("Turn failed", problem.id.as_deref().and_then(page_of)),
    };
    html! {
        li data-row {
            span.label { (label) }
            @match page {
                Some(page) => a.what href=(page) { (line(&problem.text, 240)) },
                None => span.what { (line(&problem.text, 240)) },
            }
            span.where {
                @if let Some(repo) = &problem.repo { (repo) " · " }
                @if let Some(at) = problem.at { (time(at, now)) }
            }
        }
    }
}

fn shared_files(shared: &[&SharedFile], sessions: &[LiveSession]) -> Markup {
    let agents = |file: &SharedFile| {
        let mut chats: BTreeMap<&str, usize> = BTreeMap::new();
        for session in sessions.iter().filter(|session| file.session_ids.contains(&session.id)) {
            *chats.entry(session.agent.as_str()).or_default() += 1;
        }
        let names = chats.into_iter().map(|(agent, number)| match number {
            1 => agent.to_owned(),
            _ => format!("{number} chats of {agent}"),
        });
        names.collect::<Vec<_>>().join(" and ")
    };
    html! {
        ul.shared aria-label="Files that several agents change" {
            @for file in shared { li { code { (file.file) } " is changed by " (agents(file)) } }
        }
    }
}

fn card(session: &LiveSession, now: Timestamp) -> Markup {
    let state = if session.is_stale { "stale" } else { "live" };
    html! {
        li.card data-row data-state=(state) id=(session.id) {
            div.head {
                span.dot aria-hidden="true" {}
                a.agent href=(format!("/ui/sessions/{}", session.id)) { (session.agent) }
                @if let Some(branch) = &session.branch { code.branch { (branch) } }
                @if let Some(track) = session.track { span.label { "track " (track) } }
                span.when {
                    @if session.is_stale { "no heartbeat since " } @else { "active " }
                    (time(session.last_heartbeat_at, now))
                }
            }
            @if let Some(turn) = &session.last_turn {
                @if !turn.prompt.is_empty() { p.asked { (line(&turn.prompt, MAX_PROMPT_CHARS)) } }
                @if let Some(failure) = &turn.failure { p.failed { (line(failure, MAX_CLOSING_CHARS)) } }
                @else if let Some(said) = &turn.closing { p.said { (line(said, MAX_CLOSING_CHARS)) } }
                @else if turn.status == TurnStatus::Open { p.working { "Working since " (time(turn.started_at, now)) } }
            } @else {
                p.working { "No request yet. Started " (time(session.started_at, now)) }
            }
            @if !session.files_changed.is_empty() {
                p.files {
                    @for file in session.files_changed.iter().take(MAX_FILES) { code { (file) } " " }
                    @if session.files_changed.len() > MAX_FILES { "and " (session.files_changed.len() - MAX_FILES) " more" }
                }
            }
        }
    }
}

fn no_sessions() -> Markup {
    empty(
        "No session is active",
        html! {
            p { "Connect the coding agents on this machine, then start one in a repository:" }
            pre { code { "baton setup" } }
            p { "Earlier work is under " a href="/ui/sessions" { "Sessions" } "." }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_repositories_with_a_live_session_only() {
        let described = |sessions: &[(&str, bool)]| {
            let session = |(repo, is_stale): &(&str, bool)| {
                json!({
                    "id": "sess_01M7H6D3AHF4DP3YJEERGQ2KGT", "agent": "a", "client": null, "host": null,
                    "venture": "v", "repo": repo, "track": null, "branch": null,
                    "started_at": "2026-01-01T00:00:00.000Z", "last_heartbeat_at": "2026-01-01T00:00:00.000Z",
                    "is_stale": is_stale, "last_turn": null, "files_changed": [],
                })
            };
            let sessions: Vec<_> = sessions.iter().map(session).collect();
            let overview =
                json!({ "attention": [], "sessions": sessions, "has_more": false, "shared_files": [] });
            summary(&serde_json::from_value(overview).unwrap())
        };
        assert_eq!(described(&[]), "No session is active.");
        assert_eq!(
            described(&[("o/a", false), ("o/b", true)]),
            "1 active session in 1 repository. 1 session without a recent heartbeat."
        );
        assert_eq!(described(&[("o/a", false), ("o/b", false)]), "2 active sessions in 2 repositories.");
    }
}
