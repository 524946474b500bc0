//! *Handoffs*: the list, one handoff with its details, and a form to write one as a person.

use std::collections::BTreeSet;

use baton_app::handoff::{HandoffView, ListHandoffs, ShowHandoff};
use baton_app::session::SessionHistory;
use baton_core::{HandoffAuthor, HandoffFields, Timestamp};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{default_venture, empty, form_fields, id_link, line, list, prose, time};

const LIMIT: i64 = 50;
const FILTERS: [&str; 3] = ["repo", "from_agent", "to_agent"];

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let venture = default_venture(visitor, query);
    let page = json!({ "venture": venture, "limit": LIMIT });
    let params = query.params(&["repo", "from_agent", "to_agent", "cursor"], page);
    let found = visitor.ask::<ListHandoffs>(params).await?;
    let chosen = FILTERS.into_iter().filter_map(|name| Some((name, query.get(name)?)));
    let filters: Vec<(&str, &str)> = chosen.chain([("venture", venture.as_str())]).collect();
    let body = html! {
        h1 { "Handoffs" }
        form.filters method="get" action="/ui/handoffs" {
            div { label for="repo" { "Repository" } input id="repo" name="repo" value=(query.get("repo").unwrap_or_default()) placeholder="owner/name" data-search; }
            div { label for="venture" { "Venture" } input id="venture" name="venture" value=(venture); }
            div { button { "Filter" } }
        }
        @if found.handoffs.is_empty() {
            (empty("No handoffs", html! {
                p { "An agent writes a handoff when its session ends. You can write one below, or:" }
                pre { code { "baton handoff leave --author me --summary 'Login works' --next 'Add logout'" } }
            }))
        }
        ul.rows { @for handoff in &found.handoffs { (row(handoff, visitor.now)) } }
        @if let Some(cursor) = &found.pagination.next_cursor {
            p.pager { a.button href=(url("/ui/handoffs", filters.iter().copied().chain([("cursor", cursor.as_str())]))) { "Earlier handoffs" } }
        }
        @if visitor.can_write() { (write_form(visitor, &venture, query.get("repo")).await?) }
    };
    Ok(PageContent::new("Handoffs", url("/handoffs", filters.iter().copied()), body))
}

fn row(handoff: &HandoffView, now: Timestamp) -> Markup {
    let blockers = HandoffFields::of(&handoff.payload).blockers.len();
    html! {
        li data-row id=(handoff.id) {
            a.title href=(format!("/ui/handoffs/{}", handoff.id)) { (line(&handoff.summary, 200)) }
            p.meta {
                (status(handoff))
                @if blockers > 0 { span.label.bad { (blockers) " blocking" } }
                span { (handoff.from_agent) @if let Some(to) = &handoff.to_agent { " to " (to) } }
                span { (handoff.repo) }
                (time(handoff.created_at, now))
            }
        }
    }
}

fn status(handoff: &HandoffView) -> Markup {
    let label = handoff.status_label.as_deref();
    html! {
        @if let Some(label) = label { span class=(if label == "blocked" { "label bad" } else { "label" }) { (label) } }
        @if let Some(by) = &handoff.acknowledged_by { span.label.good { "acknowledged by " (by) } }
    }
}

/// The form for a handoff of a person. It suggests the repositories of the latest sessions.
async fn write_form(visitor: &Visitor, venture: &str, repo: Option<&str>) -> Result<Markup, Problem> {
    let latest = visitor.ask::<SessionHistory>(json!({ "venture": venture, "limit": 100 })).await?.sessions;
    let repos: BTreeSet<&str> = latest.iter().map(|session| session.repo.as_str()).collect();
    let area = |name: &str, label: &str, hint: &str| {
        html! { div { label for=(name) { (label) } textarea id=(name) name=(name) rows="2" placeholder=(hint) {} } }
    };
    Ok(html! {
        details.panel id="write" {
            summary { "Write a handoff" }
            form.stack method="post" action="/ui/call/handoff.leave" {
                (form_fields(visitor, "/ui/handoffs"))
                input type="hidden" name="venture" value=(venture);
                div { label for="author" { "Your name" } input id="author" name="author" value="me" required; }
                div {
                    label for="write-repo" { "Repository" }
                    input id="write-repo" name="repo" list="repos" value=(repo.unwrap_or_default()) placeholder="owner/name" required;
                    datalist id="repos" { @for repo in &repos { option value=(repo) {} } }
                }
                div { label for="branch" { "Branch, if it matters" } input id="branch" name="branch" placeholder="feature/login"; }
                div { label for="summary" { "Summary" } textarea id="summary" name="handoff.summary" rows="3" required placeholder="What the next agent must know" {} }
                div {
                    label for="status_label" { "Status" }
                    select id="status_label" name="handoff.status_label" {
                        @for status in ["in-progress", "blocked", "ready-for-review", "done"] { option { (status) } }
                    }
                }
                (area("handoff.blockers[]", "Blockers, one per line", "The staging database is down"))
                (area("handoff.next_actions[]", "Next actions, one per line", "Add logout"))
                button.primary { "Save the handoff" }
            }
        }
    })
}

