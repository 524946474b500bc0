//! Finds and reads the checkpoint of a call. Errors for unreadable checkpoints name a readable one.

use std::time::Duration;

use baton_checkpoint::ContextText;
use baton_core::checkpoint::{Checkpoint, CheckpointRef, CheckpointStatus, Workflow, WorkflowId};
use baton_core::{CheckpointId, ErrorCode, Fault, Venture};
use baton_store::{StoreError, Tx};
use serde_json::json;

use super::series::read_context;
use crate::context::{Attempt, Context};
use crate::context_storage::ReadContextError;
use crate::effects::DeferredUpdate;

/// Minimum interval between updates of the access time of a workflow.
const ACCESS_UPDATE_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of checkpoints examined.
const MAX_CANDIDATES: u32 = 70;

/// Reference to a checkpoint: by id, or the latest of a workflow.
#[derive(Debug, Clone)]
pub enum Wanted {
    Checkpoint(CheckpointRef),
    Latest(WorkflowId),
}

impl Wanted {
    /// Validates the two mutually exclusive parameters.
    pub(super) fn of(checkpoint: Option<CheckpointRef>, workflow: Option<WorkflowId>) -> Result<Self, Fault> {
        match (checkpoint, workflow) {
            (Some(id), None) => Ok(Self::Checkpoint(id)),
            (None, Some(id)) => Ok(Self::Latest(id)),
            (Some(_), Some(_)) => {
                Err(Fault::invalid("checkpointId", "cannot be given together with sessionId").hint(
                    "give checkpointId for that checkpoint, or sessionId for the latest of the workflow",
                ))
            }
            (None, None) => Err(Fault::invalid("checkpointId", "is required, unless sessionId is given")
                .hint("give checkpointId for one checkpoint, or sessionId for the latest of the workflow")),
        }
    }
}

pub(super) fn workflow(tx: &mut dyn Tx, venture: &Venture, id: &WorkflowId) -> Result<Workflow, Fault> {
    let found = tx.workflow(venture, id)?;
    found.ok_or_else(|| workflow_not_found(id))
}

pub(super) fn workflow_not_found(id: &WorkflowId) -> Fault {
    Fault::new(ErrorCode::SessionNotFound, format!("there is no workflow with sessionId `{id}`"))
        .hint("list workflows with workflow_list (GET /api/workflows, baton checkpoint workflows)")
        .details(json!({ "sessionId": id }))
}

/// Finds a checkpoint that is not deleted.
pub(super) fn find(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    venture: Option<&Venture>,
    wanted: &Wanted,
) -> Result<Checkpoint, Fault> {
    match wanted {
        Wanted::Checkpoint(name) => {
            // A checkpoint marked as corrupt is tried again, because a missing blob may have been restored.
            let found = checkpoint(context, tx, name)?;
            found
                .filter(|found| found.status != CheckpointStatus::Archived)
                .ok_or_else(|| checkpoint_not_found(name))
        }
        Wanted::Latest(id) => {
            let venture = context.venture(venture)?;
            workflow(tx, &venture, id)?;
            let latest = tx.latest_checkpoint(&venture, id)?;
            latest.ok_or_else(|| {
                Fault::new(
                    ErrorCode::CheckpointNotFound,
                    format!("workflow `{id}` has no checkpoint that can be loaded"),
                )
                .hint("list the checkpoints with workflow_checkpoint_list (baton checkpoint list), or save a new one")
                .details(json!({ "sessionId": id }))
            })
        }
    }
}

/// Lists the damaged checkpoints of the workflow that are newer than this one, newest first.
pub(super) fn newer_damaged(tx: &mut dyn Tx, checkpoint: &Checkpoint) -> Result<Vec<CheckpointId>, Fault> {
    let mut listed =
        |limit| tx.checkpoints(&checkpoint.venture, &checkpoint.workflow_id, 0, limit).map_err(Fault::from);
    // Usually the newest checkpoint is the one that was loaded.
    if listed(1)?.first().is_none_or(|newest| newest.place <= checkpoint.place) {
        return Ok(Vec::new());
    }
    let newer = listed(MAX_CANDIDATES)?.into_iter().take_while(|listed| listed.place > checkpoint.place);
    Ok(newer.filter(|newer| newer.status == CheckpointStatus::Corrupt).map(|newer| newer.id).collect())
}

/// Finds a checkpoint of any status that the caller may access.
pub(super) fn checkpoint(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    name: &CheckpointRef,
) -> Result<Option<Checkpoint>, Fault> {
    let Some(id) = name.id() else { return Ok(None) };
    let found = tx.checkpoint(id)?;
    Ok(found.filter(|found| context.actor.may_access(&found.venture)))
}

pub(super) fn checkpoint_not_found(id: &CheckpointRef) -> Fault {
    Fault::new(ErrorCode::CheckpointNotFound, format!("there is no checkpoint {id}"))
        .hint("list the checkpoints of a workflow with workflow_checkpoint_list (GET /api/checkpoints, baton checkpoint list)")
        .details(json!({ "checkpointId": id }))
}

