//! Quotas and retention of checkpoints.
//!
//! Named checkpoints are never deleted, nor is the latest one of a workflow, unless a save replaces it. Checkpoints are
//! deleted in the transaction of the save that needs the space, so a failed save deletes nothing. Deletions are logged
//! and blobs are removed after the commit.

use std::collections::BTreeSet;

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Place, Workflow, needed_positions};
use baton_core::{ErrorCode, Fault};
use baton_store::{MAX_ROW_BYTES, StoreError, Tx};
use serde_json::json;

use crate::context::Context;

/// Maximum number of checkpoints deleted at once.
const BATCH: u32 = 200;
/// Maximum number of workflows examined at once.
const WORKFLOWS: u32 = 20;

/// Deletes unnamed checkpoints of a workflow until one more is allowed. The caller must have locked the workflow.
pub(super) fn enforce_count_limit(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
) -> Result<(), Fault> {
    let max = context.settings.checkpoints.max_checkpoints;
    while workflow.checkpoint_count >= max {
        let too_many = u32::try_from(workflow.checkpoint_count - max + 1).unwrap_or(BATCH).min(BATCH);
        // The latest may be deleted here, because the checkpoint to be saved replaces it.
        let oldest = oldest_unnamed(tx, workflow, too_many)?;
        if oldest.is_empty() {
            return Err(Fault::new(
                ErrorCode::StorageQuotaExceeded,
                format!("workflow `{}` has {max} checkpoints, all with a name", workflow.id),
            )
            .hint("delete some (baton checkpoint delete ID), or raise checkpoint.max_per_workflow")
            .details(json!({ "currentCount": workflow.checkpoint_count, "maxCount": max })));
        }
        delete_checkpoints(context, tx, workflow, &oldest, None)?;
    }
    Ok(())
}

fn oldest_unnamed(tx: &mut dyn Tx, workflow: &Workflow, limit: u32) -> Result<Vec<Checkpoint>, Fault> {
    let found = tx.deletable_checkpoints(&workflow.venture, &workflow.id, limit)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let latest = tx.latest_checkpoint(&workflow.venture, &workflow.id)?;
    Ok(latest.filter(|latest| latest.labels.name.is_none()).into_iter().collect())
}

/// Deletes checkpoints until one more fits into the size quota, from the least recently used workflows first.
pub(super) fn enforce_size_limit(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    next: &Checkpoint,
) -> Result<(), Fault> {
    let max = context.settings.checkpoints.max_total_bytes;
    let needed = next.stored_bytes;
    let usage = context.settings.checkpoints.storage.usage();
    let mut total = match usage.recent() {
        // The cached size suffices while it is far below the quota; counting takes longer the more checkpoints there
        // are.
        Some(total) if total + needed <= max / 10 * 9 => total,
        _ => tx.stored_bytes()?,
    };
    while total + needed > max {
        let freed = free_some(context, tx, workflow, next, BATCH)?.bytes;
        if freed == 0 {
            return Err(Fault::new(
                ErrorCode::StorageQuotaExceeded,
                format!("checkpoints take {total} bytes and {needed} more would exceed the quota of {max}"),
            )
            .hint("delete checkpoints (baton checkpoint delete ID), or raise checkpoint.max_total_bytes")
            .details(json!({ "currentSize": total, "neededSize": needed, "maxSize": max })));
        }
        total = total.saturating_sub(freed);
    }
    usage.set(total + needed);
    Ok(())
}

/// Deletes checkpoints, on a full disk, until enough space for the next frame is free.
pub(super) fn free_disk_space(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    next: &Checkpoint,
    frame_bytes: usize,
) -> Result<(), Fault> {
    // The database file does not shrink, so space of deleted rows is available for rows only.
    let is_blob = context.settings.checkpoints.storage.blobs().is_some() && frame_bytes > MAX_ROW_BYTES;
    let mut freed_bytes = 0;
    while freed_bytes < frame_bytes as u64 {
        // One at a time, to delete no more than needed.
        let freed = free_some(context, tx, workflow, next, 1)?;
        if freed.bytes == 0 {
            return Err(Fault::from(StoreError::Full));
        }
        freed_bytes += if is_blob { freed.blob_bytes } else { freed.bytes };
    }
    Ok(())
}

