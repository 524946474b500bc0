//! `task.get_context`

use std::collections::BTreeMap;

use baton_core::task::{Role, TaskId};
use baton_core::{Fault, Sha256Hash, Timestamp, counted};
use baton_qa::QaStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::archive::require_context;
use crate::environment::TaskEnvironment;
use crate::folder::derived_problems;
use crate::gather::{stale_standards, task_file_is_unchanged};
use crate::named_file::read_in_checkout;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{
    DriftEvent, Evidence, QaResults, RoleNote, RoleState, RoleStatus, SnapshotKind, SnapshotRef, TaskContext,
    role_export,
};
use crate::snapshot::commit_name;

/// Returns the context of a task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetContext {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Return only the context of this role, for example `reviewer`. Defaults to the full context.
    pub role: Option<Role>,
}

/// Output of `task.get_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetContextOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// The full context; null if a role was given.
    pub context: Option<TaskContext>,
    /// The context of the role; null if no role was given.
    pub role: Option<RoleContext>,
    /// Command that continues the task.
    pub next: String,
    /// Problems to resolve first: a moved HEAD, changed files or an open drift.
    pub warnings: Vec<String>,
}

/// The context of one role.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RoleContext {
    /// Role in the task, for example `implementer`.
    pub role: Role,
    /// The frozen parts that this role needs.
    pub export: Map<String, Value>,
    /// Status, QA result, findings and last snapshot of the role.
    pub state: RoleState,
    /// Status of every role.
    pub statuses: BTreeMap<Role, RoleStatus>,
    /// Open blocking findings of other roles, by role.
    pub blocking_findings: BTreeMap<Role, Vec<String>>,
    /// Attached evidence.
    pub evidence: Vec<Evidence>,
    /// Number of open drifts.
    pub drift_budget: u64,
    /// Drifts that are not resolved. They block all roles.
    pub open_drifts: Vec<DriftEvent>,
    /// Resolved drifts, with actor and note.
    pub settled_drifts: Vec<DriftEvent>,
    /// Notes of all roles, oldest first.
    pub notes: Vec<RoleNote>,
    /// Last QA result of each role and of the baseline.
    pub qa: Vec<QaLine>,
    /// All snapshots, oldest first.
    pub snapshots: Vec<SnapshotLine>,
}

/// QA result of a role.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QaLine {
    /// Role; `null` for the baseline.
    pub agent: Option<Role>,
    /// Last recorded result of the role, or of the baseline.
    pub results: QaResults,
}

/// One snapshot.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotLine {
    /// Number, from 1.
    pub sequence: u64,
    /// Reason for the snapshot.
    pub kind: SnapshotKind,
    /// Role whose work the snapshot holds, or whose work preceded the drift.
    pub agent: Role,
    /// Actor that recorded the snapshot.
    pub actor: String,
    /// Time when the snapshot was recorded.
    pub snapshot_time: Timestamp,
    /// Size of the change from the base, for example `+145 -32`; null if a newer snapshot of the role replaced it.
    pub diff_stat: Option<String>,
    /// Number of changed files; null if a newer snapshot of the role replaced it.
    pub files: Option<u64>,
}

impl Operation<OnCheckout> for GetContext {
    const NAME: &'static str = "task.get_context";
    const SUMMARY: &'static str = "Read a task's frozen description, standards, QA plan and the status of \
        each role, or only the context of one role. Call it before you work in a role.";
    const EFFECT: Effect = Effect::Read;
    type Output = GetContextOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let context = require_context(environment, &params.task_id)?;
        let warnings = warnings(environment, &context)?;
        let role = params.role.as_ref().map(|role| role_context(&context, role)).transpose()?;
        Ok(GetContextOutput {
            next: context.next_command(),
            task_id: context.task_id.clone(),
            context: role.is_none().then_some(context),
            role,
            warnings,
        })
    }
}

fn role_context(context: &TaskContext, role: &Role) -> Result<RoleContext, Fault> {
    let state = context.role(role)?.clone();
    let export = match role_export(context, role)? {
        Value::Object(export) => export,
        _ => Map::new(),
    };
    let findings = context.coordination.iter().filter(|(_, state)| !state.blocking_findings.is_empty());
    Ok(RoleContext {
        role: role.clone(),
        export,
        state,
        statuses: context.statuses(),
        blocking_findings: findings
            .map(|(role, state)| (role.clone(), state.blocking_findings.clone()))
            .collect(),
        evidence: context.evidence.clone(),
        drift_budget: context.drift.open_count(),
        open_drifts: context.drift.unresolved().cloned().collect(),
        settled_drifts: context
            .drift
            .events
            .iter()
            .filter(|event| event.resolution.is_some())
            .cloned()
            .collect(),
        notes: context.notes.clone(),
        qa: qa_lines(context),
        snapshots: snapshot_lines(context),
    })
}

