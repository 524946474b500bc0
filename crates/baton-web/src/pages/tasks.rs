//! *Tasks*: the tasks of all checkouts, with their status, current role and drift.

use baton_app::task::ListTasks;
use baton_core::Timestamp;
use baton_core::task::{TaskRecord, TaskStatus};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::View;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{count, default_venture, empty, line, time};

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<View, Problem> {
    let mut params = query.pick(&["repo", "status"]);
    params.insert("venture".to_owned(), default_venture(visitor, query).into());
    params.insert("limit".to_owned(), json!(100));
    let mut tasks = visitor.ask::<ListTasks>(Value::Object(params)).await?.tasks;
    if let Some(id) = query.get("id") {
        tasks.retain(|task| task.task_id.as_str() == id);
    }
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
        @if query.get("id").is_some() { p { a href="/ui/tasks" { "Show all tasks" } } }
        @if tasks.is_empty() {
            (empty("No tasks", html! {
                p { "A task passes from role to role in one checkout. Create one in a checkout:" }
                pre { code { "baton task init 'Add logout'" } }
            }))
        }
        ul.rows { @for task in &tasks { (row(task, visitor.now)) } }
    };
    Ok(View::new("Tasks", query.url("/api/tasks", &["repo", "status", "venture"]), body))
}

fn name(status: TaskStatus) -> String {
    status.as_str().replace('_', " ")
}

fn row(task: &TaskRecord, now: Timestamp) -> Markup {
    let tone = match task.status {
        TaskStatus::Blocked => "label bad",
        TaskStatus::InProgress => "label warn",
        TaskStatus::Done | TaskStatus::Completed => "label good",
        TaskStatus::Pending | TaskStatus::Waiting => "label",
    };
    html! {
        li data-row tabindex="-1" {
            p.title { (line(&task.title, 200)) }
            p.meta {
                span class=(tone) { (name(task.status)) }
                @if task.open_drifts > 0 { span.label.bad { (count(task.open_drifts as usize, "open drift")) } }
                @if let Some(holder) = &task.holder { span { "held by " (holder) } }
                span.id { (task.task_id) }
                @if let Some(repo) = &task.repo { span { (repo) } }
                (time(task.updated_at, now))
            }
            p.meta { span { (task.host) ": " code { (task.checkout) } } }
            @if task.open_drifts > 0 {
                p.hint { "The files are in the checkout. See what changed there with " code { "baton task verify-worktree " (task.task_id) } }
            }
        }
    }
}
