//! One task: its roles, drift by file, results of checks, and diffs.
//!
//! The context of a task arrives as JSON, as `task.get_context` returns it.

use std::fmt::Display;

use baton_app::task::{ShowTask, ShowTaskOutput, TaskDiff, TaskFiles};
use baton_core::task::TaskRecord;
use baton_core::{ErrorCode, Timestamp};
use baton_qa::{QaFailure, QaRun, QaStatus};
use baton_task::rules::{Difference, DriftEvent, QaResults, RoleState, RoleStatus, TaskContext};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PageContent;
use super::tasks::{drift_label, status_label};
use crate::visitor::{Problem, Query, Visitor, url};
use crate::widgets::{count, empty, id_link, line, list, prose, time};

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 100;
/// Maximum number of failures of a tool.
const MAX_FAILURES: usize = 20;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let id = query.get("id").unwrap_or_default();
    let ShowTaskOutput { task, files, problem } = visitor.ask::<ShowTask>(json!({ "id": id })).await?;
    let body = html! {
        (heading(&task, visitor.now))
        @if let Some(problem) = &problem {
            (empty("The files of this task are not shown", html! { p { (problem) } }))
        }
        @if let Some(files) = &files { (content(files, &task, visitor.now)?) }
    };
    Ok(PageContent::new(format!("Task {}", task.task_id), url("/api/tasks/show", [("id", id)]), body))
}

fn heading(task: &TaskRecord, now: Timestamp) -> Markup {
    html! {
        p.meta { a href="/ui/tasks" { "Tasks" } }
        h1 { (line(&task.title, 300)) }
        p.meta {
            (status_label(task.status))
            (drift_label(task.open_drifts))
            span.id { (task.task_id) }
            @if let Some(repo) = &task.repo { span { (repo) } }
            span { "updated " (time(task.updated_at, now)) }
        }
        p.meta { span { (task.host) ": " code { (task.checkout) } } }
    }
}

fn content(files: &TaskFiles, task: &TaskRecord, now: Timestamp) -> Result<Markup, Problem> {
    let context: TaskContext =
        serde_json::from_value(Value::Object(files.context.clone())).map_err(|_| Problem {
            code: ErrorCode::Internal,
            message: format!("cannot read the context of {}", task.task_id),
            hint: Some("Run baton task get-context in the checkout.".to_owned()),
        })?;
    let described = &context.immutable.task_snapshot;
    Ok(html! {
        @if !files.warnings.is_empty() {
            ul.problem.lines { @for warning in &files.warnings { li { (warning) } } }
        }
        @if !files.next.is_empty() { p.meta { span { "Next: " code { (files.next) } } } }
        section.panel {
            (prose(&described.description))
            (list("Acceptance criteria", &described.acceptance_criteria))
        }
        h2 { "Roles" }
        ol.pipeline { @for role in &context.pipeline { (role_card(role.as_str(), context.coordination.get(role), now)) } }
        (drifts(&context.drift.events, now))
        (checks(&context, now))
        @if !files.diffs.is_empty() {
            h2 { "Diffs" }
            @for (index, diff) in files.diffs.iter().enumerate() { (diff_details(diff, index, task)) }
        }
        @if !context.notes.is_empty() {
            h2 { "Notes" }
            ul.rows { @for note in &context.notes {
                li { p.meta { span { (note.agent) " (" (note.written_by) ")" } (time(note.written_at, now)) } (prose(&note.text)) }
            } }
        }
    })
}

/// Shows a status with a colour: good, bad or in between.
fn state(status: impl Display) -> Markup {
    let status = status.to_string();
    let tone = match status.as_str() {
        "done" | "passed" => "label good",
        "blocked" | "failed" => "label bad",
        "in_progress" | "unknown" => "label warn",
        _ => "label",
    };
    html! { span class=(tone) { (status.replace('_', " ")) } }
}

