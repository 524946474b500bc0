//! *Requests*: the request log, with a plot of response times.

use baton_app::request::ListRequests;
use baton_core::{RequestRecord, Timestamp};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{empty, line, time};

const LIMIT: i64 = 100;
const FILTERS: [&str; 3] = ["status", "endpoint", "since"];

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let before = query.get("before").and_then(|before| before.parse::<i64>().ok());
    let page = json!({ "limit": LIMIT, "before": before });
    let found = visitor.ask::<ListRequests>(query.params(&FILTERS, page)).await?;
    let requests: Vec<RequestRecord> = found.requests.into_iter().map(|request| request.record).collect();
    let failed = requests.iter().filter(|request| request.status_code >= 400).count();
    let body = html! {
        h1 { "Requests" }
        form.filters method="get" action="/ui/requests" {
            div { label for="endpoint" { "Endpoint" } input id="endpoint" name="endpoint" value=(query.get("endpoint").unwrap_or_default()) placeholder="/sod" data-search; }
            div {
                label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "Any" }
                    @for status in ["2xx", "4xx", "5xx"] { option selected[query.get("status") == Some(status)] { (status) } }
                }
            }
            div { button { "Filter" } }
        }
        @if requests.is_empty() {
            (empty("No requests", html! { p { "Requests of agents and of the command line appear here." } }))
        } @else {
            p.meta { span { @match requests.len() { 1 => "1 entry", number => { (number) " entries" } } } span { (failed) " failed" } span { "pages of the dashboard are not listed" } }
            @if requests.len() > 1 { (plot(&requests)) }
            div.scroll { table {
                thead { tr { th { "Time" } th { "Request" } th.number { "Status" } th.number { "Duration" } th { "By" } } }
                tbody { @for request in &requests { (row(request, visitor.now)) } }
            } }
        }
        @if let Some(before) = found.next_before {
            p.pager { a.button href=(earlier_url(query, before)) { "Earlier requests" } }
        }
    };
    let content = PageContent::new("Requests", query.url("/api/requests", &FILTERS), body);
    Ok(PageContent { has_plot: requests.len() > 1, ..content })
}

/// Returns the URL of the next page, with the filters of this one.
fn earlier_url(query: &Query, before: i64) -> String {
    let filters = FILTERS.iter().filter_map(|name| Some((*name, query.get(name)?)));
    url("/ui/requests", filters.chain([("before", before.to_string().as_str())]))
}

fn row(request: &RequestRecord, now: Timestamp) -> Markup {
    let tone = if request.status_code >= 400 { "label bad" } else { "label good" };
    html! {
        tr {
            td { (time(request.timestamp, now)) }
            td {
                code { (request.method) " " (request.endpoint) }
                @if request.request_count > 1 { " " span.label { (request.request_count) " times" } }
                @if let Some(error) = &request.error_message { p.failed { (line(error, 200)) } }
            }
            td.number { span class=(tone) { (request.status_code) } }
            td.number { (request.duration_ms) " ms" }
            td { @match (&request.agent, &request.actor_key_id) { (Some(agent), _) => (agent), (None, Some(key)) => (key), (None, None) => {} } }
        }
    }
}

/// Response times, oldest first; failed requests are a second series.
fn plot(requests: &[RequestRecord]) -> Markup {
    let oldest_first = || requests.iter().rev();
    let x: Vec<f64> = oldest_first().map(|one| one.timestamp.as_millis() as f64 / 1_000.0).collect();
    let durations = |is_failed: bool| -> Vec<Option<i64>> {
        oldest_first().map(|one| (is_failed == (one.status_code >= 400)).then_some(one.duration_ms)).collect()
    };
    let series = json!([
        { "label": "Succeeded", "values": durations(false) },
        { "label": "Failed", "values": durations(true) },
    ]);
    let plot = json!({ "x": x, "series": series, "unit": " ms", "points": true });
    html! { figure.plot data-plot=(plot) aria-label="Response times" {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_keeps_the_filters() {
        let given = [("status", "4xx"), ("endpoint", "/sod"), ("before", "90")];
        let query = Query(given.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!(earlier_url(&query, 70), "/ui/requests?status=4xx&endpoint=%2Fsod&before=70");
        assert_eq!(earlier_url(&Query::default(), 70), "/ui/requests?before=70");
    }
}