/// Lists the baseline and the last QA result of each role.
pub fn qa_lines(context: &TaskContext) -> Vec<QaLine> {
    let baseline = &context.immutable.validation_baseline.initial_results;
    let baseline =
        (baseline.status != QaStatus::Pending).then(|| QaLine { agent: None, results: baseline.clone() });
    let of_role = |role: &Role| {
        let results = context.coordination.get(role)?.qa_results.clone()?;
        Some(QaLine { agent: Some(role.clone()), results })
    };
    baseline.into_iter().chain(context.pipeline.iter().filter_map(of_role)).collect()
}

/// Lists the snapshots of a task.
pub fn snapshot_lines(context: &TaskContext) -> Vec<SnapshotLine> {
    let line = |reference: &SnapshotRef| {
        let whole = context.full_snapshot(reference);
        SnapshotLine {
            sequence: reference.sequence,
            kind: reference.kind,
            agent: reference.agent.clone(),
            actor: reference.actor.clone(),
            snapshot_time: reference.snapshot_time,
            diff_stat: whole.map(|whole| whole.diff_stat.clone()),
            files: whole.map(|whole| whole.files_changed.len() as u64),
        }
    };
    context.snapshots.iter().map(line).collect()
}

/// Lists problems of a context.
fn warnings(environment: &TaskEnvironment, context: &TaskContext) -> Result<Vec<String>, Fault> {
    let mut warnings = Vec::new();
    match environment.tree().head() {
        Ok(head) => warnings.extend(moved_head(context, head.commit.as_deref())),
        Err(fault) => warnings.push(format!("cannot determine HEAD: {}", fault.message)),
    }
    for problem in derived_problems(environment, context)? {
        warnings.push(format!("{problem}; baton task rebuild-context {} writes it again", context.task_id));
    }
    if !task_file_is_unchanged(environment, context) {
        warnings.push(format!(
            "{} changed after the context was created; apply the change with baton task rebuild-context {}",
            context.task_file, context.task_id
        ));
    }
    warnings.extend(stale_standards(environment, &context.immutable).into_iter().map(|text| {
        format!(
            "a cited standard changed: {text}; apply the change with baton task rebuild-context {}",
            context.task_id
        )
    }));
    if context.drift.open_count() > 0 {
        let open = counted(context.drift.open_count(), "unresolved drift");
        warnings.push(format!(
            "{open}; resolve it with baton task resolve-drift {} --note TEXT",
            context.task_id
        ));
    }
    for artifact in context.artifacts() {
        if !environment.root().join(&artifact.path).is_file() {
            warnings.push(format!("{} is missing", artifact.path));
        }
    }
    warnings.extend(context.evidence.iter().filter_map(|evidence| changed_evidence(environment, evidence)));
    Ok(warnings)
}

/// Warns if HEAD moved since the context was created or the newest snapshot was recorded, with the next step.
fn moved_head(context: &TaskContext, head: Option<&str>) -> Option<String> {
    let expected = context.expected_head().map(String::as_str);
    if head == expected {
        return None;
    }
    let id = &context.task_id;
    let (from, to) = (commit_name(expected), commit_name(head));
    let base = commit_name(context.git.base_commit.as_deref());
    Some(match (context.latest_snapshot(), context.holder()) {
        (None, _) => format!(
            "context created at {from}, current HEAD is {to}; context may be stale: if the task continues from {to}, run baton task \
             rebuild-context {id} (changes are still compared with {base})"
        ),
        (Some(newest), Some(holder)) => format!(
            "snapshot {} was taken at {from}, current HEAD is {to}; the next snapshot of {holder} will start from {to}",
            newest.sequence
        ),
        (Some(newest), None) => format!(
            "snapshot {} was taken at {from}, current HEAD is {to}; this is drift: reset HEAD, or resolve it with baton task \
             verify-worktree {id} --expected-agent {} and resolve-drift",
            newest.sequence, newest.agent
        ),
    })
}

/// Warns if an attached file changed. Attached lines have a stored copy and need no check.
fn changed_evidence(environment: &TaskEnvironment, evidence: &Evidence) -> Option<String> {
    if evidence.excerpt.is_some() {
        return None;
    }
    let Evidence { id, path, .. } = evidence;
    match read_in_checkout(environment.root(), "evidence", path) {
        Ok(file) if Sha256Hash::of(&file.bytes) == evidence.sha256 => None,
        Ok(_) => Some(format!(
            "{path} changed after it was attached as {id}; attach it again if the new content counts"
        )),
        Err(fault) => Some(format!("{path}, attached as {id}, cannot be read: {}", fault.message)),
    }
}
