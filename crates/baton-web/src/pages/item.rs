//! One item of the memory: full text, raw output, and what happened around it.

use baton_app::observation::{ShowObservation, ShowObservationOutput};
use baton_app::recall::{GetItems, ItemView, MarkView, Timeline, TimelineEntry};
use baton_core::recall::{ItemKind, MarkKind};
use baton_core::{Timestamp, first_characters};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PageContent;
use super::memory::item_page;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{form_fields, id_link, line, prose, time};

/// Maximum length of raw text on the page in characters; all of it is in the JSON.
const MAX_RAW_CHARS: usize = 60_000;
/// Number of items before and after the item.
const AROUND: i64 = 8;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let id = query.get("id").unwrap_or_default();
    let found = visitor.ask::<GetItems>(json!({ "ids": id })).await?.items.into_iter().next();
    let item = found.ok_or_else(|| Problem::not_found("there is no such item"))?;
    let raw = match item.kind {
        ItemKind::Observation => {
            visitor.ask::<ShowObservation>(json!({ "observation_id": id, "raw": true })).await.ok()
        }
        _ => None,
    };
    // An item that is not indexed yet has no timeline.
    let around = visitor.ask::<Timeline>(json!({ "id": id, "limit": AROUND })).await;
    let around = around.map(|timeline| timeline.items).unwrap_or_default();
    let body = html! {
        p.meta { a href="/ui/memory" { "Memory" } }
        h1 { (line(&item.title, 110)) }
        (facts(&item, visitor.now))
        section.panel { (prose(&item.text)) }
        @if let Some(mark) = &item.mark { (mark_notice(mark, visitor.now)) }
        @if visitor.can_write() { (corrections(visitor, &item)) }
        @if let Some(raw) = &raw { (raw_output(raw)) }
        @if around.len() > 1 {
            h2 { "Before and after" }
            ol.rows { @for entry in &around { (entry_row(entry, &item.id, visitor.now)) } }
        }
    };
    Ok(PageContent::new(item.title.clone(), url("/api/items", [("ids", id)]), body))
}

fn facts(item: &ItemView, now: Timestamp) -> Markup {
    html! {
        dl.facts {
            div { dt { "Kind" } dd { (item.kind.as_str()) } }
            div { dt { "Time" } dd { (time(item.created_at, now)) } }
            @if let Some(agent) = &item.agent { div { dt { "Agent" } dd { (agent) } } }
            @if let Some(repo) = &item.repo { div { dt { "Repository" } dd { (repo) } } }
            @if let Some(branch) = &item.branch { div { dt { "Branch" } dd { code { (branch) } } } }
            @if let Some(session) = &item.session_id { div { dt { "Session" } dd { (id_link(&session.to_string())) } } }
            @if let Some(turn) = item.turn_id.as_ref().filter(|turn| **turn != item.id) { div { dt { "Turn" } dd { (id_link(turn)) } } }
            div { dt { "Size" } dd { (item.tokens) " tokens" } }
            div { dt { "Id" } dd { @if item.kind == ItemKind::Task { (id_link(&item.id)) } @else { span.id { (item.id) } } } }
        }
        @if !item.files.is_empty() {
            p.files { @for file in item.files.iter().take(20) { a href=(url("/ui/memory", [("q", file.as_str())])) { code { (file) } } } }
        }
    }
}

fn mark_notice(mark: &MarkView, now: Timestamp) -> Markup {
    html! {
        p.notice {
            "This item is " (mark.kind.as_str())
            @if let Some(by) = &mark.replaced_by { " by " (id_link(by)) }
            ", " (time(mark.created_at, now)) "."
            @if mark.kind != MarkKind::Pinned { " Search and new chats do not return it." }
        }
    }
}

/// Forms to mark or delete an item.
fn corrections(visitor: &Visitor, item: &ItemView) -> Markup {
    let page = item_page(item.kind, &item.id);
    let form = |action: &str, label: &str| {
        html! {
            form method="post" action=(format!("/ui/call/{action}")) {
                (form_fields(visitor, &page))
                input type="hidden" name="id" value=(item.id);
                button { (label) }
            }
        }
    };
    html! {
        div.actions {
            @match &item.mark {
                Some(mark) if mark.kind == MarkKind::Pinned => (form("memory.restore", "Unpin")),
                Some(_) => (form("memory.restore", "Restore")),
                None => { (form("memory.pin", "Pin")) (form("memory.reject", "Reject")) },
            }
        }
        details id="correct" {
            summary { "Replace or forget" }
            div.panel {
                form.stack method="post" action="/ui/call/memory.supersede" {
                    (form_fields(visitor, &page))
                    input type="hidden" name="id" value=(item.id);
                    div { label for="by" { "Id of the item that replaces this one" } input id="by" name="by" required placeholder="note_…"; }
                    button { "Replace" }
                }
                form.stack.field method="post" action="/ui/call/memory.forget" {
                    (form_fields(visitor, "/ui/memory"))
                    input type="hidden" name="id" value=(item.id);
                    p.hint { "Forgetting deletes the item with its raw output. It cannot be undone." }
                    button.danger { "Forget" }
                }
            }
        }
    }
}

fn raw_output(shown: &ShowObservationOutput) -> Markup {
    let seen = &shown.observation;
    let part = |name: &str, value: &Option<Value>| {
        let text = match value {
            None => return html! {},
            Some(Value::String(text)) => text.clone(),
            Some(other) => format!("{other:#}"),
        };
        let short = first_characters(&text, MAX_RAW_CHARS);
        html! {
            h3 { (name) }
            pre.raw { (short) }
            @if short.len() < text.len() { p.hint { "Truncated after " (MAX_RAW_CHARS) " characters; the JSON contains the full text." } }
        }
    };
    html! {
        details id="raw" {
            summary { "Raw input and output of " (seen.tool_name) ", " (seen.raw_bytes) " bytes" }
            div.panel {
                @if shown.raw_kept == Some(true) {
                    (part("Input", &shown.tool_input))
                    (part("Output", &shown.tool_response))
                } @else {
                    p { "The raw text is no longer stored." }
                }
                p.hint { a href=(url(&format!("/api/observations/{}", seen.id), [("raw", "true")])) { "Raw text as JSON" } }
            }
        }
    }
}

fn entry_row(entry: &TimelineEntry, shown: &str, now: Timestamp) -> Markup {
    html! {
        li data-row aria-current=[(entry.id == shown).then_some("true")] {
            a.title href=(item_page(entry.kind, &entry.id)) { (line(&entry.title, 160)) }
            p.meta { span.label { (entry.kind.as_str()) } (time(entry.created_at, now)) @if let Some(agent) = &entry.agent { span { (agent) } } }
        }
    }
}