fn role_card(role: &str, state_of_role: Option<&RoleState>, now: Timestamp) -> Markup {
    html! {
        li.card data-row tabindex="-1" {
            p.head { span.agent { (role) } (state(state_of_role.map_or(RoleStatus::Pending, |role| role.status))) }
            @if let Some(role) = state_of_role {
                p.meta {
                    @if let Some(actor) = &role.actor { span { (actor) } }
                    @match (role.started_at, role.completed_at) {
                        (_, Some(at)) => span { "finished " (time(at, now)) },
                        (Some(at), None) => span { "started " (time(at, now)) },
                        (None, None) => {},
                    }
                    @if role.rounds > 1 { span { (role.rounds) " rounds" } }
                    @if let Some(snapshot) = &role.worktree_snapshot {
                        span { (snapshot.diff_stat) " in " (count(snapshot.files_changed.len(), "file")) }
                    }
                    @if let Some(results) = &role.qa_results { span { "checks " (state(results.status)) } }
                    @if let Some(session) = &role.session_id { (id_link(session)) }
                }
                @for finding in &role.blocking_findings { p.failed { (finding) } }
            }
        }
    }
}

fn drifts(events: &[DriftEvent], now: Timestamp) -> Markup {
    html! {
        @if !events.is_empty() { h2 { "Drift" } }
        // An open drift blocks the task, and it is always the newest.
        @for event in events.iter().rev() {
            section.panel {
                p.meta {
                    @match &event.resolution {
                        None => span.label.bad { "open" },
                        Some(_) => span.label { "resolved" },
                    }
                    span { "differs from snapshot " (event.snapshot) " of " (event.expected_agent) }
                    span { "found by " (event.detected_by) " " (time(event.detected_at, now)) }
                }
                div.scroll { table {
                    thead { tr { th { "File" } th { "Change" } } }
                    tbody { @for difference in event.differences.iter().take(MAX_ROWS) { (difference_row(difference)) } }
                } }
                @let hidden = event.difference_count.saturating_sub(event.differences.len().min(MAX_ROWS) as u64);
                @if hidden > 0 { p.hint { "and " (hidden) " more" } }
                @if let Some(resolution) = &event.resolution {
                    p.meta { span { "resolved by " (resolution.resolved_by) " " (time(resolution.resolved_at, now)) } }
                    (prose(&resolution.note))
                }
            }
        }
    }
}

fn difference_row(difference: &Difference) -> Markup {
    let Difference { kind, path, in_scope, message, .. } = difference;
    let about_file = path.as_ref().and_then(|path| message.strip_prefix(path.as_str())?.strip_prefix(": "));
    let about_file = about_file.map(|text| text.trim_end_matches(" (out of scope)"));
    html! {
        tr {
            td { @if let Some(path) = path { code { (path) } } @else { "working tree" } }
            td {
                (kind.to_string().replace('_', " ")) " "
                @if *in_scope == Some(false) { span.label { "out of scope" } }
                p.hint { (about_file.unwrap_or(message)) }
            }
        }
    }
}

fn checks(context: &TaskContext, now: Timestamp) -> Markup {
    let baseline = &context.immutable.validation_baseline;
    let of_baseline = Some(&baseline.initial_results).filter(|results| results.status != QaStatus::Pending);
    let of_roles = context
        .pipeline
        .iter()
        .filter_map(|role| Some((role.as_str(), context.coordination.get(role)?.qa_results.as_ref()?)));
    let all: Vec<(&str, &QaResults)> =
        of_baseline.map(|results| ("baseline", results)).into_iter().chain(of_roles).collect();
    html! {
        h2 { "Checks" }
        @if all.is_empty() {
            @if baseline.commands.is_empty() {
                p.hint { "The task names no checks." }
            } @else {
                p.hint { "No results yet. Checks of this task: " @for command in &baseline.commands { code { (command) } " " } }
            }
        }
        @for (role, results) in &all { (check_panel(role, results, now)) }
    }
}

