//! Text output of `baton task get-context`, in the same form for a whole context and for one role.

use std::collections::BTreeMap;

use baton_core::counted;
use baton_core::task::Role;
use baton_qa::QaRun;
use baton_task::rules::{
    Citation, DriftEvent, Evidence, QaCommand, RoleNote, RoleStatus, SnapshotKind, TaskContext, TaskSnapshot,
};
use baton_task::{QaLine, RoleContext, SnapshotLine, qa_lines, snapshot_lines};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::terminal::when;

/// Maximum number of differences of a drift that are printed.
const MAX_DIFFERENCES: usize = 10;

/// The parts of a context that are printed.
struct ContextParts<'a> {
    task_id: String,
    task: TaskSnapshot,
    citations: Vec<Citation>,
    commands: Vec<String>,
    paths: Vec<String>,
    pipeline: Vec<Role>,
    statuses: BTreeMap<Role, RoleStatus>,
    findings: BTreeMap<Role, Vec<String>>,
    notes: &'a [RoleNote],
    qa: Vec<QaLine>,
    snapshots: Vec<SnapshotLine>,
    drifts: Vec<&'a DriftEvent>,
    evidence: &'a [Evidence],
}

pub(super) fn whole(context: &TaskContext) -> String {
    let state = context.coordination.iter();
    ContextParts {
        task_id: context.task_id.to_string(),
        task: context.immutable.task_snapshot.clone(),
        citations: context.immutable.standards_citations.clone(),
        commands: context.immutable.validation_baseline.commands.clone(),
        paths: context.immutable.repo_paths.clone(),
        pipeline: context.pipeline.clone(),
        statuses: state.clone().map(|(role, state)| (role.clone(), state.status)).collect(),
        findings: state.map(|(role, state)| (role.clone(), state.blocking_findings.clone())).collect(),
        notes: &context.notes,
        qa: qa_lines(context),
        snapshots: snapshot_lines(context),
        drifts: context.drift.events.iter().collect(),
        evidence: &context.evidence,
    }
    .text()
}

/// Formats the part of a context that a role needs.
pub(super) fn of_role(role: &RoleContext) -> String {
    let part = &role.export["immutable"];
    let Ok(task) = serde_json::from_value(part["task_snapshot"].clone()) else {
        return serde_json::to_string_pretty(&role.export).unwrap_or_default();
    };
    ContextParts {
        task_id: format!("{} as {}", text_of(&role.export["task_id"]), role.role),
        task,
        citations: list_at(&part["standards_citations"]),
        commands: list_at(&part["validation_baseline"]["commands"]),
        paths: list_at(&part["repo_paths"]),
        pipeline: list_at(&role.export["pipeline"]),
        statuses: role.statuses.clone(),
        findings: role.blocking_findings.clone(),
        notes: &role.notes,
        qa: role.qa.clone(),
        snapshots: role.snapshots.clone(),
        drifts: role.settled_drifts.iter().chain(&role.open_drifts).collect(),
        evidence: &role.evidence,
    }
    .text()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list_at<T: DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

impl ContextParts<'_> {
    fn text(&self) -> String {
        let task = &self.task;
        let trimmed =
            |texts: &[String]| texts.iter().map(|text| text.trim_end().to_owned()).collect::<Vec<_>>();
        let mut lines = vec![format!("{}  {}  [{} {}]", self.task_id, task.title, task.priority, task.area)];
        lines.push(task.description.trim_end().to_owned());
        section(&mut lines, "acceptance criteria", trimmed(&task.acceptance_criteria));
        let scope = trimmed(&task.scope_in);
        let files: Vec<String> = self.paths.iter().filter(|path| !scope.contains(path)).cloned().collect();
        section(&mut lines, "scope", scope);
        section(&mut lines, "existing files in scope", files);
        section(&mut lines, "not in scope", trimmed(&task.scope_out));
        section(&mut lines, "standards", self.citations.iter().map(citation));
        section(&mut lines, "QA commands", self.commands.clone());
        section(&mut lines, "roles", self.pipeline.iter().flat_map(|role| self.role(role)));
        section(&mut lines, "notes", self.notes.iter().map(note));
        section(&mut lines, "QA results", self.qa.iter().flat_map(quality));
        section(&mut lines, "snapshots", self.snapshots.iter().map(snapshot));
        section(&mut lines, "drifts", self.drifts.iter().map(|event| drift(event)));
        section(&mut lines, "evidence", self.evidence.iter().map(attached));
        lines.join("\n")
    }

    fn role(&self, role: &Role) -> Vec<String> {
        let status = self.statuses.get(role).copied().unwrap_or_default();
        let findings = self.findings.get(role).into_iter().flatten();
        let findings = findings.map(|finding| format!("  must be fixed: {finding}"));
        std::iter::once(format!("{role}: {status}")).chain(findings).collect()
    }
}

