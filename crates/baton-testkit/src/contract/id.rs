//! Ids by their beginning.

use baton_core::checkpoint::CheckpointStatus;
use baton_core::{Note, NoteId, PartialId, Ulid, Venture};

use super::fixture::{NOW, checkpoint, frame, workflow};
use super::note::note;
use super::store::{TestStore, read, write};

fn find(store: &TestStore, prefix: &str, ventures: Option<&[&str]>, limit: u32) -> Vec<String> {
    let prefix = PartialId::parse(prefix).unwrap();
    let ventures: Option<Vec<Venture>> =
        ventures.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
    read(store, move |tx| tx.ids_with_prefix(&prefix, ventures.as_deref(), limit))
}

/// Ids are found by any beginning, oldest first, in the named ventures only.
pub fn ids_are_found_by_their_beginning(store: &TestStore) {
    let at =
        |millis: u64, random: u128| NoteId::new(Ulid::from_parts(NOW.as_millis() as u64 + millis, random));
    let (first, second, other) = (at(0, 1), at(0, 2), at(1 << 20, 1));
    let notes = [
        Note { id: second, ..note(1) },
        Note { id: first, ..note(1) },
        Note { id: other, venture: "w".parse().unwrap(), ..note(1) },
    ];
    write(store, move |tx| notes.iter().try_for_each(|note| tx.insert_note(note)));
    let [first, second, other] = [first, second, other].map(|id| id.to_string());
    let all = &first[..NoteId::PREFIX.len() + 4];
    let shared = &first[..first.len() - 1];
    assert_eq!(find(store, shared, None, 10), [first.as_str(), &second]);
    assert_eq!(find(store, shared, None, 1), [first.as_str()]);
    assert_eq!(find(store, all, None, 10), [first.as_str(), &second, &other]);
    assert_eq!(find(store, all, Some(&["w"]), 10), [other.as_str()]);
    assert!(find(store, all, Some(&[]), 10).is_empty());
    assert!(find(store, "note_7ZZZ", None, 10).is_empty());
    for kind in ["sess_01KF", "ho_01KF", "ckpt_01KF", "obs_01KF"] {
        assert!(find(store, kind, None, 10).is_empty(), "{kind}");
    }
}

/// Deleted checkpoints, whose rows remain as archived ones, are not found.
pub fn archived_checkpoints_are_not_found(store: &TestStore) {
    let of = workflow("a");
    let (kept, deleted) = (checkpoint(&of, 0, 0), checkpoint(&of, 0, 1));
    let (kept_id, deleted_id) = (kept.id.to_string(), deleted.id);
    write(store, move |tx| {
        tx.insert_checkpoint(&kept, &frame())?;
        tx.insert_checkpoint(&deleted, &frame())?;
        tx.set_checkpoint_status(deleted.id, CheckpointStatus::Archived)
    });
    assert_eq!(find(store, &kept_id[..kept_id.len() - 1], None, 10), [kept_id.as_str()]);
    let deleted_id = deleted_id.to_string();
    assert!(!find(store, &deleted_id[..deleted_id.len() - 1], None, 10).contains(&deleted_id));
}
