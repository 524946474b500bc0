//! Stores a context as a new checkpoint: place in the workflow, frame, quotas and row.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Workflow};
use baton_core::{ErrorCode, Fault, Repo};
use baton_store::{FrameBody, Tx};

use super::find::sealed_fault;
use super::retention;
use super::series::{Next, pack_next, read_context};
use crate::context::Context;
use crate::context_storage::{CreateFrameError, NewFrame, Owner, ReadContextError};

/// A context to store, with its metadata.
#[derive(Debug)]
pub(super) struct NewCheckpoint<'a> {
    /// Metadata. The place and the stored size are not known yet.
    pub(super) checkpoint: Checkpoint,
    pub(super) workflow_name: Option<String>,
    pub(super) repo: Option<Repo>,
    pub(super) context: &'a [u8],
}

/// Behavior if the latest checkpoint has the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unchanged {
    Skip,
    Save,
}

/// Result of storing a context.
#[derive(Debug)]
pub(super) struct SavedCheckpoint {
    /// The new checkpoint, or the latest one if nothing was stored.
    pub(super) checkpoint: Checkpoint,
    /// False if the latest checkpoint already has the same content.
    pub(super) is_new: bool,
    /// Set if the context is unencrypted although encryption is preferred.
    pub(super) warning: Option<String>,
}

impl NewCheckpoint<'_> {
    fn workflow(&self) -> Workflow {
        let Checkpoint { venture, workflow_id, created_at, .. } = &self.checkpoint;
        Workflow {
            venture: venture.clone(),
            id: workflow_id.clone(),
            name: self.workflow_name.clone(),
            repo: self.repo.clone(),
            created_at: *created_at,
            last_saved_at: *created_at,
            last_accessed_at: *created_at,
            checkpoint_count: 0,
            unnamed_count: 0,
            stored_bytes: 0,
            critical_keys: Vec::new(),
        }
    }
}

/// Stores a context as the latest checkpoint of its workflow. Creates the workflow if it does not exist.
pub(super) fn store_checkpoint(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    new: NewCheckpoint<'_>,
    unchanged: Unchanged,
) -> Result<SavedCheckpoint, Fault> {
    let storage = &context.settings.checkpoints.storage;
    let Checkpoint { venture, workflow_id: id, .. } = &new.checkpoint;
    let existing = tx.lock_workflow(venture, id)?;
    if unchanged == Unchanged::Skip
        && let Some(latest) = tx.latest_checkpoint(venture, id)?
        && latest.context_hash == new.checkpoint.context_hash
        && latest.labels == new.checkpoint.labels
        // If the latest checkpoint is unreadable, the context is stored again.
        && read_context(storage, tx, &latest).is_ok()
    {
        let warning = storage.fallback_warning(tx)?;
        return Ok(SavedCheckpoint { checkpoint: latest, is_new: false, warning });
    }
    let is_new = existing.is_none();
    let mut workflow = existing.unwrap_or_else(|| new.workflow());
    retention::enforce_count_limit(context, tx, &mut workflow)?;
    let Next { place, packed, damaged } =
        pack_next(storage, tx, (venture, id), new.context).map_err(pack_fault)?;
    if let Some(damaged) = damaged {
        tx.set_checkpoint_status(damaged, CheckpointStatus::Corrupt)?;
    }
    let mut checkpoint = Checkpoint { place, ..new.checkpoint };
    if context.must_free_space() {
        retention::free_disk_space(context, tx, &mut workflow, &checkpoint, packed.bytes.len())?;
    }
    let NewFrame { frame, warning } =
        storage.create_frame(tx, Owner::of(&checkpoint), packed).map_err(create_frame_fault)?;
    if let FrameBody::Blob(name) = &frame.body {
        context.effects.wrote_blob(name);
    }
    checkpoint.stored_bytes = frame.size_bytes;
    retention::enforce_size_limit(context, tx, &mut workflow, &checkpoint)?;
    tx.insert_checkpoint(&checkpoint, &frame)?;
    workflow.last_saved_at = workflow.last_saved_at.max(checkpoint.created_at);
    workflow.last_accessed_at = workflow.last_accessed_at.max(checkpoint.created_at);
    workflow.checkpoint_count += 1;
    workflow.unnamed_count += u64::from(checkpoint.labels.name.is_none());
    workflow.stored_bytes += checkpoint.stored_bytes;
    if is_new { tx.insert_workflow(&workflow) } else { tx.update_workflow(&workflow) }?;
    Ok(SavedCheckpoint { checkpoint, is_new: true, warning })
}

fn pack_fault(error: ReadContextError) -> Fault {
    match error {
        ReadContextError::Store(error) => Fault::from(error),
        ReadContextError::Sealed { key_id } => sealed_fault(&key_id),
        // `pack_next` starts a new series in these cases, so they do not occur here.
        ReadContextError::Incomplete
        | ReadContextError::Damaged { .. }
        | ReadContextError::Missing { .. } => {
            Fault::new(ErrorCode::Internal, "the series of the workflow cannot be continued")
        }
    }
}

pub(super) fn create_frame_fault(error: CreateFrameError) -> Fault {
    match error {
        CreateFrameError::Store(error) => Fault::from(error),
        CreateFrameError::Refused { reason, hint } => Fault::new(
            ErrorCode::StoreUnavailable,
            format!("cannot store the context: encryption is required, and {reason}"),
        )
        .hint(hint),
    }
}
