//! Room for checkpoints: what is dropped when a workflow has too many or all together take too much.
//!
//! The latest checkpoint of a workflow and those with a name are never dropped. Checkpoints are dropped in the transaction
//! of the save that needs their room: when the save is not stored, nothing is dropped. What is dropped is logged, and its
//! blobs are removed, after the commit.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Place, Workflow, needed_positions};
use baton_core::{ErrorCode, Fault};
use baton_store::{StoreError, Tx};
use serde_json::json;

use super::vault::MAX_ROW_BYTES;
use crate::context::Context;

/// How many checkpoints are dropped in one go.
const BATCH: u32 = 200;
/// How many workflows are looked at in one go.
const WORKFLOWS: u32 = 20;

/// Makes room for one more checkpoint of a workflow, which the caller has locked.
pub(super) fn keep_count(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
) -> Result<(), Fault> {
    let max = context.settings.checkpoints.max_checkpoints;
    while workflow.checkpoint_count >= max {
        let too_many = u32::try_from(workflow.checkpoint_count - max + 1).unwrap_or(BATCH).min(BATCH);
        // The latest may go here: the one that is about to be saved takes its place.
        let oldest = oldest_unnamed(tx, workflow, too_many)?;
        if oldest.is_empty() {
            return Err(Fault::new(
                ErrorCode::StorageQuotaExceeded,
                format!("workflow `{}` has {max} checkpoints, all with a name", workflow.id),
            )
            .hint("delete some (baton checkpoint delete ID), or raise checkpoint.max_per_workflow")
            .details(json!({ "currentCount": workflow.checkpoint_count, "maxCount": max })));
        }
        drop_all(context, tx, workflow, &oldest, None)?;
    }
    Ok(())
}

fn oldest_unnamed(tx: &mut dyn Tx, workflow: &Workflow, limit: u32) -> Result<Vec<Checkpoint>, Fault> {
    let found = tx.droppable_checkpoints(&workflow.venture, &workflow.id, limit)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let latest = tx.latest_checkpoint(&workflow.venture, &workflow.id)?;
    Ok(latest.filter(|latest| latest.labels.name.is_none()).into_iter().collect())
}

/// Keeps the bytes of all workflows within the quota with one more checkpoint: those that were not used for longest give
/// first.
pub(super) fn keep_size(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    next: &Checkpoint,
) -> Result<(), Fault> {
    let max = context.settings.checkpoints.max_total_bytes;
    let needed = next.stored_bytes;
    let usage = context.settings.checkpoints.vault.usage();
    let mut total = match usage.recent() {
        // Far from the quota a number of a moment ago is as good as a new one, which takes longer the more there is.
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

/// Drops checkpoints, on a full disk, until at least as much space is free as the frame of the next one takes.
pub(super) fn free_disk(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    next: &Checkpoint,
    frame_bytes: usize,
) -> Result<(), Fault> {
    // The file of the database does not shrink, so rows make room for rows alone.
    let is_blob = context.settings.checkpoints.vault.blobs().is_some() && frame_bytes > MAX_ROW_BYTES;
    let mut freed_bytes = 0;
    while freed_bytes < frame_bytes as u64 {
        // One at a time: no more is dropped than is needed.
        let freed = free_some(context, tx, workflow, next, 1)?;
        if freed.bytes == 0 {
            return Err(Fault::from(StoreError::Full));
        }
        freed_bytes += if is_blob { freed.blob_bytes } else { freed.bytes };
    }
    Ok(())
}

/// Drops up to `limit` checkpoints of one workflow, and goes on until that frees something or nothing can be dropped.
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
            let shrunk = shrink(context, tx, found, limit)?;
            if shrunk.freed.bytes > 0 {
                return Ok(shrunk.freed);
            }
            dropped += shrunk.dropped;
        }
        // What was dropped is still leant on. Those workflows have no more to give; others may.
        if dropped == 0 {
            break;
        }
    }
    loop {
        let oldest = tx.droppable_checkpoints(&current.venture, &current.id, limit)?;
        let freed = drop_all(context, tx, current, &oldest, next.place.base())?;
        if freed.bytes > 0 || oldest.is_empty() {
            return Ok(freed);
        }
    }
}

/// Space that dropped checkpoints took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Freed {
    /// In rows and blobs.
    pub(super) bytes: u64,
    /// In blobs alone.
    pub(super) blob_bytes: u64,
}

/// What a workflow gave.
#[derive(Default)]
struct Shrunk {
    dropped: u64,
    freed: Freed,
}

/// Leaves a workflow its latest checkpoint and those with a name.
fn shrink(context: &Context<'_>, tx: &mut dyn Tx, found: &Workflow, limit: u32) -> Result<Shrunk, Fault> {
    let Some(mut workflow) = tx.lock_workflow(&found.venture, &found.id)? else {
        return Ok(Shrunk::default());
    };
    let oldest = tx.droppable_checkpoints(&workflow.venture, &workflow.id, limit)?;
    let freed = drop_all(context, tx, &mut workflow, &oldest, None)?;
    tx.update_workflow(&workflow)?;
    Ok(Shrunk { dropped: oldest.len() as u64, freed })
}

/// Shrinks workflows that nobody used for the time that they are kept; gives how many checkpoints were dropped.
pub(crate) fn shrink_unused(context: &Context<'_>, tx: &mut dyn Tx) -> Result<u64, Fault> {
    let since = context.now.minus(context.settings.checkpoints.retention);
    let mut dropped = 0;
    for found in tx.unused_workflows(since, WORKFLOWS)? {
        dropped += shrink(context, tx, &found, BATCH)?.dropped;
    }
    Ok(dropped)
}

/// Drops checkpoints of a workflow, and removes for good what none of the others leans on, nor one at `base` that is about
/// to be saved. Gives the bytes that this freed; the workflow's own numbers are changed, not yet written.
pub(super) fn drop_all(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    workflow: &mut Workflow,
    dropped: &[Checkpoint],
    base: Option<Place>,
) -> Result<Freed, StoreError> {
    let mut series: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for checkpoint in dropped {
        context.effects.deleted_checkpoint(checkpoint.id, workflow.id.clone());
        tx.set_checkpoint_status(checkpoint.id, CheckpointStatus::Archived)?;
        series.entry(checkpoint.place.series).or_default().insert(checkpoint.place.position);
    }
    let mut freed = Freed::default();
    for number in series.into_keys() {
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
