//! *Worker*: queue, throughput, cost per day, and failed items with a button to retry them.

use baton_app::observation::{ListQueue, QueueItemView, ReadQueueStats, WorkerHealth, WorkerHealthOutput};
use baton_core::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use super::View;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{bytes, empty, form_fields, id_link, line, time};

pub(super) async fn render(visitor: &Visitor, _: &Query) -> Result<View, Problem> {
    let health = visitor.ask::<WorkerHealth>(json!({})).await?;
    let stats = visitor.ask::<ReadQueueStats>(json!({})).await?;
    let failed = visitor.ask::<ListQueue>(json!({ "status": "error", "limit": 50 })).await?.items;
    let body = html! {
        div id="live" hx-get="/ui/worker" hx-trigger="sse:change" hx-select="#live" hx-swap="outerHTML" {
            h1 { "Worker" }
            p.lead { (state(&health)) }
            @if let Some(trouble) = &health.model_trouble {
                p.problem { (line(&trouble.error, 400)) " Since " (time(trouble.since, visitor.now)) ", next attempt " (trouble.retry_at) "." }
            }
            div.numbers {
                div { b { (stats.raw) } "waiting" }
                div { b { (stats.processing) } "in progress" }
                div { b { (stats.done) } "done" }
                div { b { (stats.error) } "failed" }
                div { b { (health.observations_today) } "observations today" }
            }
            h2 { "Failed" }
            @if failed.is_empty() {
                (empty("Nothing failed", html! { p { "Every captured tool use was processed or is waiting." } }))
            } @else {
                form.actions method="post" action="/ui/call/queue.retry" { (form_fields(visitor, "/ui/worker")) button { "Retry all" } }
                ul.rows { @for item in &failed { (row(visitor, item, visitor.now)) } }
            }
            (cost(&health))
        }
    };
    Ok(View::new("Worker", "/api/health", body).live())
}

fn state(health: &WorkerHealthOutput) -> String {
    let by = match &health.model {
        Some(model) => format!("Observations are made by {model}"),
        None => "Observations are made by rules, without a model".to_owned(),
    };
    let budget = if health.budget_used_up { " The token budget of today is used up." } else { "" };
    format!("{by}.{budget}")
}

fn row(visitor: &Visitor, item: &QueueItemView, now: Timestamp) -> Markup {
    html! {
        li data-row {
            p.title { (item.tool_name) " in " (item.repo) }
            @if let Some(error) = &item.last_error { p.failed { (line(error, 300)) } }
            p.meta {
                span { (item.attempts) " attempts" }
                span { (bytes(item.raw_bytes)) }
                (time(item.created_at, now))
                (id_link(&item.session_id.to_string()))
                form method="post" action="/ui/call/queue.retry" {
                    (form_fields(visitor, "/ui/worker"))
                    input type="hidden" name="id" value=(item.id);
                    button.quiet { "Retry" }
                }
            }
        }
    }
}

fn cost(health: &WorkerHealthOutput) -> Markup {
    html! {
        @if !health.cost_by_day.is_empty() {
            h2 { "Model usage" }
            div.scroll { table {
                thead { tr { th { "Day (UTC)" } th.number { "Tokens" } th.number { "Cost" } } }
                tbody { @for day in &health.cost_by_day {
                    tr { td { (day.day) } td.number { (day.tokens) } td.number { (format!("${:.4}", day.cost_usd)) } }
                } }
            } }
        }
        @if !health.cost_by_session.is_empty() {
            h2 { "Model usage by session" }
            div.scroll { table {
                thead { tr { th { "Session" } th.number { "Tokens" } th.number { "Cost" } } }
                tbody { @for session in &health.cost_by_session {
                    tr { td { (id_link(&session.session_id.to_string())) } td.number { (session.tokens) } td.number { (format!("${:.4}", session.cost_usd)) } }
                } }
            } }
        }
    }
}