/// Reads the context of a checkpoint and records the access to its workflow.
pub(super) fn read(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    checkpoint: &Checkpoint,
) -> Result<ContextText, Fault> {
    let text = read_context(&context.settings.checkpoints.storage, tx, checkpoint)
        .map_err(|error| read_context_fault(context, tx, checkpoint, error))?;
    let read =
        ContextText::read(text).map_err(|error| corrupt(context, tx, checkpoint, &error.to_string()))?;
    if checkpoint.status == CheckpointStatus::Corrupt {
        context.effects.defer(DeferredUpdate::Sound(checkpoint.id));
    }
    record_access(context, tx, checkpoint)?;
    Ok(read)
}

fn record_access(context: &Context<'_>, tx: &mut dyn Tx, checkpoint: &Checkpoint) -> Result<(), Fault> {
    let workflow = tx.workflow(&checkpoint.venture, &checkpoint.workflow_id)?;
    if workflow.is_some_and(|workflow| workflow.last_accessed_at < context.now.minus(ACCESS_UPDATE_INTERVAL))
    {
        context.effects.defer(DeferredUpdate::Used {
            venture: checkpoint.venture.clone(),
            workflow: checkpoint.workflow_id.clone(),
            at: context.now,
        });
    }
    Ok(())
}

fn read_context_fault(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    checkpoint: &Checkpoint,
    error: ReadContextError,
) -> Fault {
    match error {
        ReadContextError::Store(error) => Fault::from(error),
        ReadContextError::Sealed { key_id } => sealed_fault(&key_id),
        // The row may have been deleted since this read began. The second attempt finds out.
        ReadContextError::Missing { name, .. } if context.attempt == Attempt::First => {
            Fault::from(StoreError::BlobMissing { name })
        }
        ReadContextError::Incomplete => corrupt(context, tx, checkpoint, &error.to_string()),
        ReadContextError::Missing { at, .. } | ReadContextError::Damaged { at, .. } => {
            if at != checkpoint.id {
                context.effects.defer(DeferredUpdate::Damaged(at));
            }
            corrupt(context, tx, checkpoint, &error.to_string())
        }
    }
}

/// Returns the error for a checkpoint whose key is not available. The checkpoint itself is intact.
pub(super) fn sealed_fault(key_id: &str) -> Fault {
    Fault::new(ErrorCode::StoreUnavailable, format!("the checkpoint is encrypted with key {key_id}, which is not available"))
        .hint("unlock the keychain, or set BATON_ENCRYPTION_KEY_FILE to the file with the key; see baton key status")
        .details(json!({ "keyId": key_id }))
}

/// Returns the error for a damaged checkpoint when the database is not used.
pub(super) fn corrupt_without_store(checkpoint: &Checkpoint, problem: &str) -> Fault {
    corrupt_fault(checkpoint)
        .hint("repair the database (see baton doctor) to access earlier checkpoints")
        .details(
            json!({ "checkpointId": checkpoint.id, "sessionId": checkpoint.workflow_id, "problem": problem }),
        )
}

fn corrupt_fault(checkpoint: &Checkpoint) -> Fault {
    let message = format!("checkpoint {} is damaged and cannot be loaded", checkpoint.id);
    Fault::new(ErrorCode::CheckpointCorrupt, message)
}

/// Marks a checkpoint as damaged and returns the error, which names the newest readable checkpoint of the workflow.
fn corrupt(context: &Context<'_>, tx: &mut dyn Tx, checkpoint: &Checkpoint, problem: &str) -> Fault {
    context.effects.defer(DeferredUpdate::Damaged(checkpoint.id));
    tracing::error!(checkpoint = %checkpoint.id, problem, "a checkpoint is damaged");
    let newest = newest_readable(context, tx, checkpoint);
    let hint = match &newest {
        Ok(Some(id)) => {
            format!("load {id}, the newest of this workflow that can be read; or restore a backup")
        }
        Ok(None) => "restore a backup; no other checkpoint of this workflow can be read".to_owned(),
        Err(error) => {
            tracing::error!(%error, "cannot search for a readable checkpoint");
            "try again, and run baton doctor if that fails; the search for another readable checkpoint failed"
                .to_owned()
        }
    };
    corrupt_fault(checkpoint).hint(hint).details(json!({
        "checkpointId": checkpoint.id, "sessionId": checkpoint.workflow_id, "newestReadable": newest.ok().flatten(),
        "problem": problem,
    }))
}

/// Finds the newest other checkpoint of the workflow that can be read.
fn newest_readable(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    damaged: &Checkpoint,
) -> Result<Option<CheckpointId>, StoreError> {
    let storage = &context.settings.checkpoints.storage;
    let listed = tx.checkpoints(&damaged.venture, &damaged.workflow_id, 0, MAX_CANDIDATES)?;
    let others =
        listed.into_iter().filter(|other| other.id != damaged.id && other.status == CheckpointStatus::Active);
    let mut failure = None;
    for other in others {
        match read_context(storage, tx, &other) {
            Ok(_) => return Ok(Some(other.id)),
            Err(ReadContextError::Store(error)) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(None), Err)
}
