//! What a call leaves to be written when its answer is already on its way: that a workflow was used, that a checkpoint
//! turned out to be damaged. A reader's right to read does not depend on it, and nobody waits for it.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::checkpoint::{CheckpointStatus, WorkflowId};
use baton_core::{CheckpointId, Timestamp, Venture};
use baton_store::{Durability, Store, StoreError, Tx};

/// One thing to be written afterwards.
#[derive(Debug, Clone)]
pub(crate) enum Afterthought {
    /// A workflow was used.
    Used { venture: Venture, workflow: WorkflowId, at: Timestamp },
    /// A checkpoint is damaged.
    Damaged(CheckpointId),
    /// A checkpoint that was damaged can be read again.
    Sound(CheckpointId),
}

/// What a call has left so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Afterthoughts(Arc<Mutex<Vec<Afterthought>>>);

impl Afterthoughts {
    pub(crate) fn add(&self, afterthought: Afterthought) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(afterthought);
    }

    /// Hands what was left to the store, and does not wait for it.
    pub(crate) fn write(&self, store: &Store) {
        let left = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if left.is_empty() {
            return;
        }
        drop(store.write::<(), StoreError, _>(Durability::Lazy, move |tx| {
            let written = left.iter().try_for_each(|afterthought| afterthought.write(tx));
            written.inspect_err(|error| tracing::warn!(%error, "deferred update failed"))
        }));
    }
}

impl Afterthought {
    fn write(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        match self {
            Self::Used { venture, workflow, at } => tx.touch_workflow(venture, workflow, *at),
            Self::Sound(id) => tx.set_checkpoint_status(*id, CheckpointStatus::Active),
            Self::Damaged(id) => tx.set_checkpoint_status(*id, CheckpointStatus::Corrupt),
        }
    }
}
