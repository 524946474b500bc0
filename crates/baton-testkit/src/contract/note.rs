//! Notes: fields, corrections, deletion, filters.

use baton_core::{ActorKeyId, Note, NoteId, NoteKind, Ulid};
use baton_store::{NoteFilter, Page};

use super::fixture::{AWKWARD, NOW, later, session_id};
use super::store::{TestStore, read, write};

pub(super) fn note(number: u128) -> Note {
    Note {
        id: NoteId::new(Ulid::from_parts(NOW.as_millis() as u64, number)),
        session_id: None,
        venture: "v".parse().unwrap(),
        repo: "o/r".parse().unwrap(),
        agent: None,
        kind: NoteKind::Fact,
        text: "text".into(),
        file: None,
        created_at: NOW,
        updated_at: None,
        actor_key_id: ActorKeyId::of("fixture"),
    }
}

fn full_note(number: u128) -> Note {
    Note {
        session_id: Some(session_id()),
        agent: Some("agent-1".parse().unwrap()),
        kind: NoteKind::Rejected,
        text: AWKWARD.into(),
        file: Some(AWKWARD.into()),
        updated_at: Some(later(3)),
        ..note(number)
    }
}

fn insert(store: &TestStore, notes: &[&Note]) {
    let notes: Vec<Note> = notes.iter().map(|&note| note.clone()).collect();
    write(store, move |tx| notes.iter().try_for_each(|note| tx.insert_note(note)));
}

fn find(store: &TestStore, id: NoteId) -> Option<Note> {
    read(store, move |tx| tx.note(id))
}

/// Every field is read back as written, a correction changes its fields only, and a deleted note is gone.
pub fn notes_are_stored_corrected_and_deleted(store: &TestStore) {
    let (bare, full) = (note(1), full_note(2));
    insert(store, &[&bare, &full]);
    assert_eq!((find(store, bare.id), find(store, full.id)), (Some(bare.clone()), Some(full.clone())));
    assert_eq!(read(store, |tx| tx.newest_note_id()), Some(full.id));
    let corrected = Note {
        kind: NoteKind::Decision,
        text: "new".into(),
        file: None,
        updated_at: Some(later(9)),
        ..full.clone()
    };
    let sent = Note { agent: None, ..corrected.clone() };
    write(store, move |tx| tx.update_note(&sent));
    assert_eq!((find(store, full.id), find(store, bare.id)), (Some(corrected), Some(bare.clone())));
    for expected in [true, false] {
        assert_eq!(write(store, move |tx| tx.delete_note(bare.id)), expected);
    }
    assert_eq!(find(store, bare.id), None);
}

/// Each condition filters, and lists are newest first in pages.
pub fn notes_are_filtered_and_paged(store: &TestStore) {
    let session = session_id();
    let notes = [
        note(1),
        Note { session_id: Some(session), ..note(2) },
        Note { repo: "o/other".parse().unwrap(), ..note(3) },
        Note { venture: "w".parse().unwrap(), ..note(4) },
        Note { kind: NoteKind::Todo, ..note(5) },
    ];
    insert(store, &notes.iter().collect::<Vec<_>>());
    let list = |filter: NoteFilter| -> Vec<u128> {
        let found = read(store, move |tx| tx.notes(&filter, Page::first(10)));
        found.iter().map(|note| note.id.ulid().random()).collect()
    };
    let all = NoteFilter::default();
    assert_eq!(list(all.clone()), [5, 4, 3, 2, 1]);
    assert_eq!(list(NoteFilter { session_id: Some(session), ..all.clone() }), [2]);
    assert_eq!(list(NoteFilter { repo: Some("o/other".parse().unwrap()), ..all.clone() }), [3]);
    assert_eq!(list(NoteFilter { ventures: Some(vec!["w".parse().unwrap()]), ..all.clone() }), [4]);
    assert!(list(NoteFilter { ventures: Some(Vec::new()), ..all.clone() }).is_empty());
    assert_eq!(list(NoteFilter { kind: Some(NoteKind::Todo), ..all.clone() }), [5]);
    let page = read(store, move |tx| tx.notes(&all, Page::first(2)));
    assert_eq!(page.iter().map(|note| note.id.ulid().random()).collect::<Vec<_>>(), [5, 4]);
}
