//! Marks: fields, replacement, filters, and what they hide.

use baton_core::recall::{Mark, MarkKind};
use baton_core::{ActorKeyId, Handoff, HandoffId, Ulid};
use baton_store::{HandoffFilter, MarkFilter, Page};

use super::fixture::{AWKWARD, NOW, full_session, handoff, later};
use super::store::{TestStore, read, write};

fn mark(item: &str) -> Mark {
    Mark {
        item: item.into(),
        venture: "v".parse().unwrap(),
        repo: None,
        kind: MarkKind::Rejected,
        replaced_by: None,
        created_at: NOW,
        actor_key_id: ActorKeyId::of("fixture"),
    }
}

fn put(store: &TestStore, marks: &[Mark]) {
    let marks = marks.to_vec();
    write(store, move |tx| marks.iter().try_for_each(|mark| tx.put_mark(mark)));
}

/// Every field is read back as written, an item has one mark, and a deleted mark is gone.
pub fn marks_are_stored_replaced_and_deleted(store: &TestStore) {
    let bare = mark("turn_1");
    let full = Mark {
        item: AWKWARD.into(),
        repo: Some("o/r".parse().unwrap()),
        kind: MarkKind::Superseded,
        replaced_by: Some(AWKWARD.into()),
        created_at: later(3),
        ..mark("")
    };
    put(store, &[bare.clone(), full.clone()]);
    let mut found = read(store, |tx| tx.marks_of(&["turn_1", AWKWARD, "turn_2"]));
    found.sort_by_key(|mark| mark.created_at);
    assert_eq!(found, [bare.clone(), full.clone()]);
    assert_eq!(read(store, |tx| tx.marks_replaced_by(AWKWARD)), std::slice::from_ref(&full));
    assert_eq!(read(store, |tx| tx.marks_replaced_by("turn_1")), []);
    let replaced = Mark { kind: MarkKind::Pinned, replaced_by: None, created_at: later(9), ..full };
    put(store, std::slice::from_ref(&replaced));
    assert_eq!(read(store, |tx| tx.marks_of(&[AWKWARD])), [replaced]);
    for expected in [true, false] {
        assert_eq!(write(store, move |tx| tx.delete_mark("turn_1")), expected);
    }
    assert!(read(store, |tx| tx.marks_of(&["turn_1"])).is_empty());
}

/// Each condition filters, and lists are newest first.
pub fn marks_are_filtered(store: &TestStore) {
    put(
        store,
        &[
            mark("1"),
            Mark { venture: "w".parse().unwrap(), created_at: later(1), ..mark("2") },
            Mark { repo: Some("o/r".parse().unwrap()), created_at: later(2), ..mark("3") },
            Mark { kind: MarkKind::Pinned, created_at: later(3), ..mark("4") },
        ],
    );
    let list = |filter: MarkFilter, limit: u32| -> Vec<String> {
        read(store, move |tx| tx.marks(&filter, limit)).into_iter().map(|mark| mark.item).collect()
    };
    let all = MarkFilter::default();
    assert_eq!(list(all.clone(), 10), ["4", "3", "2", "1"]);
    assert_eq!(list(all.clone(), 2), ["4", "3"]);
    assert_eq!(list(MarkFilter { ventures: Some(vec!["w".parse().unwrap()]), ..all.clone() }, 10), ["2"]);
    assert!(list(MarkFilter { ventures: Some(Vec::new()), ..all.clone() }, 10).is_empty());
    assert_eq!(list(MarkFilter { repo: Some("o/r".parse().unwrap()), ..all.clone() }, 10), ["3"]);
    assert_eq!(list(MarkFilter { kind: Some(MarkKind::Pinned), ..all }, 10), ["4"]);
}

/// Lists omit rejected and superseded items and contain pinned ones.
pub fn lists_omit_hidden_items(store: &TestStore) {
    let ids: Vec<HandoffId> = (1..=3).map(|number| HandoffId::new(Ulid(number))).collect();
    let session = full_session();
    let with_id = |id: &HandoffId| Handoff { id: *id, ends_session: false, ..handoff(&session) };
    let handoffs: Vec<Handoff> = ids.iter().map(with_id).collect();
    let venture = handoffs[0].venture.clone();
    write(store, move |tx| handoffs.iter().try_for_each(|handoff| tx.insert_handoff(handoff)));
    let kinds = [MarkKind::Rejected, MarkKind::Superseded, MarkKind::Pinned];
    let marks: Vec<Mark> =
        ids.iter().zip(kinds).map(|(id, kind)| Mark { kind, ..mark(&id.to_string()) }).collect();
    put(store, &marks);
    let found = read(store, move |tx| tx.handoffs(&HandoffFilter::of(venture.clone()), Page::first(10)));
    assert_eq!(found.iter().map(|handoff| handoff.id).collect::<Vec<_>>(), ids[2..]);
}
