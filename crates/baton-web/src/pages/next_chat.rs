//! *Next chat*: the context that the next session start adds, with its size and the omitted items.

use std::collections::BTreeSet;

use baton_app::bundle::{ReadContext, ReadContextOutput};
use baton_app::session::{SessionHistory, SessionView};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{count, empty};

/// Programs whose name changes the bundle, and others that are often used.
const CLIENTS: [&str; 6] = ["claude-code", "codex", "cursor", "gemini-cli", "opencode", "vscode"];
const PARAMS: [&str; 6] = ["repo", "venture", "branch", "prompt", "client", "agent"];

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let known = visitor.ask::<SessionHistory>(json!({ "limit": 200 })).await?.sessions;
    let mut query = query.clone();
    fill_defaults(&mut query, &known);
    let bundle = match query.get("repo") {
        Some(_) => Some(visitor.ask::<ReadContext>(query.params(&PARAMS, json!({}))).await?),
        None => None,
    };
    let body = html! {
        h1 { "Next chat" }
        p.lead { "The context that the next chat in a repository receives when it starts." }
        (form(&query, &known))
        div id="bundle" {
            @match &bundle {
                None => (empty("No repository yet", html! { p { "Enter a repository, or start an agent in one." } })),
                Some(bundle) if bundle.context.is_empty() => {
                    (empty("Nothing is recorded for this repository", html! {
                        p { "The next chat starts without context. Work in the repository with a connected agent, or record a note:" }
                        pre { code { "baton note 'Cookies instead of tokens: the proxy drops headers' --kind decision" } }
                    }))
                },
                Some(bundle) => (preview(bundle)),
            }
        }
    };
    Ok(PageContent {
        has_swaps: true,
        ..PageContent::new("Next chat", query.url("/api/context", &PARAMS), body)
    })
}

/// Chooses the repository of the newest session, and the venture of the repository.
fn fill_defaults(query: &mut Query, known: &[SessionView]) {
    let newest = match query.get("repo") {
        Some(repo) => known.iter().find(|session| session.repo == repo),
        None => known.first(),
    };
    if let Some(session) = newest {
        let venture = query.get("venture").unwrap_or(&session.venture).to_owned();
        query.0.insert("repo".to_owned(), session.repo.clone());
        query.0.insert("venture".to_owned(), venture);
    }
}

fn form(query: &Query, known: &[SessionView]) -> Markup {
    let value = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let repos: BTreeSet<&str> = known.iter().map(|session| session.repo.as_str()).collect();
    let branches = known.iter().filter(|session| query.get("repo") == Some(&session.repo));
    let branches: BTreeSet<&str> = branches.filter_map(|session| session.branch.as_deref()).collect();
    html! {
        form.filters method="get" action="/ui/next" hx-get="/ui/next" hx-trigger="change, submit" hx-target="#bundle"
            hx-select="#bundle" hx-swap="outerHTML" hx-push-url="true" {
            div { label for="repo" { "Repository" } input id="repo" name="repo" list="repos" value=(value("repo")) placeholder="owner/name" data-search; }
            div { label for="branch" { "Branch" } input id="branch" name="branch" list="branches" value=(value("branch")) placeholder="any"; }
            div {
                label for="client" { "Client" }
                select id="client" name="client" {
                    option value="" { "Any" }
                    @for client in CLIENTS { option value=(client) selected[query.get("client") == Some(client)] { (client) } }
                }
            }
            div.wide { label for="prompt" { "First request (optional: files and items that match it come first)" } input id="prompt" name="prompt" value=(value("prompt")); }
            div { button { "Show" } }
            datalist id="repos" { @for repo in repos { option value=(repo) {} } }
            datalist id="branches" { @for branch in branches { option value=(branch) {} } }
        }
    }
}

fn preview(bundle: &ReadContextOutput) -> Markup {
    html! {
        div.numbers {
            div { b { (bundle.tokens) } "tokens" }
            div { b { (bundle.context.lines().count()) } "lines" }
            div { b { (bundle.left_out) } "omitted" }
        }
        p.hint { "A chat that starts now gets this text. Its first line also names the new session." }
        pre.bundle id="bundle-text" tabindex="0" { (bundle.context) }
        @if !bundle.omitted.is_empty() {
            details id="omitted" {
                summary { (count(bundle.omitted.len(), "item")) " omitted because of the token budget" }
                ul.rows { @for line in &bundle.omitted { li { (line) } } }
            }
        }
    }
}
