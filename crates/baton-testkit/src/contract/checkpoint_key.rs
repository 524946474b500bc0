//! The keys that checkpoints are sealed with: counts per key, and replacement of frames with the bytes of their workflow.

use baton_core::checkpoint::{Checkpoint, Workflow};
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

/// A replaced frame changes the stored bytes of its workflow and of no other one. A wrong number is reported, and
/// corrected by a recount.
pub fn replaced_frames_count_in_their_workflow(store: &TestStore) {
    let bytes = |id: &str| -> u64 {
        let of = workflow(id);
        read(store, move |tx| tx.workflow(&of.venture, &of.id)).unwrap().stored_bytes
    };
    let recorded = |id: &str, stored_bytes: u64| Workflow {
        checkpoint_count: 2,
        unnamed_count: 2,
        stored_bytes,
        ..workflow(id)
    };
    for id in ["a", "b"] {
        let (row, rows) = (recorded(id, 4), [0, 1].map(|position| checkpoint(&workflow(id), 0, position)));
        write(store, move |tx| {
            tx.insert_workflow(&row)?;
            rows.iter().try_for_each(|checkpoint| tx.insert_checkpoint(checkpoint, &frame()))
        });
    }
    let of = workflow("a");
    let found = read(store, move |tx| tx.latest_checkpoint(&of.venture, &of.id)).unwrap();
    for (size_bytes, expected) in [(64, 66), (1, 3)] {
        let written = Frame { size_bytes, ..sealed(Some("new")) };
        write(store, move |tx| tx.replace_frame(found.id, &written));
        assert_eq!((bytes("a"), bytes("b")), (expected, 4));
    }
    assert_eq!(read(store, |tx| tx.miscounted_workflows(10)), []);

    let wrong = recorded("a", 4);
    write(store, move |tx| tx.update_workflow(&wrong));
    let problem = "it records 2 checkpoints (2 unnamed, 4 bytes) and has 2 (2 unnamed, 3 bytes)";
    let miscounted = ("vc".to_owned(), "a".to_owned(), problem.to_owned());
    assert_eq!(read(store, |tx| tx.miscounted_workflows(10)), [miscounted]);
    for id in ["a", "b", "unknown"] {
        let of = workflow(id);
        write(store, move |tx| tx.recount_stored_bytes(&of.venture, &of.id));
    }
    assert_eq!((bytes("a"), bytes("b")), (3, 4));
}
