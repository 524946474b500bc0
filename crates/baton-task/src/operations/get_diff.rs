//! `task.get_diff`

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::require_context;
use crate::artifact;
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{Artifact, TaskContext};

/// What a diff is counted from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffType {
    /// From the base of the task to the snapshot.
    #[default]
    FromBase,
    /// From the snapshot that the role started from.
    Incremental,
    /// From the expected tree to the actual tree of the open drift, or of the last one.
    Drift,
}

/// Returns a diff of a task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDiff {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role whose last snapshot is used. Defaults to the role of the newest snapshot. Ignored for `drift`.
    pub agent: Option<Role>,
    /// `from_base` for all changes so far, `incremental` for the changes of the role, `drift` for changes made outside
    /// the roles.
    #[serde(default, rename = "type")]
    pub kind: DiffType,
    /// Return the diff itself, not only its path. Defaults to false.
    #[serde(default)]
    pub content: bool,
}

/// Output of `task.get_diff`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetDiffOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub agent: Role,
    /// Type of the diff.
    #[serde(rename = "type")]
    pub kind: DiffType,
    /// Number of the snapshot.
    pub snapshot: u64,
    /// Path and hashes of the stored diff.
    pub artifact: Artifact,
    /// Size of all changes from the base, for example `+145 -32`. For `drift`: the number of differences, for example
    /// `3 differences`.
    pub diff_stat: String,
    /// The diff, or null if not requested. Invalid UTF-8 is replaced.
    pub content: Option<String>,
    /// Command that continues the task.
    pub next: String,
}

impl Operation<OnCheckout> for GetDiff {
    const NAME: &'static str = "task.get_diff";
    const SUMMARY: &'static str = "Return the path or the text of a role's diff, from the base or from the \
        previous snapshot, or of a drift.";
    const EFFECT: Effect = Effect::Read;
    type Output = GetDiffOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let context = require_context(environment, &params.task_id)?;
        let Found { agent, snapshot, artifact, diff_stat } = match params.kind {
            DiffType::Drift => drift(&context)?,
            kind => of_role(&context, params.agent.as_ref(), kind)?,
        };
        artifact::require(environment.root(), artifact)?;
        let content = if params.content {
            let bytes = artifact::read(environment.root(), artifact)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        } else {
            None
        };
        let id = &context.task_id;
        let next = if context.drift.open_count() > 0 {
            format!("baton task resolve-drift {id} --note TEXT")
        } else {
            context.next_command()
        };
        Ok(GetDiffOutput {
            next,
            task_id: id.clone(),
            agent: agent.clone(),
            kind: params.kind,
            snapshot,
            artifact: artifact.clone(),
            diff_stat,
            content,
        })
    }
}

struct Found<'a> {
    agent: &'a Role,
    snapshot: u64,
    artifact: &'a Artifact,
    diff_stat: String,
}

fn of_role<'a>(
    context: &'a TaskContext,
    agent: Option<&'a Role>,
    kind: DiffType,
) -> Result<Found<'a>, Fault> {
    let id = &context.task_id;
    let newest = context.latest_snapshot().map(|snapshot| &snapshot.agent);
    let agent = agent.or(newest).ok_or_else(|| {
        Fault::new(ErrorCode::NotFound, format!("{id} has no snapshot")).hint(context.next_command())
    })?;
    let snapshot =
        context.role(agent)?.worktree_snapshot.as_ref().ok_or_else(|| context.no_snapshot(agent))?;
    // For a role that started without a snapshot, all changes from the base are its own.
    let took_over_nothing =
        snapshot.diff_from_previous.is_none() && snapshot.incremental_diff_error.is_none();
    let path = if kind == DiffType::FromBase || took_over_nothing {
        Some(&snapshot.diff_from_base)
    } else {
        snapshot.diff_from_previous.as_ref()
    };
    let artifact = path.and_then(|path| snapshot.artifact(path)).ok_or_else(|| {
        let why = snapshot.incremental_diff_error.as_deref().unwrap_or("it was not stored");
        Fault::new(ErrorCode::NotFound, format!("{agent} has no incremental diff: {why}"))
            .hint(format!("baton task get-diff {id} --agent {agent} --type from_base"))
    })?;
    Ok(Found { agent, snapshot: snapshot.sequence, artifact, diff_stat: snapshot.diff_stat.clone() })
}

/// Returns the newest open drift; if none is open, the newest drift.
fn drift(context: &TaskContext) -> Result<Found<'_>, Fault> {
    let id = &context.task_id;
    let event = context.drift.unresolved().last().or(context.drift.events.last()).ok_or_else(|| {
        Fault::new(ErrorCode::NotFound, format!("{id} has no drift")).hint(context.next_command())
    })?;
    let artifact = event.diff.as_ref().ok_or_else(|| {
        let message = format!("the diff of the drift of {id} was not stored");
        Fault::new(ErrorCode::NotFound, message).hint(format!(
            "the tree may contain a secret, or git failed; baton task get-context {id} lists the files"
        ))
    })?;
    let diff_stat = counted(event.difference_count, "difference");
    Ok(Found { agent: &event.expected_agent, snapshot: event.snapshot, artifact, diff_stat })
}
