//! Answers about tasks, for people to read.

use baton_core::task::qa::QaFailure;
use baton_core::task::{DriftEvent, Evidence, Role, RoleStatus, SummaryLine, TaskContext, counted};
use baton_task::{
    AttachEvidenceOutput, GetContextOutput, InitContextOutput, ListTasksOutput, RebuildContextOutput,
    RecordQaOutput, RoleContext, SnapshotWorktreeOutput, SweepContextsOutput, TaskLine, UpdateAgentOutput,
};

/// How many of a list are named.
const NAMED: usize = 10;

pub(super) fn begun(output: &InitContextOutput) -> String {
    let roles: Vec<&str> = output.pipeline.iter().map(Role::as_str).collect();
    let mut lines = vec![format!("{} has a context: {}", output.task_id, output.context_path)];
    lines.push(format!("roles: {}", roles.join(" → ")));
    lines.push(table(&output.summary));
    if let Some(first) = output.pipeline.first() {
        lines.push(format!(
            "next: baton task update-agent {} --agent {first} --status in_progress",
            output.task_id
        ));
    }
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

pub(super) fn context(output: &GetContextOutput) -> String {
    match (&output.context, &output.role) {
        (Some(context), _) => whole(context),
        (None, Some(role)) => of_role(role),
        (None, None) => output.task_id.to_string(),
    }
}

fn whole(context: &TaskContext) -> String {
    let task = &context.immutable.task_snapshot;
    let mut lines = vec![format!("{}  {}  [{} {}]", context.task_id, task.title, task.priority, task.area)];
    lines.push(task.description.trim_end().to_owned());
    list_of(
        &mut lines,
        "acceptance criteria",
        task.acceptance_criteria.iter().map(|text| text.trim_end().to_owned()),
    );
    list_of(
        &mut lines,
        "standards",
        context.immutable.standards_citations.iter().map(|citation| {
            format!(
                "{}#{} {}: {}",
                citation.file,
                citation.section,
                citation.line_span.as_deref().unwrap_or(""),
                citation.requirement
            )
        }),
    );
    list_of(&mut lines, "checks", context.immutable.validation_baseline.commands.iter().cloned());
    list_of(&mut lines, "scope", context.immutable.repo_paths.iter().cloned());
    list_of(&mut lines, "not in scope", task.scope_out.iter().map(|text| text.trim_end().to_owned()));
    list_of(&mut lines, "evidence", context.evidence.iter().map(attached));
    list_of(&mut lines, "open drifts", context.drift.unresolved().map(drift));
    for role in &context.pipeline {
        let Some(state) = context.coordination.get(role) else { continue };
        lines.push(format!("{role}: {}", state.status));
        lines.extend(state.blocking_findings.iter().map(|finding| format!("  blocked by: {finding}")));
        if let Some(snapshot) = &state.worktree_snapshot {
            lines.push(format!(
                "  snapshot {}: {} in {}",
                snapshot.sequence,
                snapshot.diff_stat,
                counted(snapshot.files_changed.len() as u64, "file")
            ));
        }
    }
    lines.join("\n")
}

fn list_of(lines: &mut Vec<String>, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("  {item}")).collect();
    if !items.is_empty() {
        lines.push(format!("{title}:"));
        lines.extend(items);
    }
}

/// A role pastes this into its own prompt: the export as JSON, then where everybody stands.
fn of_role(role: &RoleContext) -> String {
    let export = serde_json::to_string_pretty(&role.export).unwrap_or_default();
    let mut lines = vec![export];
    let order: Vec<Role> = serde_json::from_value(role.export["pipeline"].clone()).unwrap_or_default();
    let stands = |name: &Role| role.statuses.get(name).map(|status| format!("{name}: {status}"));
    lines.extend(order.iter().filter_map(stands));
    for (name, findings) in &role.blocking_findings {
        lines.extend(findings.iter().map(|finding| format!("{name} is blocked by: {finding}")));
    }
    list_of(&mut lines, "evidence", role.evidence.iter().map(attached));
    list_of(&mut lines, "open drifts", role.open_drifts.iter().map(drift));
    lines.join("\n")
}

