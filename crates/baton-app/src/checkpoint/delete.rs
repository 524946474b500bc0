//! `checkpoint.delete`: deletes one checkpoint.

use baton_core::CheckpointId;
use baton_core::checkpoint::{CheckpointRef, CheckpointStatus};

use super::find::{checkpoint, checkpoint_not_found, workflow_not_found};
use super::retention::delete_checkpoints;

use crate::prelude::*;

/// The checkpoint to delete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteCheckpoint {
    /// Checkpoint id (`ckpt_…`).
    pub checkpoint_id: CheckpointRef,
}

/// The deleted checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteCheckpointOutput {
    /// Id of the deleted checkpoint.
    pub checkpoint_id: CheckpointId,
    /// Number of bytes freed. Data that later checkpoints still need is freed with them.
    pub freed_bytes: u64,
}

impl Operation<OnStore> for DeleteCheckpoint {
    const NAME: &'static str = "checkpoint.delete";
    const SUMMARY: &'static str = "Delete one checkpoint, even a named one. Deleting the last checkpoint of \
        a workflow also deletes the workflow.";
    const EFFECT: Effect = Effect::Delete;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    const FREES_SPACE: bool = true;
    type Output = DeleteCheckpointOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let (checkpoint_id, freed_bytes) = delete_checkpoint(context, tx, &params.checkpoint_id)?;
        Ok(DeleteCheckpointOutput { checkpoint_id, freed_bytes })
    }
}

/// Deletes a checkpoint and, with the last one, its workflow. Returns its id and the number of bytes freed.
pub(crate) fn delete_checkpoint(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    reference: &CheckpointRef,
) -> Result<(CheckpointId, u64), Fault> {
    let missing = || checkpoint_not_found(reference);
    let found = checkpoint(context, tx, reference)?.ok_or_else(missing)?;
    let workflow = tx.lock_workflow(&found.venture, &found.workflow_id)?;
    let mut workflow = workflow.ok_or_else(|| workflow_not_found(&found.workflow_id))?;
    // Another process may have deleted the checkpoint before the workflow was locked.
    let checkpoint = checkpoint(context, tx, reference)?
        .filter(|found| found.status != CheckpointStatus::Archived)
        .ok_or_else(missing)?;
    let id = checkpoint.id;
    let freed_bytes = delete_checkpoints(context, tx, &mut workflow, &[checkpoint], None)?.bytes;
    if workflow.checkpoint_count == 0 {
        tx.delete_workflow(&workflow.venture, &workflow.id)?;
    } else {
        tx.update_workflow(&workflow)?;
    }
    Ok((id, freed_bytes))
}
