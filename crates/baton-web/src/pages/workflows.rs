//! *Workflows*: the list, and one workflow with its checkpoints, sizes, layers and differences.

use baton_app::checkpoint::{
    CheckpointView, DiffCheckpoints, DiffCheckpointsOutput, ExplainContext, ExplainContextOutput,
    ListCheckpoints, ListWorkflows, WorkflowView,
};
use baton_checkpoint::ChangeKind;
use baton_core::{CheckpointId, Timestamp};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, encode, url};
use crate::widgets::{PAGE_SIZE, bytes, count, default_venture, empty, id_link, line, next_page, time};

const FILTERS: [&str; 2] = ["repo", "venture"];

/// Number of checkpoints on the page of a workflow.
const CHECKPOINTS: i64 = 100;
const MAX_VALUE_CHARS: usize = 300;
const MAX_KEYS: usize = 100;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let venture = default_venture(visitor, query);
    let page = json!({ "venture": venture, "limit": PAGE_SIZE + 1, "offset": query.offset() });
    let found = visitor.ask::<ListWorkflows>(query.params(&["repo"], page)).await?.workflows;
    let body = html! {
        h1 { "Workflows" }
        p.lead { "Saved contexts that outlive chats." }
        @if found.is_empty() {
            (empty("No checkpoints yet", html! {
                p { "An agent saves its context with the tool " code { "workflow_checkpoint_save" } ". You can save one as well:" }
                pre { code { "echo '{\"goal\":\"Add logout\"}' | baton checkpoint save --session my-workflow" } }
            }))
        }
        ul.rows { @for workflow in found.iter().take(PAGE_SIZE) { (row(workflow, visitor.now)) } }
        (next_page(&query.url("/ui/workflows", &FILTERS), query, found.len()))
    };
    Ok(PageContent::new("Workflows", query.url("/api/workflows", &FILTERS), body))
}

fn row(workflow: &WorkflowView, now: Timestamp) -> Markup {
    let page = format!("/ui/workflows/{}", encode(&workflow.session_id.to_string()));
    html! {
        li data-row {
            a.title href=(url(&page, [("venture", workflow.venture.as_str())])) {
                (workflow.name.as_deref().unwrap_or(&workflow.session_id.to_string()))
            }
            p.meta {
                span { (count(workflow.checkpoint_count as usize, "checkpoint")) }
                span { (bytes(workflow.stored_bytes)) " stored" }
                @if let Some(repo) = &workflow.repo { span { (repo) } }
                span { "saved " (time(workflow.last_saved_at, now)) }
            }
        }
    }
}

/// Renders one workflow.
pub(super) async fn render_one(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let id = query.get("workflow_id").unwrap_or_default();
    let venture = default_venture(visitor, query);
    let of_workflow = json!({ "sessionId": id, "venture": venture });
    let listed = json!({ "sessionId": id, "venture": venture, "limit": CHECKPOINTS });
    let checkpoints = visitor.ask::<ListCheckpoints>(listed).await?.checkpoints;
    let explained = match query.get("checkpoint") {
        Some(checkpoint) => json!({ "checkpointId": checkpoint, "venture": venture }),
        None => of_workflow.clone(),
    };
    let explained = visitor.ask::<ExplainContext>(explained).await;
    let can_compare = checkpoints.len() > 1;
    let compared = match (query.get("from"), query.get("to")) {
        (Some(from), Some(to)) => Some(json!({ "from": from, "to": to, "venture": venture })),
        _ => can_compare.then_some(of_workflow),
    };
    let compared = match compared {
        Some(compared) => Some(visitor.ask::<DiffCheckpoints>(compared).await?),
        None => None,
    };
    let page = format!("/ui/workflows/{}", encode(id));
    let body = html! {
        p.meta { a href="/ui/workflows" { "Workflows" } }
        h1 { (id) }
        @if can_compare { (size_plot(&checkpoints)) }
        @if let Ok(explained) = &explained { (layers(explained)) }
        @if let Some(compared) = &compared { (differences(compared)) }
        h2 { "Checkpoints" }
        form method="get" action=(page) {
            input type="hidden" name="venture" value=(venture);
            div.scroll { table {
                thead { tr { @if can_compare { th { "From" } th { "To" } } th { "Checkpoint" } th { "Saved" } th.number { "Size" } th.number { "Stored" } th { "By" } } }
                tbody { @for checkpoint in &checkpoints { (checkpoint_row(checkpoint, compared.as_ref().filter(|_| can_compare), visitor.now)) } }
            } }
            @if can_compare { p.actions { button { "Compare" } } }
        }
    };
    let json = url("/api/checkpoints", [("sessionId", id), ("venture", venture.as_str())]);
    let mut other_json =
        vec![("Layers", url("/api/checkpoints/explain", [("sessionId", id), ("venture", venture.as_str())]))];
    if let Some(compared) = &compared {
        let (from, to) = (compared.from.to_string(), compared.to.to_string());
        other_json.push((
            "Changes",
            url(
                "/api/checkpoints/diff",
                [("from", from.as_str()), ("to", to.as_str()), ("venture", venture.as_str())],
            ),
        ));
    }
    let content = PageContent::new(format!("Workflow {id}"), json, body);
    Ok(PageContent { has_plot: can_compare, other_json, ..content })
}

