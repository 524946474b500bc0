//! Checkpoints: fields, unique places, chains, lists, and which ones may be archived.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, Workflow};
use baton_core::{CheckpointId, Sha256Hash, Venture};
use baton_store::{Encoding, Frame, FrameBody, SeriesMember, Store, StoreError, StoredFrame};

use super::fixture::{AWKWARD, checkpoint, checkpoint_id, frame, later, session_id, workflow};
use super::store::{TestStore, read, try_write, write};

fn insert(store: &Store, checkpoints: &[&Checkpoint]) {
    let checkpoints: Vec<Checkpoint> = checkpoints.iter().map(|&checkpoint| checkpoint.clone()).collect();
    write(store, move |tx| {
        checkpoints.iter().try_for_each(|checkpoint| tx.insert_checkpoint(checkpoint, &frame()))
    });
}

fn find(store: &Store, id: CheckpointId) -> Option<Checkpoint> {
    read(store, move |tx| tx.checkpoint(id))
}

fn list(store: &Store, of: &Workflow, offset: u32, limit: u32) -> Vec<CheckpointId> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    let found = read(store, move |tx| tx.checkpoints(&venture, &id, offset, limit));
    found.into_iter().map(|checkpoint| checkpoint.id).collect()
}

fn latest(store: &Store, of: &Workflow) -> Option<CheckpointId> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    read(store, move |tx| tx.latest_checkpoint(&venture, &id)).map(|checkpoint| checkpoint.id)
}

fn last_place(store: &Store, of: &Workflow) -> Option<Place> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    read(store, move |tx| tx.last_place(&venture, &id))
}

fn chain(store: &Store, of: &Workflow, series: u32, position: u32) -> Vec<StoredFrame> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    read(store, move |tx| tx.chain(&venture, &id, Place { series, position }))
}

fn droppable(store: &Store, of: &Workflow, limit: u32) -> Vec<CheckpointId> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    let found = read(store, move |tx| tx.deletable_checkpoints(&venture, &id, limit));
    found.into_iter().map(|checkpoint| checkpoint.id).collect()
}

fn series(store: &Store, of: &Workflow, series: u32) -> Vec<u32> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    let found: Vec<SeriesMember> = read(store, move |tx| tx.series(&venture, &id, series));
    found.into_iter().map(|member| member.position).collect()
}

fn delete(store: &Store, of: &Workflow, series: u32, positions: &'static [u32]) {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    write(store, move |tx| tx.delete_positions(&venture, &id, series, positions));
}

fn set_status(store: &Store, id: CheckpointId, status: CheckpointStatus) {
    write(store, move |tx| tx.set_checkpoint_status(id, status));
}

/// Creates another workflow with the same id, in another venture.
fn namesake(of: &Workflow) -> Workflow {
    Workflow { venture: "dfg".parse().unwrap(), ..of.clone() }
}

fn named(of: Checkpoint, name: &str) -> Checkpoint {
    Checkpoint { labels: Labels { name: Some(name.parse().unwrap()), tags: vec![] }, ..of }
}

