//! The keys that checkpoints are sealed with: counts per key, and replacement of frames.

use baton_core::checkpoint::Checkpoint;
use baton_core::{CheckpointId, Sha256Hash};
use baton_store::{Encoding, Frame, FrameBody, Store};

use super::fixture::{checkpoint, frame, workflow};
use super::store::{TestStore, read, write};

fn sealed(key: Option<&str>) -> Frame {
    Frame { key_id: key.map(str::to_owned), ..frame() }
}

/// Adds one checkpoint for each key, in order.
fn insert(store: &Store, keys: &[Option<&str>]) -> Vec<Checkpoint> {
    let of = workflow("a");
    let add = |(position, key): (usize, &Option<&str>)| {
        let (row, held) = (checkpoint(&of, 0, u32::try_from(position).unwrap()), sealed(*key));
        let written = row.clone();
        write(store, move |tx| tx.insert_checkpoint(&row, &held));
        written
    };
    keys.iter().enumerate().map(add).collect()
}

fn others(store: &Store, key: &'static str, after: Option<CheckpointId>, limit: u32) -> Vec<CheckpointId> {
    let found = read(store, move |tx| tx.frames_of_other_keys(key, after, limit));
    for (checkpoint, stored) in &found {
        assert_eq!((checkpoint.id, checkpoint.place), (stored.checkpoint_id, stored.place));
        assert_eq!(checkpoint.context_hash, stored.context_hash);
    }
    found.into_iter().map(|(checkpoint, _)| checkpoint.id).collect()
}

/// Checkpoints are counted per key; unsealed ones are not counted.
pub fn checkpoints_are_counted_per_key(store: &TestStore) {
    assert_eq!(read(store, |tx| tx.keys_in_use()), []);
    insert(store, &[Some("k2"), None, Some("k1"), Some("k2"), Some("K1")]);
    let expected = [("K1", 1), ("k1", 1), ("k2", 2)].map(|(key, count)| (key.to_owned(), count));
    let mut found = read(store, |tx| tx.keys_in_use());
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// Frames sealed with another key, or not at all, are listed by id in batches.
pub fn frames_of_other_keys_are_listed_in_batches(store: &TestStore) {
    let all = insert(store, &[Some("old"), None, Some("new"), Some("older"), Some("old")]);
    let ids = |numbers: &[usize]| -> Vec<CheckpointId> { numbers.iter().map(|n| all[*n].id).collect() };
    assert_eq!(others(store, "new", None, 10), ids(&[0, 1, 3, 4]));
    assert_eq!(others(store, "new", None, 2), ids(&[0, 1]));
    assert_eq!(others(store, "new", Some(all[3].id), 2), ids(&[4]));
    assert_eq!(others(store, "new", Some(all[4].id), 2), []);
    assert_eq!(others(store, "older", None, 10), ids(&[0, 1, 2, 4]));
}

/// A frame is replaced as a whole, from row to blob and back. The checkpoint does not change.
pub fn frames_are_replaced(store: &TestStore) {
    let all = insert(store, &[Some("old"), Some("old")]);
    let id = all[0].id;
    let in_blob = Frame {
        encoding: Encoding::Zstd,
        key_id: Some("new".into()),
        hash: Sha256Hash::of(b"other"),
        size_bytes: 5,
        body: FrameBody::Blob("name".into()),
    };
    for held in [in_blob, Frame { body: FrameBody::Row(b"other".to_vec()), ..sealed(None) }] {
        let written = held.clone();
        write(store, move |tx| tx.replace_frame(id, &written));
        let of = workflow("a");
        let chain =
            read(store, move |tx| tx.chain(&of.venture, &of.id, baton_core::checkpoint::Place::FIRST));
        assert_eq!(chain[0].frame, held);
        let expected = Checkpoint { stored_bytes: held.size_bytes, ..all[0].clone() };
        assert_eq!(read(store, move |tx| tx.checkpoint(id)), Some(expected));
    }
    assert_eq!(others(store, "new", None, 10), [all[0].id, all[1].id], "the first is not sealed any more");
}
