//! Effects of a call besides its transaction: blob files to remove, log lines that are true only once it is committed,
//! updates that are written after the response, and the session to name in the request log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::checkpoint::{CheckpointStatus, WorkflowId};
use baton_core::{CheckpointId, SessionId, Timestamp, Venture};
use baton_store::{BlobFolder, Durability, Pending, PurgedItems, Store, StoreError, Tx};

/// Effects of one call. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallEffects(Arc<Mutex<Effects>>);

#[derive(Debug, Default)]
struct Effects {
    /// Session that the call concerns.
    session: Option<(SessionId, Venture)>,
    /// Updates to write after the response.
    deferred: Vec<DeferredUpdate>,
    /// Blobs that any run of the transaction wrote.
    written: Vec<String>,
    /// Blobs whose rows the last run deleted.
    unreferenced: Vec<String>,
    /// Checkpoints that the last run deleted.
    deleted: Vec<(CheckpointId, WorkflowId)>,
}

/// An update that is written after the response. Nothing waits for it, and a read does not fail because of it.
#[derive(Debug, Clone)]
pub(crate) enum DeferredUpdate {
    /// A workflow was used.
    Used {
        venture: Venture,
        workflow: WorkflowId,
        at: Timestamp,
    },
    Damaged(CheckpointId),
    /// A checkpoint that was damaged can be read again.
    Sound(CheckpointId),
}

impl DeferredUpdate {
    fn write(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        match self {
            Self::Used { venture, workflow, at } => tx.touch_workflow(venture, workflow, *at),
            Self::Sound(id) => tx.set_checkpoint_status(*id, CheckpointStatus::Active),
            Self::Damaged(id) => tx.set_checkpoint_status(*id, CheckpointStatus::Corrupt),
        }
    }
}

impl CallEffects {
    /// Sets the session that the call concerns. An operation that is run again finds the same one.
    pub(crate) fn set_session(&self, id: SessionId, venture: &Venture) {
        self.lock().session.get_or_insert_with(|| (id, venture.clone()));
    }

    /// Returns the session that the call concerns.
    pub(crate) fn session(&self) -> Option<(SessionId, Venture)> {
        self.lock().session.clone()
    }

    /// Adds an update to write after the response, also for an operation that only reads.
    pub(crate) fn defer(&self, update: DeferredUpdate) {
        self.lock().deferred.push(update);
    }

    /// Hands the deferred updates to the store without waiting for them.
    pub(crate) fn write_deferred(&self, store: &Store) {
        let deferred = std::mem::take(&mut self.lock().deferred);
        if deferred.is_empty() {
            return;
        }
        drop(store.write::<(), StoreError, _>(Durability::Lazy, move |tx| {
            let written = deferred.iter().try_for_each(|update| update.write(tx));
            written.inspect_err(|error| tracing::warn!(%error, "deferred update failed"))
        }));
    }

    /// Records a blob that was written for a row of this transaction.
    pub(crate) fn wrote_blob(&self, name: &str) {
        self.lock().written.push(name.to_owned());
    }

    /// Records a blob that no row refers to once this transaction is committed.
    pub(crate) fn unreferenced_blob(&self, name: String) {
        self.lock().unreferenced.push(name);
    }

    /// Records the blobs of purged queue items and returns the number of items.
    pub(crate) fn purged(&self, purged: PurgedItems) -> u64 {
        self.lock().unreferenced.extend(purged.blobs);
        purged.count
    }

    /// Records a checkpoint that is deleted once this transaction is committed.
    pub(crate) fn deleted_checkpoint(&self, id: CheckpointId, workflow: WorkflowId) {
        self.lock().deleted.push((id, workflow));
    }

    /// Discards the deletions of an earlier run, which was rolled back. Blobs that it wrote still exist.
    pub(crate) fn roll_back(&self) {
        let mut effects = self.lock();
        effects.unreferenced.clear();
        effects.deleted.clear();
    }

    /// Logs what was deleted and removes the blobs that no row refers to, after the transaction has ended. Returns
    /// `None` if there is nothing to remove.
    ///
    /// A blob is removed only if no row refers to it, regardless of the outcome of the call. The rows are
    /// read in a transaction that excludes other writers, so a blob that another process is about to refer to
    /// is not removed. Blobs left by a crash are removed by the next cleanup.
    pub(crate) fn finish(
        &self,
        is_committed: bool,
        store: &Store,
        blobs: Option<&BlobFolder>,
    ) -> Option<Pending<(), StoreError>> {
        if !is_committed {
            self.roll_back();
        }
        let (written, unreferenced, deleted) = {
            let Effects { written, unreferenced, deleted, .. } = &mut *self.lock();
            (std::mem::take(written), std::mem::take(unreferenced), std::mem::take(deleted))
        };
        for (checkpoint, workflow) in deleted {
            tracing::info!(%checkpoint, %workflow, "deleted a checkpoint");
        }
        // A committed run refers to the blob that it wrote; other blobs belong to runs that were rolled back.
        let are_all_used = is_committed && unreferenced.is_empty() && written.len() <= 1;
        let names = if are_all_used { Vec::new() } else { [written, unreferenced].concat() };
        let blobs = blobs.filter(|_| !names.is_empty())?.clone();
        Some(store.write(Durability::Lazy, move |tx| {
            for name in tx.orphans_among(&names)? {
                if let Err(error) = blobs.remove(&name) {
                    tracing::warn!(%error, blob = name, "cannot remove an unused blob; the next cleanup removes it");
                }
            }
            Ok(())
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Effects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
