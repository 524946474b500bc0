//! What a transaction leaves to be done outside the database: blob files to remove, and log lines that are true only once
//! it is committed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::CheckpointId;
use baton_core::checkpoint::WorkflowId;
use baton_store::{BlobFolder, Durability, Pending, Store, StoreError};

/// The files and deletions of one call. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AfterTransaction(Arc<Mutex<Changes>>);

#[derive(Debug, Default)]
struct Changes {
    /// Blobs that any run of the transaction wrote.
    written: Vec<String>,
    /// Blobs whose rows the last run deleted.
    unreferenced: Vec<String>,
    /// Checkpoints that the last run deleted.
    deleted: Vec<(CheckpointId, WorkflowId)>,
}

impl AfterTransaction {
    /// Notes a blob that was written for a row of this transaction.
    pub(crate) fn wrote_blob(&self, name: &str) {
        self.changes().written.push(name.to_owned());
    }

    /// Notes a blob that no row refers to once this transaction is committed.
    pub(crate) fn unreferenced_blob(&self, name: String) {
        self.changes().unreferenced.push(name);
    }

    /// Notes a checkpoint that is deleted once this transaction is committed.
    pub(crate) fn deleted_checkpoint(&self, id: CheckpointId, workflow: WorkflowId) {
        self.changes().deleted.push((id, workflow));
    }

    /// Forgets what an earlier run deleted, which was rolled back. Blobs that it wrote are still there.
    pub(crate) fn roll_back(&self) {
        let mut changes = self.changes();
        changes.unreferenced.clear();
        changes.deleted.clear();
    }

    /// Logs what was deleted and removes the blobs that no row refers to, after the transaction has ended. None when there is
    /// nothing to remove.
    ///
    /// The rows decide, whatever the outcome was, and they are read in a transaction that excludes other writers: a blob that
    /// another process is about to refer to is not removed. What a crash leaves is removed by the next cleanup.
    pub(crate) fn finish(
        &self,
        is_committed: bool,
        store: &Store,
        blobs: Option<&BlobFolder>,
    ) -> Option<Pending<(), StoreError>> {
        if !is_committed {
            self.roll_back();
        }
        let Changes { written, unreferenced, deleted } = std::mem::take(&mut *self.changes());
        for (checkpoint, workflow) in deleted {
            tracing::info!(%checkpoint, %workflow, "deleted a checkpoint");
        }
        // A committed run refers to the blob that it wrote; others are of runs that were rolled back.
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

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs that unused blobs could not be looked for.
pub(crate) fn report_removal(removed: Result<(), StoreError>) {
    if let Err(error) = removed {
        tracing::warn!(%error, "cannot look for unused blobs; the next cleanup removes them");
    }
}