/// Deletes up to `limit` checkpoints per workflow until some space is freed or none can be deleted.
fn free_some(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    current: &mut Workflow,
    next: &Checkpoint,
    limit: u32,
) -> Result<Freed, Fault> {
    loop {
        let unused = tx.unused_workflows(next.created_at, WORKFLOWS)?;
        let is_current = |found: &Workflow| (&found.venture, &found.id) == (&current.venture, &current.id);
        let mut dropped = 0;
        for found in unused.iter().filter(|found| !is_current(found)) {
            let deleted = delete_unnamed(context, tx, found, limit)?;
            if deleted.freed.bytes > 0 {
                return Ok(deleted.freed);
            }
            dropped += deleted.dropped;
        }
        // The data of the deleted checkpoints is still needed by others, so nothing was freed. Other workflows may free
        // some.
        if dropped == 0 {
            break;
        }
    }
    loop {
        let oldest = tx.deletable_checkpoints(&current.venture, &current.id, limit)?;
        let freed = delete_checkpoints(context, tx, current, &oldest, next.place.base())?;
        if freed.bytes > 0 || oldest.is_empty() {
            return Ok(freed);
        }
    }
}

/// Space freed by deleting checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Freed {
    /// Bytes in rows and blobs.
    pub(super) bytes: u64,
    pub(super) blob_bytes: u64,
}

/// Result of deleting checkpoints of a workflow.
#[derive(Default)]
struct Deleted {
    dropped: u64,
    freed: Freed,
}

/// Deletes up to `limit` checkpoints of a workflow, except the latest and named ones.
fn delete_unnamed(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    found: &Workflow,
    limit: u32,
) -> Result<Deleted, Fault> {
    let Some(mut workflow) = tx.lock_workflow(&found.venture, &found.id)? else {
        return Ok(Deleted::default());
    };
    let oldest = tx.deletable_checkpoints(&workflow.venture, &workflow.id, limit)?;
    let freed = delete_checkpoints(context, tx, &mut workflow, &oldest, None)?;
    tx.update_workflow(&workflow)?;
    Ok(Deleted { dropped: oldest.len() as u64, freed })
}

/// Applies retention to inactive workflows and returns the number of deleted checkpoints.
pub(crate) fn apply_retention(context: &Context<'_>, tx: &mut dyn Tx) -> Result<u64, Fault> {
    let since = context.now.minus(context.settings.checkpoints.retention);
    let mut dropped = 0;
    for found in tx.unused_workflows(since, WORKFLOWS)? {
        dropped += delete_unnamed(context, tx, &found, BATCH)?.dropped;
    }
    Ok(dropped)
}

/// Archives checkpoints of a workflow and deletes the data that neither the remaining checkpoints nor `base`, the base
/// of the checkpoint to be saved, needs. Returns the freed bytes. Updates the counts of `workflow` without writing
/// them.
pub(super) fn delete_checkpoints(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    dropped: &[Checkpoint],
    base: Option<Place>,
) -> Result<Freed, StoreError> {
    let mut series = BTreeSet::new();
    for checkpoint in dropped {
        context.effects.deleted_checkpoint(checkpoint.id, workflow.id.clone());
        tx.set_checkpoint_status(checkpoint.id, CheckpointStatus::Archived)?;
        series.insert(checkpoint.place.series);
    }
    let mut freed = Freed::default();
    for number in series {
        let members = tx.series(&workflow.venture, &workflow.id, number)?;
        let kept = members.iter().filter(|member| member.status != CheckpointStatus::Archived);
        let base = base.filter(|base| base.series == number).map(|base| base.position);
        let needed = needed_positions(kept.map(|member| member.position).chain(base));
        let gone: Vec<_> = members.iter().filter(|member| !needed.contains(&member.position)).collect();
        for member in &gone {
            freed.bytes += member.stored_bytes;
            if let Some(blob) = &member.blob {
                freed.blob_bytes += member.stored_bytes;
                context.effects.unreferenced_blob(blob.clone());
            }
        }
        let positions: Vec<u32> = gone.iter().map(|member| member.position).collect();
        tx.delete_positions(&workflow.venture, &workflow.id, number, &positions)?;
    }
    let unnamed = dropped.iter().filter(|checkpoint| checkpoint.labels.name.is_none()).count() as u64;
    workflow.checkpoint_count = workflow.checkpoint_count.saturating_sub(dropped.len() as u64);
    workflow.unnamed_count = workflow.unnamed_count.saturating_sub(unnamed);
    workflow.stored_bytes = workflow.stored_bytes.saturating_sub(freed.bytes);
    Ok(freed)
}
