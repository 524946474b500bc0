//! Indexes items that were added or changed. Hooks only record the ids of such items; the worker, the
//! periodic maintenance and a search index them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use baton_core::observation::TurnId;
use baton_core::recall::{Document, ItemKind, MarkKind};
use baton_core::{Fault, ObservationId};
use baton_store::{Durability, Store, StoreError, Tx};

use super::item::{Item, Loader};
use crate::context::Context;

/// Maximum number of items per transaction.
const BATCH: u32 = 128;
/// Number of batches that a search indexes before it reads. The rest is left to the worker and the maintenance.
const MAX_BATCHES_BEFORE_READING: usize = 16;

/// Indexes one batch of items. Returns the number of items in it; 0 if nothing is left.
pub fn index_some(store: &Store) -> Result<usize, Fault> {
    if !store.read(|tx| Ok::<_, Fault>(tx.has_items_to_index()?)).wait()? {
        return Ok(0);
    }
    // The index can be rebuilt, so it needs no disk sync of its own.
    store.write_blocking(Durability::Lazy, |tx| index_batch(tx).map_err(Fault::from))
}

/// Indexes until nothing is left, and reports the number of items of each batch. Returns the number of all items.
pub fn index_all(store: &Store, mut report: impl FnMut(usize)) -> Result<usize, Fault> {
    let mut total = 0;
    loop {
        match index_some(store)? {
            0 => return Ok(total),
            indexed => {
                report(indexed);
                total += indexed;
            }
        }
    }
}

/// Indexes new items before a search, because without a running worker they would not be found. A search works on the
/// index as it is if this fails.
pub(crate) fn index_before_reading(context: &Context<'_>) {
    let Some(store) = context.store else { return };
    for _ in 0..MAX_BATCHES_BEFORE_READING {
        match index_some(store) {
            Ok(0) => return,
            Ok(_) => {}
            Err(fault) => return tracing::debug!(%fault, "cannot index new items before a search"),
        }
    }
}

/// Indexes at least as many waiting items as were just stored in the same transaction.
pub(crate) fn index_stored(tx: &mut dyn Tx, stored: u64) -> Result<(), StoreError> {
    let mut indexed = 0;
    while indexed < stored {
        match index_batch(tx)? {
            0 => break,
            batch => indexed += batch as u64,
        }
    }
    Ok(())
}

/// Returns what is wrong with the index; nothing if it matches the items of the store.
pub fn check_index(store: &Store) -> Result<Vec<String>, Fault> {
    store.write_blocking(Durability::Lazy, |tx| {
        tx.allow_long_statements()?;
        Ok::<_, Fault>(tx.index_problems()?)
    })
}

/// Rebuilds the whole index, and reports the number of items of each batch. Returns the number of all items.
pub fn rebuild_index(store: &Store, report: impl FnMut(usize)) -> Result<usize, Fault> {
    store.write_blocking(Durability::Lazy, |tx| {
        tx.lock_index()?;
        tx.allow_long_statements()?;
        Ok::<_, Fault>(tx.clear_index()?)
    })?;
    index_all(store, report)
}

fn index_batch(tx: &mut dyn Tx) -> Result<usize, StoreError> {
    tx.lock_index()?;
    if !tx.is_index_built()? {
        tx.allow_long_statements()?;
        tx.enqueue_everything()?;
    }
    let entries = tx.pending_items(BATCH)?;
    let mut loader = Loader::default();
    let mut items: Vec<Item> = Vec::new();
    let mut gone: HashMap<ItemKind, Vec<String>> = HashMap::new();
    let ids = entries.iter().filter(|entry| entry.kind == ItemKind::Observation);
    let ids: Vec<ObservationId> = ids.filter_map(|entry| entry.item.parse().ok()).collect();
    let observations = tx.observations_with_ids(&ids)?;
    let mut observations: HashMap<String, _> =
        observations.into_iter().map(|observation| (observation.id.to_string(), observation)).collect();
    let mut seen = HashSet::new();
    for entry in &entries {
        if !seen.insert((entry.kind, entry.item.as_str())) {
            continue;
        }
        let item = match observations.remove(&entry.item) {
            Some(observation) => Some(loader.observation(tx, observation)?),
            None => loader.load_intact(tx, entry.kind, &entry.item)?,
        };
        match item {
            Some(item) => items.push(item),
            None => gone.entry(entry.kind).or_default().push(entry.item.clone()),
        }
    }
    items.extend(turns_with_new_files(tx, &mut loader, &items)?);
    let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
    let marks = tx.marks_of(&ids)?;
    let marks: HashMap<&str, MarkKind> = marks.iter().map(|mark| (mark.item.as_str(), mark.kind)).collect();
    let mut documents: Vec<Document> = Vec::with_capacity(items.len());
    for item in &items {
        match marks.get(item.id.as_str()) {
            Some(mark) if mark.hides() => gone.entry(item.kind).or_default().push(item.id.clone()),
            mark => documents.push(item.document(mark.is_some())),
        }
    }
    tx.put_documents(&documents)?;
    for (kind, items) in gone {
        tx.delete_documents(kind, &items)?;
    }
    tx.delete_pending(&entries)?;
    Ok(entries.len())
}

/// Reads the turns in which items touched files that the indexed turn does not list yet.
fn turns_with_new_files(
    tx: &mut dyn Tx,
    loader: &mut Loader,
    items: &[Item],
) -> Result<Vec<Item>, StoreError> {
    let is_turn = |item: &&Item| item.kind == ItemKind::Turn;
    let mut listed: HashMap<TurnId, HashSet<String>> = items
        .iter()
        .filter(is_turn)
        .filter_map(|item| Some((item.turn?, item.files.iter().cloned().collect())))
        .collect();
    let mut stale = BTreeSet::new();
    for item in items.iter().filter(|item| !is_turn(item) && !item.files.is_empty()) {
        let Some(turn) = item.turn else { continue };
        let files = match listed.entry(turn) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let indexed = tx.document(ItemKind::Turn, &turn.to_string())?;
                let files = indexed.map(|indexed| indexed.document.files).unwrap_or_default();
                unknown.insert(files.into_iter().collect())
            }
        };
        if item.files.iter().any(|file| !files.contains(file)) {
            stale.insert(turn);
        }
    }
    let mut found = Vec::new();
    for turn in stale {
        found.extend(loader.load(tx, ItemKind::Turn, &turn.to_string())?);
    }
    Ok(found)
}