/// Every field of checkpoint and frame is read back as written, in a row and in a blob.
pub fn reads_back_every_field(store: &TestStore) {
    let whole = Checkpoint {
        venture: "other.venture".parse().unwrap(),
        status: CheckpointStatus::Corrupt,
        labels: Labels {
            name: Some("before ☕ 接力棒 \"quoted\" 'single' \\ $1 %".parse().unwrap()),
            tags: vec!["naïve".parse().unwrap(), "👩‍💻".parse().unwrap()],
        },
        session_id: Some(session_id()),
        agent: Some("A.full_agent-1".parse().unwrap()),
        created_at: later(9),
        context_bytes: 1 << 40,
        context_hash: Sha256Hash::of(AWKWARD.as_bytes()),
        restores_size: true,
        stored_bytes: 256,
        ..checkpoint(&workflow(&"W_-9".repeat(32)), u32::MAX, 0)
    };
    let bytes: Vec<u8> = (0..=255).collect();
    let in_row = Frame {
        encoding: Encoding::Delta,
        key_id: Some("key-1".into()),
        hash: Sha256Hash::of(&bytes),
        size_bytes: 256,
        body: FrameBody::Row(bytes),
    };
    let in_blob = Frame {
        encoding: Encoding::Zstd,
        size_bytes: 2,
        body: FrameBody::Blob("ckpt_1.frame".into()),
        ..frame()
    };
    let of = workflow("a");
    for (written, held) in
        [(checkpoint(&of, 0, 0), frame()), (whole, in_row), (checkpoint(&of, 1, 0), in_blob)]
    {
        let (row, body) = (written.clone(), held.clone());
        write(store, move |tx| tx.insert_checkpoint(&row, &body));
        assert_eq!(find(store, written.id).as_ref(), Some(&written));
        let (venture, id) = (written.venture.clone(), written.workflow_id.clone());
        assert_eq!(
            read(store, move |tx| tx.chain(&venture, &id, written.place)),
            [StoredFrame {
                checkpoint_id: written.id,
                place: written.place,
                context_bytes: written.context_bytes,
                context_hash: written.context_hash,
                frame: held,
            }]
        );
    }
    assert_eq!(find(store, checkpoint_id()), None);
}

/// A place is unique in a workflow; other workflows and ventures have their own places.
pub fn places_are_unique_in_a_workflow(store: &TestStore) {
    let of = workflow("a");
    let first = checkpoint(&of, 2, 3);
    insert(store, &[&first, &checkpoint(&workflow("b"), 2, 3), &checkpoint(&namesake(&of), 2, 3)]);
    let second = checkpoint(&of, 2, 3);
    let id = second.id;
    let answer = try_write(store, move |tx| tx.insert_checkpoint(&second, &frame()));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    assert_eq!((find(store, first.id).as_ref(), find(store, id)), (Some(&first), None));
}

/// Ids are unique across workflows.
pub fn ids_are_unique(store: &TestStore) {
    let first = checkpoint(&workflow("a"), 0, 0);
    insert(store, &[&first]);
    let second = Checkpoint { id: first.id, ..checkpoint(&workflow("b"), 0, 0) };
    let answer = try_write(store, move |tx| tx.insert_checkpoint(&second, &frame()));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
}

/// A list contains the checkpoints that are not archived, sorted by place and not by id, and its pages are contiguous.
pub fn lists_come_latest_first(store: &TestStore) {
    let of = workflow("a");
    let mut all: Vec<Checkpoint> =
        [(2, 0), (1, 10), (1, 9), (1, 0), (0, 1), (0, 0)].map(|(s, p)| checkpoint(&of, s, p)).into();
    all[1].status = CheckpointStatus::Archived;
    all[2].status = CheckpointStatus::Corrupt;
    insert(store, &all.iter().collect::<Vec<_>>());
    insert(store, &[&checkpoint(&workflow("b"), 9, 0), &checkpoint(&namesake(&of), 9, 0)]);
    let expected: Vec<CheckpointId> = [0, 2, 3, 4, 5].map(|number| all[number].id).into();
    assert_eq!(list(store, &of, 0, 100), expected);
    assert_eq!(list(store, &of, 0, 2), expected[..2]);
    assert_eq!(list(store, &of, 2, 2), expected[2..4]);
    assert_eq!(list(store, &of, 4, 2), expected[4..]);
    assert_eq!(list(store, &of, 5, 2), []);
    assert_eq!(list(store, &workflow("unknown"), 0, 100), []);
}

