//! *Tasks*: the tasks of all checkouts, with their status, current role and drift.

use baton_app::task::ListTasks;
use baton_core::Timestamp;
use baton_core::task::{TaskRecord, TaskStatus};
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{PAGE_SIZE, count, default_venture, empty, line, next_page, page_of, time};

const FILTERS: [&str; 3] = ["repo", "status", "venture"];

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let venture = default_venture(visitor, query);
    let page = json!({ "venture": venture, "limit": PAGE_SIZE + 1, "offset": query.offset() });
    let tasks = visitor.ask::<ListTasks>(query.params(&["repo", "status"], page)).await?.tasks;
    let body = html! {
        h1 { "Tasks" }
        form.filters method="get" action="/ui/tasks" {
            div { label for="repo" { "Repository" } input id="repo" name="repo" value=(query.get("repo").unwrap_or_default()) placeholder="owner/name" data-search; }
            div {
                label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "Any" }
                    @for status in TaskStatus::ALL {
                        option value=(status.as_str()) selected[query.get("status") == Some(status.as_str())] { (name(status)) }
                    }
                }
            }
            div { button { "Filter" } }
        }
        @if tasks.is_empty() {
            (empty("No tasks", html! {
                p { "A task passes from role to role in one checkout. Write a task file, then run in the checkout:" }
                pre { code { "baton task init-context TASK-0824" } }
            }))
        }
        ul.rows { @for task in tasks.iter().take(PAGE_SIZE) { (row(task, visitor.now)) } }
        (next_page(&query.url("/ui/tasks", &FILTERS), query, tasks.len()))
    };
    Ok(PageContent::new("Tasks", query.url("/api/tasks", &FILTERS), body))
}

fn name(status: TaskStatus) -> String {
    status.as_str().replace('_', " ")
}

/// Shows the status of a task.
pub(super) fn status_label(status: TaskStatus) -> Markup {
    let tone = match status {
        TaskStatus::Blocked => "label bad",
        TaskStatus::InProgress => "label warn",
        TaskStatus::Done | TaskStatus::Completed => "label good",
        TaskStatus::Pending | TaskStatus::Waiting => "label",
    };
    html! { span class=(tone) { (name(status)) } }
}

/// Shows the number of open drifts, unless there is none.
pub(super) fn drift_label(open: u64) -> Markup {
    html! { @if open > 0 { span.label.bad { (count(open as usize, "open drift")) } } }
}

fn row(task: &TaskRecord, now: Timestamp) -> Markup {
    html! {
        li data-row {
            a.title href=[page_of(&task.item_id())] { (line(&task.title, 200)) }
            p.meta {
                (status_label(task.status))
                (drift_label(task.open_drifts))
                @if let Some(holder) = &task.holder { span { "held by " (holder) } }
                span.id { (task.task_id) }
                @if let Some(repo) = &task.repo { span { (repo) } }
                (time(task.updated_at, now))
            }
            p.meta { span { (task.host) ": " code { (task.checkout) } } }
        }
    }
}
