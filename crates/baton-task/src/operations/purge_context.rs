//! `task.purge_context`

use baton_core::Fault;
use baton_core::task::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{drop_objects, remove};
use crate::environment::TaskEnvironment;
use crate::folder::{lock_existing_store, lock_task};
use crate::operation::{Effect, LIST, OnCheckout, Operation, params_as_input};

/// Deletes the files of a task, even if they are damaged.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeContext {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
}

/// Output of `task.purge_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PurgeContextOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// True if anything was deleted.
    pub purged: bool,
    /// Command that lists the remaining tasks.
    pub next: String,
}

impl Operation<OnCheckout> for PurgeContext {
    const NAME: &'static str = "task.purge_context";
    const SUMMARY: &'static str = "Delete a task's context, diffs and logs without archiving them. Succeeds \
        if there is nothing to delete.";
    const EFFECT: Effect = Effect::Purge;
    type Output = PurgeContextOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let task_id = params.task_id.clone();
        let actor = environment.actor(params.actor.as_deref())?;
        // A task that has no folder gets no lock file.
        let exists = environment.folder(&task_id).symlink_metadata().is_ok();
        let task_lock = exists.then(|| lock_task(environment, &task_id)).transpose()?;
        let Some(_store) = lock_existing_store(environment)? else {
            return Ok(PurgeContextOutput { task_id, purged: false, next: LIST.into() });
        };
        let now = environment.now();
        // Without the lock, a folder can only be one that another process created meanwhile.
        let purged = task_lock.is_some() && remove(environment, &environment.folder(&task_id), now)?;
        drop_objects(environment, now);
        tracing::info!(task = %task_id, %actor, purged, "a context was purged");
        Ok(PurgeContextOutput { task_id, purged, next: LIST.into() })
    }
}