fn checkpoint_row(
    checkpoint: &CheckpointView,
    compared: Option<&DiffCheckpointsOutput>,
    now: Timestamp,
) -> Markup {
    let id = checkpoint.checkpoint_id.to_string();
    let choice = |name: &str, chosen: CheckpointId| {
        let is_chosen = chosen == checkpoint.checkpoint_id;
        html! { input type="radio" name=(name) value=(id) checked[is_chosen] aria-label=(format!("{name} {id}")); }
    };
    let metadata = &checkpoint.metadata;
    html! {
        tr {
            @if let Some(compared) = compared {
                td { (choice("from", compared.from)) }
                td { (choice("to", compared.to)) }
            }
            td { @if let Some(name) = &metadata.name { (name) " " } (id_link(&id)) @for tag in &metadata.tags { " " span.label { (tag) } } }
            td { (time(checkpoint.created_at, now)) }
            td.number { (bytes(checkpoint.size_bytes)) }
            td.number { (bytes(metadata.stored_bytes)) }
            td { @if let Some(agent) = &metadata.agent { (agent) } }
        }
    }
}

/// Sizes of the contexts over time, oldest first.
fn size_plot(checkpoints: &[CheckpointView]) -> Markup {
    let oldest_first = || checkpoints.iter().rev();
    let x: Vec<f64> = oldest_first().map(|one| one.created_at.as_millis() as f64 / 1_000.0).collect();
    let values: Vec<f64> = oldest_first().map(|one| one.size_bytes as f64 / 1_024.0).collect();
    let plot = json!({ "x": x, "series": [{ "label": "Size", "values": values }], "unit": " KiB" });
    html! { figure.plot data-plot=(plot) aria-label="Size of each checkpoint" {} }
}

fn layers(explained: &ExplainContextOutput) -> Markup {
    let sizes = explained.layers;
    let named = [
        ("critical", sizes.critical),
        ("important", sizes.important),
        ("useful", sizes.useful),
        ("ephemeral", sizes.ephemeral),
    ];
    html! {
        h2 { "Layers" }
        div.numbers { @for (name, size) in named { div { b { (bytes(size as u64)) } (name) } } }
        details id="keys-of-context" {
            summary { "Layer and reason of " (count(explained.keys.len().min(MAX_KEYS), "key")) }
            div.scroll { table {
                thead { tr { th { "Key" } th { "Layer" } th.number { "Size" } th { "Reason" } } }
                tbody { @for key in explained.keys.iter().take(MAX_KEYS) {
                    tr { td { code { (key.path) } } td { (key.layer.as_str()) } td.number { (bytes(key.size_bytes as u64)) } td { (key.why) } }
                } }
            } }
        }
    }
}

fn differences(compared: &DiffCheckpointsOutput) -> Markup {
    let value = |value: &Option<Value>| {
        let text = value.as_ref().map_or_else(String::new, ToString::to_string);
        html! { code { (line(&text, MAX_VALUE_CHARS)) } }
    };
    html! {
        h2 { "Changes" }
        p.meta { span { (id_link(&compared.from.to_string())) " to " (id_link(&compared.to.to_string())) } }
        div.numbers {
            div { b { (compared.added) } "added" }
            div { b { (compared.removed) } "removed" }
            div { b { (compared.changed) } "changed" }
        }
        @if !compared.changes.is_empty() {
            div.scroll { table.diff {
                thead { tr { th { "Key" } th { "Before" } th { "After" } } }
                tbody { @for change in &compared.changes {
                    tr class=(match change.kind { ChangeKind::Added => "added", ChangeKind::Removed => "removed", ChangeKind::Changed => "changed" }) {
                        td { code { (change.path) } } td { (value(&change.old)) } td { (value(&change.new)) }
                    }
                } }
            } }
        }
        @if compared.unlisted > 0 { p.hint { "and " (compared.unlisted) " more" } }
    }
}
