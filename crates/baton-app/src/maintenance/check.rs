//! Checks everything that is stored, for `baton doctor --deep`. Only [`recount_workflows`] writes.

use std::collections::BTreeMap;
use std::io;

use baton_core::Fault;
use baton_store::{BlobFolder, Durability, RawReader, Store, StoreError, Tx};
use serde::Serialize;

use crate::checkpoint::{Checked, ContextStorage, check};

/// Number of ids read per batch.
const BATCH: u32 = 500;
/// Maximum number of damaged items that are listed.
const NAMED: usize = 100;

/// A stored item that is unreadable or inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// `checkpoint`, `captured tool use` or `workflow`.
    pub kind: &'static str,
    /// Id of the item.
    pub id: String,
    /// Description of the problem.
    pub problem: String,
    /// Recommended action.
    pub next: String,
}

/// Result of a check of all stored data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoreCheck {
    /// Number of checkpoints whose context was read and matches the recorded hash.
    pub checkpoints: u64,
    /// Number of captured tool uses whose raw output was read.
    pub raw_outputs: u64,
    /// Number of intact checkpoints whose encryption key is not available, by key.
    pub without_key: BTreeMap<String, u64>,
    /// Number of damaged items.
    pub damaged: u64,
    /// The first damaged items.
    pub damage: Vec<Damage>,
}

impl StoreCheck {
    fn record_damage(&mut self, kind: &'static str, id: String, problem: String, next: String) {
        self.damaged += 1;
        if self.damage.len() < NAMED {
            self.damage.push(Damage { kind, id, problem, next });
        }
    }
}

/// Reads every checkpoint and every raw output, and compares the counts of workflows. Holds one context at a time.
pub fn check_store(store: &Store, storage: &ContextStorage) -> Result<StoreCheck, Fault> {
    let mut found = StoreCheck::default();
    check_checkpoints(store, storage, &mut found)?;
    check_raw_outputs(store, storage.blobs(), &mut found)?;
    for (venture, id, problem) in read(store, |tx| tx.miscounted_workflows(BATCH))? {
        let next =
            format!("run baton doctor --deep --repair; restore a backup if checkpoints of {id} are missing");
        found.record_damage("workflow", format!("{venture}/{id}"), problem, next);
    }
    Ok(found)
}

/// Corrects the stored bytes that workflows record, and returns the number of corrected workflows. Recorded numbers of
/// checkpoints stay as they are, because a difference means that a checkpoint is missing.
pub fn recount_workflows(store: &Store) -> Result<usize, Fault> {
    let work = |tx: &mut dyn Tx| {
        let wrong = tx.miscounted_workflows(BATCH)?;
        for (venture, id, _) in &wrong {
            let (Ok(venture), Ok(id)) = (venture.parse(), id.parse()) else { continue };
            tx.lock_workflow(&venture, &id)?;
            tx.recount_stored_bytes(&venture, &id)?;
        }
        Ok::<_, StoreError>(wrong.len().saturating_sub(tx.miscounted_workflows(BATCH)?.len()))
    };
    store.write_blocking(Durability::Full, work).map_err(Fault::from)
}

fn read<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Fault> {
    store.read(work).wait().map_err(Fault::from)
}

fn check_checkpoints(store: &Store, storage: &ContextStorage, found: &mut StoreCheck) -> Result<(), Fault> {
    let mut after = String::new();
    loop {
        let last = after.clone();
        let ids = read(store, move |tx| tx.checkpoint_ids(&last, BATCH))?;
        let Some(last) = ids.last() else { return Ok(()) };
        after.clone_from(last);
        for id in ids {
            let (storage, asked) = (storage.clone(), id.clone());
            match read(store, move |tx| check(&storage, tx, &asked))? {
                Checked::Sound => found.checkpoints += 1,
                Checked::Gone => {}
                Checked::Sealed { key_id } => *found.without_key.entry(key_id).or_default() += 1,
                Checked::Damaged { problem } => {
                    let next = format!("restore a backup, or run baton checkpoint delete {id}");
                    found.record_damage("checkpoint", id, problem, next);
                }
            }
        }
    }
}

fn check_raw_outputs(store: &Store, blobs: Option<&BlobFolder>, found: &mut StoreCheck) -> Result<(), Fault> {
    let mut after = i64::MIN;
    loop {
        let last = after;
        let ids = read(store, move |tx| tx.queue_ids(last, BATCH))?;
        let Some(last) = ids.last() else { return Ok(()) };
        after = *last;
        for id in ids {
            let blobs = blobs.cloned();
            match read(store, move |tx| check_raw_output(tx, id, blobs.as_ref()))? {
                RawOutputCheck::Deleted => {}
                RawOutputCheck::Intact => found.raw_outputs += 1,
                RawOutputCheck::Damaged(problem) => {
                    let next =
                        "restore a backup, or remove it with baton queue purge once it is done or failed"
                            .into();
                    found.record_damage("captured tool use", id.to_string(), problem, next);
                }
            }
        }
    }
}

enum RawOutputCheck {
    Deleted,
    Intact,
    Damaged(String),
}

/// Reads a raw output to its end.
fn check_raw_output(
    tx: &mut dyn Tx,
    id: i64,
    blobs: Option<&BlobFolder>,
) -> Result<RawOutputCheck, StoreError> {
    let Some(raw) = tx.queue_raw(id)? else { return Ok(RawOutputCheck::Deleted) };
    let mut reader = match RawReader::open(raw, blobs) {
        Ok(reader) => reader,
        Err(StoreError::Corrupt { problem, .. }) => return Ok(RawOutputCheck::Damaged(problem)),
        Err(error @ StoreError::BlobMissing { .. }) => return Ok(RawOutputCheck::Damaged(error.to_string())),
        Err(error) => return Err(error),
    };
    Ok(match io::copy(&mut reader, &mut io::sink()) {
        Ok(_) => RawOutputCheck::Intact,
        Err(error) => RawOutputCheck::Damaged(error.to_string()),
    })
}
