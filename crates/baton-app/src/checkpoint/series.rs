//! Reads the context of a checkpoint through its delta chain, and packs the next checkpoint of a series.

use baton_core::checkpoint::{Checkpoint, Place, WorkflowId};
use baton_core::{CheckpointId, Venture};
use baton_store::{FrameError, Packed, StoreError, Tx};

use crate::context_storage::{ContentHash, ContextStorage, Owner, ReadContextError};

/// Reads the context of a checkpoint, as canonical JSON.
pub(super) fn read_context(
    storage: &ContextStorage,
    tx: &mut dyn Tx,
    checkpoint: &Checkpoint,
) -> Result<Vec<u8>, ReadContextError> {
    read_place(storage, tx, (&checkpoint.venture, &checkpoint.workflow_id), checkpoint.place)
}

/// Place and packed context of the next checkpoint of a workflow.
pub(super) struct Next {
    pub(super) place: Place,
    pub(super) packed: Packed,
    /// Damaged checkpoint that was found while reading the base.
    pub(super) damaged: Option<CheckpointId>,
}

/// Packs a context for the next place: as a delta if that saves enough space, otherwise as the start of a new series. A
/// series whose base is unreadable is not continued.
pub(super) fn pack_next(
    storage: &ContextStorage,
    tx: &mut dyn Tx,
    workflow: (&Venture, &WorkflowId),
    context: &[u8],
) -> Result<Next, ReadContextError> {
    let last = tx.last_place(workflow.0, workflow.1)?;
    let mut damaged = None;
    if let Some(place) = last.and_then(Place::next_in_series)
        && let Some(base) = place.base()
        && storage.takes_difference(context.len())
    {
        match read_place(storage, tx, workflow, base) {
            Ok(base) => {
                if let Some(packed) = storage.pack_difference(context, &base).map_err(pack_error)? {
                    return Ok(Next { place, packed, damaged });
                }
            }
            Err(ReadContextError::Store(error)) => return Err(error.into()),
            // Creating the new frame fails if encryption is required and the key is not available.
            Err(ReadContextError::Incomplete | ReadContextError::Sealed { .. }) => {}
            Err(ReadContextError::Damaged { at, .. } | ReadContextError::Missing { at, .. }) => {
                damaged = Some(at)
            }
        }
    }
    let packed = storage.pack_whole(context).map_err(pack_error)?;
    Ok(Next { place: last.map_or(Place::FIRST, Place::next_series), packed, damaged })
}

/// Sizes are checked earlier, so packing fails only without memory.
fn pack_error(error: FrameError) -> ReadContextError {
    ReadContextError::Store(StoreError::Unavailable {
        message: "cannot compress a context".into(),
        source: Some(error.into()),
    })
}

fn read_place(
    storage: &ContextStorage,
    tx: &mut dyn Tx,
    (venture, workflow): (&Venture, &WorkflowId),
    place: Place,
) -> Result<Vec<u8>, ReadContextError> {
    let chain = tx.chain(venture, workflow, place)?;
    if chain.len() != place.chain().len() {
        return Err(ReadContextError::Incomplete);
    }
    let unpack_all = |bases: ContentHash| {
        let mut context: Option<Vec<u8>> = None;
        for (index, stored) in chain.iter().enumerate() {
            let owner = Owner { venture, workflow, checkpoint: stored.checkpoint_id };
            let content_hash = if index + 1 == chain.len() { ContentHash::Compared } else { bases };
            context = Some(storage.unpack(owner, stored, context.as_deref(), content_hash)?);
        }
        context.ok_or(ReadContextError::Incomplete)
    };
    // A damaged base also changes the last context, whose hash is compared. The hashes of the bases are needed only to
    // find the damaged one.
    match unpack_all(ContentHash::Ignored) {
        Err(ReadContextError::Damaged { .. }) => unpack_all(ContentHash::Compared),
        result => result,
    }
}
