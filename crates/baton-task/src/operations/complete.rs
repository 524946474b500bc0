//! `task.complete`

use baton_core::task::TaskId;
use baton_core::{Fault, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{RETENTION, archive, drop_expired, drop_objects};
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, LIST, OnCheckout, Operation, params_as_input};
use crate::rules::DifferenceKind;
use crate::verification::verify;
use crate::working_tree::Reading;

/// Completes a task whose roles are all done. Its files are archived for 30 days.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Complete the task even if a role is blocked or not done, a drift is open, or the tree changed since
    /// the last snapshot. Defaults to false.
    #[serde(default)]
    pub force: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
}

/// Output of `task.complete`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompleteTaskOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Path of the archived files, relative to the root of the checkout.
    pub archive_path: String,
    /// Time until which the archived files are kept.
    pub kept_until: Timestamp,
    /// Command that lists the remaining tasks.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for CompleteTask {
    const NAME: &'static str = "task.complete";
    const SUMMARY: &'static str =
        "Complete a task whose roles are all done. Its context is archived for 30 days.";
    const EFFECT: Effect = Effect::Create;
    type Output = CompleteTaskOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(true);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        if let Err(fault) = draft.context.require_complete() {
            if !params.force {
                return Err(fault);
            }
            draft.warnings.push(format!("completed anyway: {}", fault.message));
        }
        if let Some(fault) = changed_since_last_snapshot(&mut draft)? {
            if !params.force {
                draft.save()?;
                return Err(fault);
            }
            draft.warnings.push(format!("completed anyway: {}", fault.message));
        }
        let now = draft.now;
        let (context, warnings, _lock) = draft.save_and_hold()?;
        let folder = archive(environment, &context.task_id, now)?;
        drop_expired(environment, now);
        drop_objects(environment, now);
        let path = folder.strip_prefix(environment.root()).unwrap_or(&folder).to_string_lossy().into_owned();
        Ok(CompleteTaskOutput {
            task_id: context.task_id,
            archive_path: path,
            kept_until: now.plus(RETENTION),
            next: LIST.into(),
            warnings,
        })
    }
}

/// Records a drift if the tree differs from the last snapshot. Users commit the tree before they complete a task, so a
/// commit of exactly that tree is not a drift.
fn changed_since_last_snapshot(draft: &mut Draft<'_>) -> Result<Option<Fault>, Fault> {
    let Some(last) = draft.context.latest_snapshot().map(|snapshot| snapshot.agent.clone()) else {
        draft.warnings.push("there is no snapshot to compare the working tree with".into());
        return Ok(None);
    };
    let verified = verify(draft.environment(), &draft.context, &last, Reading::Changed)?;
    let is_commit = |kind| matches!(kind, DifferenceKind::BaseCommitMoved | DifferenceKind::Committed);
    if verified.snapshot.tree == verified.actual.tree
        || verified.comparison.differences.iter().all(|difference| is_commit(difference.kind))
    {
        return Ok(None);
    }
    verified.record(draft)?;
    Ok(Some(verified.fault(&draft.context, true)))
}