/// The latest is the checkpoint with the greatest place that is neither archived nor corrupt.
pub fn latest_is_the_newest_active_checkpoint(store: &TestStore) {
    let of = workflow("a");
    let all = [(0, 2), (0, 10), (1, 0)].map(|(s, p)| checkpoint(&of, s, p));
    insert(store, &[&all[2], &all[0], &all[1], &checkpoint(&namesake(&of), 9, 0)]);
    assert_eq!(latest(store, &of), Some(all[2].id));
    set_status(store, all[2].id, CheckpointStatus::Corrupt);
    assert_eq!(latest(store, &of), Some(all[1].id));
    set_status(store, all[1].id, CheckpointStatus::Archived);
    assert_eq!(latest(store, &of), Some(all[0].id));
    set_status(store, all[0].id, CheckpointStatus::Corrupt);
    assert_eq!(latest(store, &of), None);
}

/// The last place is the numerically greatest, whatever the status of its checkpoint.
pub fn last_place_is_the_greatest(store: &TestStore) {
    let of = workflow("a");
    assert_eq!(last_place(store, &of), None);
    let all = [(1, 10), (1, 9), (0, 63)].map(|(s, p)| checkpoint(&of, s, p));
    insert(store, &[&all[0], &all[1], &all[2], &checkpoint(&namesake(&of), 9, 0)]);
    for status in [CheckpointStatus::Corrupt, CheckpointStatus::Archived] {
        assert_eq!(last_place(store, &of), Some(all[0].place));
        set_status(store, all[0].id, status);
    }
    assert_eq!(last_place(store, &of), Some(all[0].place));
    delete(store, &of, 1, &[10]);
    assert_eq!(last_place(store, &of), Some(all[1].place));
}

/// A chain contains the frames that lead to a place, starting with the whole context. Missing frames are omitted.
pub fn chain_is_in_order(store: &TestStore) {
    let of = workflow("a");
    let all: Vec<Checkpoint> = (0..8).rev().map(|position| checkpoint(&of, 3, position)).collect();
    insert(store, &all.iter().collect::<Vec<_>>());
    insert(store, &[&checkpoint(&of, 2, 4), &checkpoint(&namesake(&of), 3, 4)]);
    let ids = |positions: &[u32]| -> Vec<CheckpointId> {
        positions.iter().map(|position| all[7 - *position as usize].id).collect()
    };
    let found = |position: u32| -> Vec<CheckpointId> {
        chain(store, &of, 3, position).iter().map(|frame| frame.checkpoint_id).collect()
    };
    assert_eq!(found(0), ids(&[0]));
    assert_eq!(found(7), ids(&[0, 4, 6, 7]));
    assert_eq!(found(5), ids(&[0, 4, 5]));
    set_status(store, all[3].id, CheckpointStatus::Archived);
    assert_eq!(found(7), ids(&[0, 4, 6, 7]), "archived frames are still part of the chain");
    delete(store, &of, 3, &[4]);
    assert_eq!(found(7), ids(&[0, 6, 7]));
    assert_eq!(found(8), ids(&[0]));
    assert!(chain(store, &of, 7, 1).is_empty());
}

/// Droppable checkpoints are listed oldest first: never the latest, never a named one; corrupt ones are included.
pub fn oldest_unnamed_checkpoints_are_droppable(store: &TestStore) {
    let of = workflow("a");
    assert_eq!(droppable(store, &of, 10), []);
    let mut all: Vec<Checkpoint> =
        [(0, 9), (0, 10), (1, 0), (1, 1), (2, 0), (2, 1)].map(|(s, p)| checkpoint(&of, s, p)).into();
    all[1] = named(all[1].clone(), "keep");
    all[2].status = CheckpointStatus::Archived;
    all[3].status = CheckpointStatus::Corrupt;
    all.reverse();
    insert(store, &all.iter().collect::<Vec<_>>());
    all.reverse();
    insert(store, &[&checkpoint(&namesake(&of), 0, 0), &checkpoint(&namesake(&of), 0, 1)]);
    let ids = |numbers: &[usize]| -> Vec<CheckpointId> { numbers.iter().map(|n| all[*n].id).collect() };
    assert_eq!(droppable(store, &of, 10), ids(&[0, 3, 4]));
    assert_eq!(droppable(store, &of, 2), ids(&[0, 3]));
    // If the newest is corrupt, the one before it is the latest.
    set_status(store, all[5].id, CheckpointStatus::Corrupt);
    assert_eq!(droppable(store, &of, 10), ids(&[0, 3, 5]));
    // If all are corrupt, the newest is kept: checkpoints that cannot be loaded must not be kept forever.
    for damaged in [0, 1, 4] {
        set_status(store, all[damaged].id, CheckpointStatus::Corrupt);
    }
    assert_eq!(droppable(store, &of, 10), ids(&[0, 3, 4]));
}

