//! `task.verify_worktree`

use baton_core::Fault;
use baton_core::task::{Role, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::require_context;
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::Difference;
use crate::verification::verify;
use crate::working_tree::Reading;

/// Verifies that the working tree equals the last snapshot of a role.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyWorktree {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role whose last snapshot the working tree must match, for example `implementer`.
    pub expected_agent: Role,
    /// Read every file instead of trusting sizes and timestamps. Slower; finds changes that preserve both. Defaults
    /// to false.
    #[serde(default)]
    pub full: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
}

/// Output of `task.verify_worktree` if the tree matches; otherwise the call fails with `drift_detected`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerifyWorktreeOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub expected_agent: Role,
    /// Number of the verified snapshot.
    pub snapshot: u64,
    /// Id of the tree.
    pub tree: String,
    /// Differences that are not drift, for example staging.
    pub notices: Vec<Difference>,
    /// Number of open drifts.
    pub drift_budget: u64,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for VerifyWorktree {
    const NAME: &'static str = "task.verify_worktree";
    const SUMMARY: &'static str = "Verify that the working tree exactly matches the last snapshot of a role. \
        Otherwise lists every difference and records a drift.";
    const EFFECT: Effect = Effect::Write;
    type Output = VerifyWorktreeOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let role = &params.expected_agent;
        environment.tree().prepare();
        let context = require_context(environment, &params.task_id)?;
        let reading = if params.full { Reading::All } else { Reading::Changed };
        let verified = verify(environment, &context, role, reading)?;
        if verified.comparison.matches() {
            let open = context.drift.open_count();
            let mut warnings = Vec::new();
            if open > 0 {
                warnings.push(format!(
                    "the tree matches the snapshot, but {} open: resolve with baton task resolve-drift {} --note TEXT",
                    if open == 1 { "1 drift is still".into() } else { format!("{open} drifts are still") },
                    params.task_id
                ));
            }
            return Ok(VerifyWorktreeOutput {
                next: context.next_command(),
                task_id: context.task_id,
                expected_agent: role.clone(),
                snapshot: verified.snapshot.sequence,
                tree: verified.actual.tree,
                notices: verified.comparison.notices,
                drift_budget: open,
                warnings,
            });
        }
        // A drift is recorded only if, under the lock, no role holds the task and the compared snapshot is still the
        // newest. Another process may have acquired the task or recorded a snapshot meanwhile.
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(true);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        let current = draft.context.latest_snapshot().map(|snapshot| snapshot.sequence);
        let is_current = draft.context.holder().is_none() && current == Some(verified.snapshot.sequence);
        if !is_current {
            return Err(verified.fault(&draft.context, false));
        }
        let is_new = verified.record(&mut draft)?;
        let fault = verified.fault(&draft.context, true);
        if is_new {
            draft.save()?;
        }
        Err(fault)
    }
}
