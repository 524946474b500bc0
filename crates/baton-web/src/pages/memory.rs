//! *Memory*: search as you type, with the reason for each hit.

use baton_app::note::{ListNotes, NoteView};
use baton_app::recall::{Search, SearchResult};
use baton_core::Timestamp;
use baton_core::recall::ItemKind;
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, encode};
use crate::widgets::{count, empty, line, time};

const PARAMS: [&str; 6] = ["q", "repo", "kind", "agent", "file", "since"];
const LIMIT: i64 = 30;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let results = match query.get("q") {
        Some(_) => {
            let found = visitor.ask::<Search>(query.params(&PARAMS, json!({ "limit": LIMIT }))).await?;
            html! {
                p.meta { span { (count(found.results.len(), "hit")) } span { (format!("{:.0}", found.took_ms)) " ms" } }
                @if let Some(warning) = &found.warning { p.meta { span { (warning) } } }
                @if found.results.is_empty() { (nothing()) }
                ul.rows { @for hit in &found.results { (row(hit, visitor.now)) } }
            }
        }
        None => {
            let notes = visitor.ask::<ListNotes>(json!({ "limit": 20 })).await?.notes;
            latest_notes(&notes, visitor.now)
        }
    };
    let body = html! {
        h1 { "Memory" }
        (form(query))
        div id="results" { (results) }
    };
    let json =
        if query.get("q").is_some() { query.url("/api/search", &PARAMS) } else { "/api/notes".to_owned() };
    Ok(PageContent { has_swaps: true, ..PageContent::new("Memory", json, body) })
}

fn form(query: &Query) -> Markup {
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    html! {
        search {
            form.filters method="get" action="/ui/memory" hx-get="/ui/memory" hx-target="#results" hx-select="#results"
                hx-swap="outerHTML" hx-push-url="true" hx-sync="this:replace"
                hx-trigger="submit, change, input changed delay:150ms from:#q" {
                div.wide {
                    label for="q" { "Search everything that was recorded" }
                    input id="q" name="q" type="search" value=(value("q")) autocomplete="off" data-search autofocus
                        placeholder="why did we choose cookies";
                }
                div { label for="repo" { "Repository" } input id="repo" name="repo" value=(value("repo")) placeholder="any"; }
                div { label for="file" { "File" } input id="file" name="file" value=(value("file")) placeholder="any"; }
                div {
                    label for="kind" { "Kind" }
                    select id="kind" name="kind" {
                        option value="" { "Any" }
                        @for kind in ItemKind::ALL.iter().copied() {
                            option value=(kind.as_str()) selected[query.get("kind") == Some(kind.as_str())] { (kind.as_str()) }
                        }
                    }
                }
                div {
                    label for="since" { "Since" }
                    select id="since" name="since" {
                        @for (value, name) in [("", "Always"), ("1d", "A day ago"), ("7d", "A week ago"), ("30d", "A month ago")] {
                            option value=(value) selected[query.get("since").unwrap_or_default() == value] { (name) }
                        }
                    }
                }
                noscript { button { "Search" } }
            }
        }
    }
}

fn nothing() -> Markup {
    empty(
        "Nothing found",
        html! { p { "Use fewer or other words, or a file name. Work of the last seconds may still be in the queue: see " a href="/ui/worker" { "Worker" } "." } },
    )
}

fn row(hit: &SearchResult, now: Timestamp) -> Markup {
    html! {
        li data-row id=(hit.id) {
            a.title href=(item_page(hit.kind, &hit.id)) { (line(&hit.title, 160)) }
            @if !hit.snippet.is_empty() && !hit.title.contains(&hit.snippet) { p.snippet { (line(&hit.snippet, 320)) } }
            p.meta {
                span.label { (hit.kind.as_str()) }
                (time(hit.created_at, now))
                span { (hit.tokens) " tokens" }
                span.why { (line(&hit.why, 160)) }
            }
        }
    }
}

pub(super) fn item_page(kind: ItemKind, id: &str) -> String {
    match kind {
        ItemKind::Handoff => format!("/ui/handoffs/{}", encode(id)),
        ItemKind::Turn
        | ItemKind::Observation
        | ItemKind::Summary
        | ItemKind::Checkpoint
        | ItemKind::Task
        | ItemKind::Note => format!("/ui/items/{}", encode(id)),
    }
}

fn latest_notes(notes: &[NoteView], now: Timestamp) -> Markup {
    if notes.is_empty() {
        return empty(
            "Type to search",
            html! {
                p { "Requests, tool uses, handoffs, summaries, checkpoints, tasks and notes of all sessions are searched." }
                p { "Agents record decisions with the tool " code { "note" } ". You can add one too:" }
                pre { code { "baton note 'Cookies instead of tokens: the proxy drops headers' --kind decision" } }
            },
        );
    }
    html! {
        h2 { "Latest notes" }
        ul.rows {
            @for note in notes {
                li data-row {
                    a.title href=(format!("/ui/items/{}", note.id)) { (line(&note.text, 200)) }
                    p.meta {
                        span.label { (note.kind.as_str()) }
                        (time(note.created_at, now))
                        @if let Some(agent) = &note.agent { span { (agent) } }
                        span { (note.repo) }
                        @if let Some(file) = &note.file { code { (file) } }
                    }
                }
            }
        }
    }
}
