//! Text output of the task verbs.

use baton_core::counted;
use baton_core::task::Role;
use baton_qa::{QaFailure, QaStatus};
use baton_task::rules::{RoleStatus, SummaryLine};
use baton_task::{
    GetContextOutput, InitContextOutput, ListTasksOutput, RebuildContextOutput, RecordQaOutput,
    ResolveDriftOutput, SnapshotWorktreeOutput, SweepContextsOutput, TaskLine, UpdateAgentOutput,
};

use super::context_format;
use crate::terminal::{at, wrap};

/// Maximum number of failures of a check that are printed.
const MAX_FAILURES: usize = 10;

pub(super) fn initialized(output: &InitContextOutput) -> String {
    let roles: Vec<&str> = output.pipeline.iter().map(Role::as_str).collect();
    let mut lines = vec![format!("{} has a context: {}", output.task_id, output.context_path)];
    lines.push(format!("roles: {}", roles.join(" → ")));
    lines.push(table(&output.summary));
    lines.join("\n")
}

fn table(summary: &[SummaryLine]) -> String {
    let width = summary.iter().map(|line| line.field.len()).max().unwrap_or(0);
    let amount = summary.iter().map(|line| line.amount.len()).max().unwrap_or(0);
    summary
        .iter()
        .map(|line| format!("  {:<width$}  {:<amount$}  {}", line.field, line.amount, line.source))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Appends the next command of the workflow.
pub(super) fn then(text: String, next: &str) -> String {
    if next.is_empty() { text } else { format!("{text}\nnext: {next}") }
}

pub(super) fn context(output: &GetContextOutput) -> String {
    match (&output.context, &output.role) {
        (Some(context), _) => context_format::whole(context),
        (None, Some(role)) => context_format::of_role(role),
        (None, None) => output.task_id.to_string(),
    }
}

pub(super) fn resolved(output: &ResolveDriftOutput) -> String {
    let mut lines = vec![format!(
        "{} resolved by {}; {} continues from snapshot {}",
        counted(output.resolved, "drift"),
        output.resolved_by,
        output.task_id,
        output.snapshot
    )];
    lines.extend(output.restored.iter().map(|path| format!("restored: {path}")));
    let kept = output.set_aside.iter();
    lines.extend(
        kept.map(|kept| format!("previous content of {}: {}", kept.original_path, kept.artifact.path)),
    );
    lines.join("\n")
}

pub(super) fn updated(output: &UpdateAgentOutput) -> String {
    let verified = output
        .verified_snapshot
        .map(|snapshot| format!("; the working tree matches snapshot {snapshot}"))
        .unwrap_or_default();
    let mut lines =
        vec![format!("{} of {} is {}{verified}", output.agent, output.task_id, output.state.status)];
    lines.extend(output.notes.iter().map(context_format::note));
    lines.join("\n")
}

pub(super) fn snapshot(output: &SnapshotWorktreeOutput) -> String {
    let snapshot = &output.snapshot;
    let mut lines = vec![format!(
        "snapshot {} of {}: {} in {}",
        snapshot.sequence,
        output.agent,
        snapshot.diff_stat,
        counted(snapshot.files_changed.len() as u64, "file")
    )];
    lines.push(format!("diff from base: {}", snapshot.diff_from_base));
    if let (Some(path), Some(agent)) = (&snapshot.diff_from_previous, &snapshot.previous_agent) {
        lines.push(format!("diff from {agent}: {path}"));
    }
    lines.join("\n")
}

pub(super) fn quality(output: &RecordQaOutput) -> String {
    let reason = output.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut lines = vec![format!("{}{reason}", output.status)];
    lines.extend(output.commands.iter().map(context_format::command));
    for run in &output.runs {
        lines.push(context_format::run(run));
        if !run.is_clean() {
            lines.extend(run.failures.iter().take(MAX_FAILURES).map(failure));
            let rest = run.failures.len().saturating_sub(MAX_FAILURES);
            lines.extend((rest > 0).then(|| format!("  and {rest} more")));
        }
    }
    if output.is_baseline {
        lines.push("recorded as the baseline that later results are compared with".into());
    }
    if let Some(comparison) = &output.compared_with_baseline {
        lines.extend(comparison.new_failures.iter().map(|name| format!("new failure: {name}")));
        lines.extend(comparison.fixed.iter().map(|name| format!("fixed: {name}")));
        lines.extend(
            comparison.missing_tools.iter().map(|tool| format!("missing: {tool} ran in the baseline")),
        );
    }
    lines.push(format!("log: {}", output.qa_log_path));
    if output.status == QaStatus::Failed && !output.is_baseline {
        lines.push("fix the failures, then run the QA commands again".into());
    }
    lines.join("\n")
}

fn failure(failure: &QaFailure) -> String {
    let line = failure.line.map(|line| format!(":{line}")).unwrap_or_default();
    let location = failure.file.as_ref().map(|file| format!(" in {file}{line}")).unwrap_or_default();
    let message = failure.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("  {}{location}{message}", failure.name)
}

pub(super) fn rebuilt(output: &RebuildContextOutput) -> String {
    let repaired: String = output.repaired.iter().map(|file| format!("\nrewritten: {file}")).collect();
    if !output.changed {
        return format!(
            "the context of {} is up to date (revision {}){repaired}",
            output.task_id, output.immutable_revision
        );
    }
    let sources = if output.changed_sources.is_empty() {
        "HEAD, or the files that match the scope".to_owned()
    } else {
        output.changed_sources.join(", ")
    };
    format!(
        "{} is at revision {} now; changed: {sources}{repaired}\n{}",
        output.task_id,
        output.immutable_revision,
        table(&output.summary)
    )
}

pub(super) fn swept(output: &SweepContextsOutput) -> String {
    let (archived, deleted) =
        if output.dry_run { ("would archive", "would delete") } else { ("archived", "deleted") };
    let mut lines: Vec<String> = output.swept.iter().map(|id| format!("{archived} {id}")).collect();
    lines.extend(output.expired.iter().map(|id| format!("{deleted} {id}, archived more than 30 days ago")));
    lines.extend(output.unreadable.iter().map(|problem| format!("skipped: {problem}")));
    if lines.is_empty() { "nothing to sweep".into() } else { lines.join("\n") }
}

pub(super) fn list(output: &ListTasksOutput) -> String {
    if output.tasks.is_empty() {
        return then("no task has a context here".into(), "baton task init-context TASK");
    }
    wrap(&output.tasks.iter().map(line).collect::<Vec<_>>().join("\n"), 4)
}

fn line(task: &TaskLine) -> String {
    if let Some(problem) = &task.problem {
        return format!("{}  {problem}", task.task_id);
    }
    let status = |role: &Role| {
        let status = task.statuses.get(role).copied().unwrap_or(RoleStatus::Pending);
        format!("{role} {status}")
    };
    let statuses: Vec<String> = task.pipeline.iter().map(status).collect();
    let drift = if task.drift_budget > 0 {
        format!("  {} open", counted(task.drift_budget, "drift"))
    } else {
        String::new()
    };
    let archived =
        task.archived_at.map(|archived_at| format!("  archived {}", at(archived_at))).unwrap_or_default();
    let next = task.next.as_ref().map(|next| format!("\n  next: {next}")).unwrap_or_default();
    let warnings: String = task.warnings.iter().map(|warning| format!("\n  {warning}")).collect();
    format!(
        "{}  {}  {}{drift}{archived}{warnings}{next}",
        task.task_id,
        task.title.as_deref().unwrap_or_default(),
        statuses.join(", ")
    )
}
