//! *Worker*: queue, throughput, cost per day and model, and failed items with a button to retry them.

use baton_app::observation::{ListQueue, QueueItemView, ReadQueueStats, WorkerHealth, WorkerHealthOutput};
use baton_core::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{bytes, empty, form_fields, id_link, line, time};

pub(super) async fn render(visitor: &Visitor, _: &Query) -> Result<PageContent, Problem> {
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
                div { b { (stats.raw) } "pending" }
                div { b { (stats.processing) } "in progress" }
                div { b { (stats.done) } "done" }
                div { b { (stats.error) } "failed" }
                div { b { (health.observations_today) } "observations today" }
            }
            @if !health.observations_by_hour.is_empty() { (throughput(&health, visitor.now)) }
            h2 { "Failed" }
            @if failed.is_empty() {
                (empty("No failed items", html! { p { "Every captured tool use was processed or is pending." } }))
            } @else {
                @if visitor.can_write() {
                    form.actions method="post" action="/ui/call/queue.retry" { (form_fields(visitor, "/ui/worker")) button { "Retry all" } }
                }
                ul.rows { @for item in &failed { (row(visitor, item, visitor.now)) } }
            }
            (cost(&health))
        }
    };
    let other_json =
        vec![("Queue", "/api/queue".to_owned()), ("Size of the queue", "/api/queue/stats".to_owned())];
    Ok(PageContent { other_json, has_plot: true, ..PageContent::new("Worker", "/api/health", body).live() })
}

/// Observations of tool uses captured in each of the last 24 hours.
fn throughput(health: &WorkerHealthOutput, now: Timestamp) -> Markup {
    const HOUR: i64 = 3_600;
    let this_hour = now.as_millis() / 1_000 / HOUR * HOUR;
    let hours: Vec<i64> = (0..24).rev().map(|ago| this_hour - ago * HOUR).collect();
    let captured = |hour: &i64| {
        let found = health.observations_by_hour.iter().find(|one| one.hour.as_millis() == hour * 1_000);
        found.map_or(0, |found| found.observations)
    };
    let values: Vec<u64> = hours.iter().map(captured).collect();
    let plot = json!({ "x": hours, "series": [{ "label": "Observations", "values": values }] });
    html! {
        h2 { "Observations per hour" }
        figure.plot data-plot=(plot) aria-label="Observations of tool uses captured in each of the last 24 hours" {}
    }
}

fn state(health: &WorkerHealthOutput) -> String {
    let by = match &health.model {
        Some(model) => format!("Observations are created by {model}"),
        None => "Observations are created by rules, without a model".to_owned(),
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
                @if visitor.can_write() {
                    form method="post" action="/ui/call/queue.retry" {
                        (form_fields(visitor, "/ui/worker"))
                        input type="hidden" name="id" value=(item.id);
                        button.quiet { "Retry" }
                    }
                }
            }
        }
    }
}

fn dollars(amount: f64) -> String {
    format!("${amount:.4}")
}

fn cost(health: &WorkerHealthOutput) -> Markup {
    html! {
        @if !health.cost_by_day.is_empty() {
            h2 { "Model usage by day" }
            div.scroll { table {
                thead { tr { th { "Day (UTC)" } th { "Model" } th.number { "Tokens" } th.number { "Cost" } } }
                tbody { @for day in &health.cost_by_day {
                    @for model in &day.models {
                        tr { td { (day.day) } td { code { (model.model) } } td.number { (model.tokens) } td.number { (dollars(model.cost_usd)) } }
                    }
                    @if day.models.len() > 1 {
                        tr { td { (day.day) } td { "all models" } td.number { b { (day.tokens) } } td.number { b { (dollars(day.cost_usd)) } } }
                    }
                } }
            } }
        }
        @if !health.cost_by_session.is_empty() {
            h2 { "Model usage by session" }
            div.scroll { table {
                thead { tr { th { "Session" } th.number { "Tokens" } th.number { "Cost" } } }
                tbody { @for session in &health.cost_by_session {
                    tr { td { (id_link(&session.session_id.to_string())) } td.number { (session.tokens) } td.number { (dollars(session.cost_usd)) } }
                } }
            } }
        }
    }
}
