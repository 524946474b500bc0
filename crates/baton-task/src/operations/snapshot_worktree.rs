//! `task.snapshot_worktree`

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{SnapshotKind, WorktreeSnapshot};
use crate::snapshot::take_snapshot;

/// Records a snapshot of the working tree for a role.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotWorktree {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role whose work is recorded, for example `implementer`.
    pub agent: Role,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Record a snapshot even if nothing differs from the base commit. Defaults to false.
    #[serde(default)]
    pub allow_clean: bool,
    /// Store the content even if it appears to contain a secret (recorded in the audit log). Defaults to
    /// false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.snapshot_worktree`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotWorktreeOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub agent: Role,
    /// The recorded snapshot.
    pub snapshot: WorktreeSnapshot,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for SnapshotWorktree {
    const NAME: &'static str = "task.snapshot_worktree";
    const SUMMARY: &'static str = "Record a snapshot of the exact working tree at the end of a role's work, \
        with the diffs from the base and from the previous snapshot.";
    const EFFECT: Effect = Effect::Create;
    type Output = SnapshotWorktreeOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        let role = &params.agent;
        draft.context.role(role)?;
        draft.context.require_no_drift()?;
        draft.context.hold_or_start(role, draft.now)?;
        draft.role(role)?;
        let snapshot = take_snapshot(&mut draft, role, SnapshotKind::Work)?;
        if snapshot.files_changed.is_empty() && !params.allow_clean {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("the working tree is clean: nothing differs from the base of {}", params.task_id),
            )
            .hint("check whether the changes were committed, stashed or reset; add --allow-clean if there are none"));
        }
        let (context, warnings) = draft.save()?;
        let next = context.next_command();
        Ok(SnapshotWorktreeOutput { task_id: context.task_id, agent: role.clone(), snapshot, next, warnings })
    }
}
