//! Reading a checkpoint's context through what it leans on, and finding what the next one leans on.

use baton_core::checkpoint::{Checkpoint, Place, WorkflowId};
use baton_core::{CheckpointId, Venture};
use baton_store::{FrameError, Packed, StoreError, Tx};

use super::vault::{Owner, Unreadable, Vault};

/// A checkpoint whose context could not be read.
#[derive(Debug)]
pub(super) enum Broken {
    /// This checkpoint, which it is or leans on, is damaged.
    Damaged { at: CheckpointId, problem: String },
    /// The blob of this checkpoint, which it is or leans on, is missing.
    Missing { at: CheckpointId, name: String },
    /// It is sealed with a key that is not at hand.
    Sealed { key_id: String },
    /// What it leans on is gone.
    Incomplete,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Reads the context of a checkpoint, as canonical JSON.
pub(super) fn read_context(
    vault: &Vault,
    tx: &mut dyn Tx,
    checkpoint: &Checkpoint,
) -> Result<Vec<u8>, Broken> {
    read_place(vault, tx, (&checkpoint.venture, &checkpoint.workflow_id), checkpoint.place)
}

/// Where the next checkpoint of a workflow stands, and its frame.
pub(super) struct Next {
    pub(super) place: Place,
    pub(super) packed: Packed,
    /// The checkpoint that turned out to be damaged while looking for one to lean on.
    pub(super) damaged: Option<CheckpointId>,
}

/// Packs a context for the place after the last one: as a difference where that is worth it, else as the beginning of
/// a new series. A series that cannot be read is not gone on with.
pub(super) fn pack_next(
    vault: &Vault,
    tx: &mut dyn Tx,
    workflow: (&Venture, &WorkflowId),
    context: &[u8],
) -> Result<Next, Broken> {
    let last = tx.last_place(workflow.0, workflow.1)?;
    let mut damaged = None;
    if let Some(place) = last.and_then(Place::next_in_series)
        && let Some(base) = place.base()
        && vault.takes_difference(context.len())
    {
        match read_place(vault, tx, workflow, base) {
            Ok(base) => {
                if let Some(packed) = vault.pack_difference(context, &base).map_err(unpackable)? {
                    return Ok(Next { place, packed, damaged });
                }
            }
            Err(Broken::Store(error)) => return Err(error.into()),
            // Whether it may be gone on without the key is decided where the new frame is sealed, or not.
            Err(Broken::Incomplete | Broken::Sealed { .. }) => {}
            Err(Broken::Damaged { at, .. } | Broken::Missing { at, .. }) => damaged = Some(at),
        }
    }
    let packed = vault.pack_whole(context).map_err(unpackable)?;
    Ok(Next { place: last.map_or(Place::FIRST, Place::next_series), packed, damaged })
}

/// Sizes are checked before: that a context cannot be packed means that there is no memory for it.
fn unpackable(error: FrameError) -> Broken {
    Broken::Store(StoreError::Unavailable {
        message: "a context could not be packed".into(),
        source: Some(error.into()),
    })
}

fn read_place(
    vault: &Vault,
    tx: &mut dyn Tx,
    (venture, workflow): (&Venture, &WorkflowId),
    place: Place,
) -> Result<Vec<u8>, Broken> {
    let chain = tx.chain(venture, workflow, place)?;
    if chain.len() != place.chain().len() {
        return Err(Broken::Incomplete);
    }
    let mut context: Option<Vec<u8>> = None;
    for stored in &chain {
        let owner = Owner { venture, workflow, checkpoint: stored.checkpoint_id };
        let unpacked = vault.unpack(owner, stored, context.as_deref()).map_err(|error| match error {
            Unreadable::Damaged(problem) => Broken::Damaged { at: stored.checkpoint_id, problem },
            Unreadable::Missing { name } => Broken::Missing { at: stored.checkpoint_id, name },
            Unreadable::Sealed { key_id } => Broken::Sealed { key_id },
            Unreadable::Store(error) => Broken::Store(error),
        })?;
        context = Some(unpacked);
    }
    context.ok_or(Broken::Incomplete)
}