fn check_panel(role: &str, results: &QaResults, now: Timestamp) -> Markup {
    html! {
        section.panel {
            p.meta {
                b { (role) } (state(results.status))
                @if let Some(actor) = &results.actor { span { (actor) } }
                @if let Some(at) = results.recorded_at { (time(at, now)) }
            }
            @if let Some(reason) = &results.reason { p.failed { (reason) } }
            @if !results.commands.is_empty() {
                div.scroll { table {
                    thead { tr { th { "Command" } th { "Result" } th.number { "Exit code" } th.number { "Duration" } } }
                    tbody { @for command in results.commands.iter().take(MAX_ROWS) { tr {
                        td { code { (command.command) } }
                        td { (state(command.status)) }
                        td.number { (command.exit_code) }
                        td.number { (format!("{:.1} s", command.duration_ms as f64 / 1_000.0)) }
                    } } }
                } }
            }
            @for run in &results.runs { (run_result(run)) }
        }
    }
}

fn run_result(run: &QaRun) -> Markup {
    let counts = [
        (run.passed, "passed"),
        (run.failed, "failed"),
        (run.skipped, "skipped"),
        (run.errors, "errors"),
        (run.warnings, "warnings"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    html! {
        p.meta { span { (run.tool) ": " (if counts.is_empty() { "no results".to_owned() } else { counts.join(", ") }) } }
        @if !run.failures.is_empty() {
            ul.lines {
                @for failure in run.failures.iter().take(MAX_FAILURES) { li.failed { (failure_text(failure)) } }
                @if run.failures.len() > MAX_FAILURES { li { "and " (run.failures.len() - MAX_FAILURES) " more" } }
            }
        }
    }
}

fn failure_text(failure: &QaFailure) -> Markup {
    html! {
        code { (failure.name) }
        @if let Some(file) = &failure.file {
            " in " code { (file) @if let Some(line) = failure.line { ":" (line) } }
        }
        @if let Some(message) = &failure.message { ": " (line(message, 300)) }
    }
}

fn diff_details(diff: &TaskDiff, index: usize, task: &TaskRecord) -> Markup {
    let is_drift = diff.kind == "drift";
    let command = if is_drift {
        format!("baton task get-diff {} --type drift --content", task.task_id)
    } else {
        format!("baton task get-diff {} --agent {} --type incremental --content", task.task_id, diff.agent)
    };
    html! {
        details.panel id=(format!("diff-{index}")) open[is_drift && task.open_drifts > 0] {
            summary {
                @if is_drift { "Changes outside the roles" } @else { "Changes of " (diff.agent) }
                " (" (diff.diff_stat) ")"
            }
            @if diff.content.is_empty() { p.hint { "No changes." } }
            pre.diff-text { @for (kind, lines) in runs_of_lines(&diff.content) {
                @match kind { Some(class) => span class=(class) { (lines) }, None => (lines) }
            } }
            @if diff.is_truncated { p.hint { "The diff is longer. Show all of it in the checkout with " code { (command) } } }
        }
    }
}

/// Splits a diff into runs of added, removed and other lines.
fn runs_of_lines(diff: &str) -> Vec<(Option<&'static str>, String)> {
    let mut runs: Vec<(Option<&'static str>, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        let kind = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => None,
            Some(b'+') => Some("added"),
            Some(b'-') => Some("removed"),
            _ => None,
        };
        match runs.last_mut() {
            Some((last, text)) if *last == kind => text.push_str(line),
            _ => runs.push((kind, line.to_owned())),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_are_grouped_by_kind() {
        let runs = runs_of_lines("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n-older\n+new\n");
        let kinds: Vec<_> = runs.iter().map(|(kind, text)| (*kind, text.lines().count())).collect();
        assert_eq!(kinds, [(None, 4), (Some("removed"), 2), (Some("added"), 1)]);
    }
}