/// How a piece of evidence is cited, and where its text is.
fn attached(evidence: &Evidence) -> String {
    let lines = evidence.lines.as_deref().map(|lines| format!("#{lines}")).unwrap_or_default();
    let kept = evidence.excerpt.as_ref().map(|kept| format!(", kept as {}", kept.path)).unwrap_or_default();
    format!("{}  {}  {}{lines}{kept}", evidence.id, evidence.kind, evidence.path)
}

fn drift(event: &DriftEvent) -> String {
    let named: Vec<String> = event
        .differences
        .iter()
        .take(NAMED)
        .map(|difference| format!("\n    {}", difference.message))
        .collect();
    let rest = event.difference_count.saturating_sub(named.len() as u64);
    let more = if rest > 0 { format!("\n    and {rest} more") } else { String::new() };
    format!(
        "since {}: not as {} left it in snapshot {}{}{more}",
        event.detected_at,
        event.expected_agent,
        event.snapshot,
        named.concat()
    )
}

pub(super) fn updated(output: &UpdateAgentOutput) -> String {
    let verified = output
        .verified_snapshot
        .map(|snapshot| format!("; the working tree is as snapshot {snapshot} left it"))
        .unwrap_or_default();
    format!("{} of {} is {}{verified}", output.agent, output.task_id, output.state.status)
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
    let mut lines: Vec<String> = Vec::new();
    for run in &output.runs {
        lines.push(format!(
            "{}: {} passed, {} failed, {} skipped, {}, {}",
            run.tool,
            run.passed,
            run.failed,
            run.skipped,
            counted(run.errors, "error"),
            counted(run.warnings, "warning")
        ));
        if !run.is_clean() {
            lines.extend(run.failures.iter().take(NAMED).map(failure));
            let rest = run.failures.len().saturating_sub(NAMED);
            lines.extend((rest > 0).then(|| format!("  and {rest} more")));
        }
    }
    if output.is_baseline {
        lines.push("this is the baseline that later runs are compared with".into());
    }
    if let Some(comparison) = &output.compared_with_baseline {
        lines.extend(comparison.new_failures.iter().map(|name| format!("new failure: {name}")));
        lines.extend(comparison.fixed.iter().map(|name| format!("fixed: {name}")));
    }
    lines.push(format!("kept as {}", output.qa_log_path));
    lines.join("\n")
}

fn failure(failure: &QaFailure) -> String {
    let line = failure.line.map(|line| format!(":{line}")).unwrap_or_default();
    let place = failure.file.as_ref().map(|file| format!(" in {file}{line}")).unwrap_or_default();
    let message = failure.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("  {}{place}{message}", failure.name)
}

pub(super) fn evidence(output: &AttachEvidenceOutput) -> String {
    attached(&output.evidence)
}

pub(super) fn rebuilt(output: &RebuildContextOutput) -> String {
    let repaired: String = output.repaired.iter().map(|file| format!("\nwritten anew: {file}")).collect();
    if !output.changed {
        return format!(
            "nothing differs from what {} froze (revision {}){repaired}",
            output.task_id, output.immutable_revision
        );
    }
    let sources = if output.changed_sources.is_empty() {
        "where HEAD is, or the files that the scope stands for".to_owned()
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
    let (archived, dropped) =
        if output.dry_run { ("would archive", "would drop") } else { ("archived", "dropped") };
    let mut lines: Vec<String> = output.swept.iter().map(|id| format!("{archived} {id}")).collect();
    lines.extend(output.expired.iter().map(|id| format!("{dropped} {id}, archived more than 30 days ago")));
    lines.extend(output.unreadable.iter().map(|problem| format!("left alone: {problem}")));
    if lines.is_empty() { "nothing to sweep".into() } else { lines.join("\n") }
}

pub(super) fn list(output: &ListTasksOutput) -> String {
    if output.tasks.is_empty() {
        return "no task has a context here; make one with baton task init-context TASK".into();
    }
    output.tasks.iter().map(line).collect::<Vec<_>>().join("\n")
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
    let archived = task.archived_at.map(|at| format!("  archived at {at}")).unwrap_or_default();
    let warnings: String = task.warnings.iter().map(|warning| format!("\n  {warning}")).collect();
    format!(
        "{}  {}  {}{drift}{archived}{warnings}",
        task.task_id,
        task.title.as_deref().unwrap_or_default(),
        statuses.join(", ")
    )
}