/// Renders one handoff.
pub(super) async fn render_one(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let id = query.get("handoff_id").unwrap_or_default();
    let handoff = visitor.ask::<ShowHandoff>(json!({ "handoff_id": id })).await?.handoff;
    let page = format!("/ui/handoffs/{id}");
    let fields = HandoffFields::of(&handoff.payload);
    let body = html! {
        p.meta { a href="/ui/handoffs" { "Handoffs" } }
        h1 { "Handoff of " (handoff.from_agent) }
        p.meta { (status(&handoff)) span { (handoff.repo) } (time(handoff.created_at, visitor.now)) @if handoff.incomplete { span.label.warn { "incomplete" } } }
        section.panel {
            (prose(&handoff.summary))
            (list("Blockers", &fields.blockers))
            (list("Next actions", &fields.next_actions))
            (list("Goal", &fields.goal.into_iter().collect::<Vec<_>>()))
            (list("State", &fields.state.into_iter().collect::<Vec<_>>()))
            (list("Done", &fields.work_completed))
            (list("Decisions", &fields.decisions))
            (list("Rejected approaches", &fields.rejected))
            (list("Gotchas", &fields.gotchas))
            (list("Constraints", &fields.constraints))
            (list("Uncommitted files", &fields.references.uncommitted_files))
        }
        (facts(&handoff))
        (ack_form(visitor, &handoff, &page))
    };
    Ok(PageContent::new(format!("Handoff of {}", handoff.from_agent), format!("/handoffs/{id}"), body))
}

fn facts(handoff: &HandoffView) -> Markup {
    html! {
        dl.facts {
            div { dt { "Written by" } dd { (match handoff.written_by { HandoffAuthor::Agent => "an agent", HandoffAuthor::Person => "a person", HandoffAuthor::Hook => "Baton, when the chat ended" }) } }
            div { dt { "Session" } dd { (id_link(&handoff.session_id.to_string())) } }
            @if let Some(to) = &handoff.to_agent { div { dt { "For" } dd { (to) } } }
            @if let Some(branch) = &handoff.branch { div { dt { "Branch" } dd { code { (branch) } } } }
            @if let Some(workflow) = &handoff.workflow_id { div { dt { "Workflow" } dd { (workflow) } } }
            @if let Some(checkpoint) = &handoff.checkpoint_id { div { dt { "Checkpoint" } dd { (id_link(&checkpoint.to_string())) } } }
            div { dt { "Id" } dd { span.id { (handoff.id) } } }
        }
    }
}

fn ack_form(visitor: &Visitor, handoff: &HandoffView, page: &str) -> Markup {
    html! {
        @match (&handoff.acknowledged_by, handoff.acknowledged_at) {
            (Some(by), Some(at)) => p.notice { (by) " acknowledged this handoff " (time(at, visitor.now)) },
            _ if visitor.can_write() => {
                form.actions method="post" action="/ui/call/handoff.ack" {
                    (form_fields(visitor, page))
                    input type="hidden" name="handoff_id" value=(handoff.id);
                    div { label for="agent" { "Acknowledge as" } input id="agent" name="agent" value="me" required; }
                    button.primary { "Acknowledge" }
                }
            },
            _ => {},
        }
    }
}