/// Positions are deleted in one series of one workflow. A series lists its remaining positions in order.
pub fn positions_are_deleted(store: &TestStore) {
    let of = workflow("a");
    let all: Vec<Checkpoint> = [10, 9, 2, 0].map(|position| checkpoint(&of, 1, position)).into();
    insert(store, &all.iter().collect::<Vec<_>>());
    let others = [checkpoint(&of, 0, 9), checkpoint(&workflow("b"), 1, 9), checkpoint(&namesake(&of), 1, 9)];
    insert(store, &others.each_ref());
    set_status(store, all[1].id, CheckpointStatus::Archived);
    assert_eq!(series(store, &of, 1), [0, 2, 9, 10]);
    let (venture, id): (Venture, _) = (of.venture.clone(), of.id.clone());
    let member = read(store, move |tx| tx.series(&venture, &id, 1))[2].clone();
    let expected =
        SeriesMember { position: 9, status: CheckpointStatus::Archived, stored_bytes: 2, blob: None };
    assert_eq!(member, expected);
    delete(store, &of, 1, &[]);
    delete(store, &of, 1, &[9, 0, 63]);
    assert_eq!(series(store, &of, 1), [2, 10]);
    assert_eq!(series(store, &of, 2), [0; 0]);
    for other in others {
        assert_eq!(find(store, other.id).as_ref(), Some(&other));
    }
}

/// An archived checkpoint cannot become corrupt, because it would be listed again.
pub fn archived_checkpoints_stay_archived(store: &TestStore) {
    let of = workflow("a");
    let (dropped, neighbour) = (checkpoint(&of, 0, 0), checkpoint(&of, 0, 1));
    insert(store, &[&dropped, &neighbour]);
    for status in [CheckpointStatus::Archived, CheckpointStatus::Corrupt, CheckpointStatus::Active] {
        set_status(store, dropped.id, status);
        assert_eq!(find(store, dropped.id).unwrap().status, CheckpointStatus::Archived);
    }
    assert_eq!(list(store, &of, 0, 10), [neighbour.id]);
    set_status(store, checkpoint_id(), CheckpointStatus::Corrupt);
}

/// A blob that any checkpoint refers to, archived ones included, is not an orphan.
pub fn blobs_without_a_checkpoint_are_orphans(store: &TestStore) {
    let of = workflow("a");
    for (position, name) in [(0, "named"), (1, "dropped")] {
        let row = checkpoint(&of, 0, position);
        let held = Frame { body: FrameBody::Blob(name.into()), ..frame() };
        write(store, move |tx| tx.insert_checkpoint(&row, &held));
    }
    insert(store, &[&checkpoint(&of, 0, 2)]);
    let ids = list(store, &of, 0, 10);
    set_status(store, ids[1], CheckpointStatus::Archived);
    let orphans = |names: &[&str]| -> Vec<String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        read(store, move |tx| tx.orphans_among(&names))
    };
    assert_eq!(orphans(&["dropped", "other", "named", "Named"]), ["other", "Named"]);
    assert_eq!(orphans(&[]), [""; 0]);
    delete(store, &of, 0, &[1]);
    assert_eq!(orphans(&["dropped", "named"]), ["dropped"]);
}