fn section(lines: &mut Vec<String>, title: &str, items: impl IntoIterator<Item = String>) {
    let items: Vec<String> = items.into_iter().map(|item| format!("  {item}")).collect();
    if !items.is_empty() {
        lines.push(format!("{title}:"));
        lines.extend(items);
    }
}

fn citation(citation: &Citation) -> String {
    let Citation { file, section, requirement, line_span, .. } = citation;
    let lines = line_span.as_ref().map(|lines| format!(" {lines}")).unwrap_or_default();
    let cut = if requirement.ends_with('…') { " (cut; read the section)" } else { "" };
    format!("{file}#{section}{lines}: {requirement}{cut}")
}

pub(super) fn note(note: &RoleNote) -> String {
    format!("{} note of {} ({}): {}", note.kind, note.agent, note.written_by, note.text)
}

pub(super) fn command(command: &QaCommand) -> String {
    let seconds = command.duration_ms / 1_000;
    let tenth = command.duration_ms % 1_000 / 100;
    format!(
        "{}: exit code {} after {seconds}.{tenth} s: {}",
        command.status, command.exit_code, command.command
    )
}

pub(super) fn run(run: &QaRun) -> String {
    format!(
        "{}: {} passed, {} failed, {} skipped, {}, {}",
        run.tool,
        run.passed,
        run.failed,
        run.skipped,
        counted(run.errors, "error"),
        counted(run.warnings, "warning")
    )
}

fn quality(line: &QaLine) -> Vec<String> {
    let results = &line.results;
    let name = line.agent.as_ref().map_or("baseline", Role::as_str);
    let reason = results.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let by = results.actor.as_ref().map(|actor| format!(" (by {actor})")).unwrap_or_default();
    let log = results.log.as_ref().map(|log| format!("  log: {}", log.path));
    let commands = results.commands.iter().map(|line| format!("  {}", command(line)));
    let runs = results.runs.iter().map(|line| format!("  {}", run(line)));
    let first = format!("{name}: {}{reason}{by}", results.status);
    std::iter::once(first).chain(commands).chain(runs).chain(log).collect()
}

fn snapshot(line: &SnapshotLine) -> String {
    let of = match line.kind {
        SnapshotKind::Work => format!("{} ({})", line.agent, line.actor),
        SnapshotKind::Resolution => format!("drift resolved by {}", line.actor),
    };
    let size = match (&line.diff_stat, line.files) {
        (Some(stat), Some(files)) => format!(": {stat} in {}", counted(files, "file")),
        _ => String::new(),
    };
    format!("{}  {of}{size}  {}", line.sequence, line.snapshot_time)
}

/// Formats id, kind and path of a piece of evidence.
pub(super) fn attached(evidence: &Evidence) -> String {
    let lines = evidence.lines.as_deref().map(|lines| format!("#{lines}")).unwrap_or_default();
    let kept = evidence.excerpt.as_ref().map(|kept| format!(", kept as {}", kept.path)).unwrap_or_default();
    format!("{}  {}  {}{lines}{kept}", evidence.id, evidence.kind, evidence.path)
}

fn drift(event: &DriftEvent) -> String {
    let named: Vec<String> = event
        .differences
        .iter()
        .take(MAX_DIFFERENCES)
        .map(|difference| format!("\n    {}", difference.message))
        .collect();
    let rest = event.difference_count.saturating_sub(named.len() as u64);
    let more = if rest > 0 { format!("\n    and {rest} more") } else { String::new() };
    let resolved = event.resolution.as_ref().map_or_else(String::new, |resolution| {
        format!(
            "\n    resolved {} by {}: {}",
            when(resolution.resolved_at),
            resolution.resolved_by,
            resolution.note
        )
    });
    format!(
        "found {} by {}: differs from snapshot {} of {}{}{more}{resolved}",
        when(event.detected_at),
        event.detected_by,
        event.snapshot,
        event.expected_agent,
        named.concat()
    )
}
