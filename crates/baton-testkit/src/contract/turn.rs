//! Chat turns: how they start and end.

use baton_core::SessionId;
use baton_core::observation::{Turn, TurnId, TurnStatus};
use baton_store::{Store, TurnEnd};

use super::fixture::{AWKWARD, NOW, later, session_id};
use super::store::{TestStore, read, write};

fn start(store: &Store, session: SessionId, prompt: &'static str, seconds: u64) {
    write(store, move |tx| tx.start_turn(session, prompt, later(seconds)));
}

fn end(store: &Store, session: SessionId, status: TurnStatus, closing: Option<&str>, seconds: u64) {
    let failure = (status == TurnStatus::Failed).then(|| AWKWARD.to_owned());
    let end = TurnEnd {
        status,
        closing: closing.map(str::to_owned),
        failure,
        transcript_path: None,
        at: later(seconds),
    };
    write(store, move |tx| tx.end_turn(session, &end));
}

fn turns(store: &Store, session: SessionId) -> Vec<Turn> {
    read(store, move |tx| tx.turns(session, None, 10))
}

/// A turn reads back as it was written. Turns are listed newest first, by session and in pages.
pub fn turns_are_started_ended_and_listed(store: &TestStore) {
    let (mine, other) = (session_id(), session_id());
    start(store, mine, AWKWARD, 0);
    start(store, other, "other", 1);
    end(store, mine, TurnStatus::Done, Some(AWKWARD), 2);
    start(store, mine, "second", 3);
    end(store, mine, TurnStatus::Failed, None, 4);
    start(store, mine, "third", 5);
    let found = turns(store, mine);
    let [third, second, first] = found.as_slice() else { panic!("{found:?}") };
    let expected = Turn {
        id: first.id,
        session_id: mine,
        prompt: AWKWARD.into(),
        closing: Some(AWKWARD.into()),
        compact_summary: None,
        status: TurnStatus::Done,
        failure: None,
        started_at: NOW,
        ended_at: Some(later(2)),
    };
    assert_eq!(*first, expected);
    assert_eq!((second.status, second.failure.as_deref()), (TurnStatus::Failed, Some(AWKWARD)));
    assert_eq!((third.status, third.closing.as_deref(), third.ended_at), (TurnStatus::Open, None, None));
    let (id, before) = (second.id, third.id);
    assert_eq!(read(store, move |tx| tx.turn(id)), Some(second.clone()));
    assert_eq!(read(store, move |tx| tx.turn(TurnId::new(i64::MAX))), None);
    assert_eq!(read(store, move |tx| tx.turns(mine, Some(before), 1)), std::slice::from_ref(second));
    let (after_first, after_third) = (first.clone(), third.clone());
    assert_eq!(read(store, move |tx| tx.next_turn(&after_first)), Some(second.clone()));
    assert_eq!(read(store, move |tx| tx.next_turn(&after_third)), None);
}

/// The turns of several sessions are found with one call.
pub fn turns_of_sessions_are_found_together(store: &TestStore) {
    let sessions: Vec<SessionId> = (0..70).map(|_| session_id()).collect();
    for (number, session) in sessions.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
        let number = u64::try_from(number).unwrap();
        start(store, *session, "first", number);
        start(store, *session, "second", number + 1);
    }
    let (asked, again) = (sessions.clone(), sessions.clone());
    let starts = read(store, move |tx| tx.turn_starts_of(&asked));
    let with_turns = read(store, move |tx| tx.sessions_with_turns(&again));
    for (number, session) in sessions.iter().enumerate() {
        let session = *session;
        let expected = read(store, move |tx| tx.turn_starts(session));
        assert_eq!(expected.len(), if number % 2 == 0 { 2 } else { 0 });
        assert_eq!(starts.get(&session).cloned().unwrap_or_default(), expected);
        assert_eq!(with_turns.contains(&session), number % 2 == 0);
    }
    assert!(read(store, |tx| tx.turn_starts_of(&[])).is_empty());
}

/// Agents report the end of a turn more than once. A later closing message replaces the earlier one; a report without one
/// keeps it. An end without a start is a turn without a request.
pub fn repeated_end_keeps_the_closing_message(store: &TestStore) {
    let session = session_id();
    end(store, session, TurnStatus::Done, Some("one"), 1);
    end(store, session, TurnStatus::Done, None, 2);
    let found = turns(store, session);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].prompt.as_str(), found[0].closing.as_deref()), ("", Some("one")));
    assert_eq!(found[0].ended_at, Some(later(2)));
    end(store, session, TurnStatus::Done, Some("two"), 3);
    assert_eq!(turns(store, session)[0].closing.as_deref(), Some("two"));
}

/// A turn that is open when the next one starts, or when the chat ends, is unfinished.
pub fn open_turn_becomes_unfinished(store: &TestStore) {
    let session = session_id();
    start(store, session, "first", 0);
    start(store, session, "second", 1);
    write(store, move |tx| tx.abandon_turn(session, later(2)));
    let found: Vec<_> = turns(store, session).into_iter().map(|turn| (turn.status, turn.ended_at)).collect();
    assert_eq!(found, [(TurnStatus::Unfinished, Some(later(2))), (TurnStatus::Unfinished, Some(later(1)))]);
    write(store, move |tx| tx.abandon_turn(session, later(9)));
    assert_eq!(turns(store, session)[0].ended_at, Some(later(2)), "a turn that has ended stays as it is");
}

/// A compaction summary is stored with the latest turn, which stays open; without a turn, one is added.
pub fn compact_summaries_belong_to_the_latest_turn(store: &TestStore) {
    let (with_turn, without) = (session_id(), session_id());
    start(store, with_turn, "first", 1);
    start(store, with_turn, "second", 2);
    for session in [with_turn, without] {
        write(store, move |tx| tx.add_compact_summary(session, "so far", later(3)));
        let latest = turns(store, session).remove(0);
        assert_eq!(latest.compact_summary.as_deref(), Some("so far"));
        assert_eq!(latest.status, TurnStatus::Open);
    }
    assert_eq!((turns(store, with_turn).len(), turns(store, without).len()), (2, 1));
}

/// The turn at a time is the latest one that started by then.
pub fn turn_is_found_by_time(store: &TestStore) {
    let session = session_id();
    start(store, session, "first", 10);
    start(store, session, "second", 20);
    let at = |seconds| {
        let found = read(store, move |tx| tx.turn_at(session, later(seconds)));
        found.map(|turn| turn.prompt)
    };
    assert_eq!(at(9), None);
    assert_eq!((at(10).as_deref(), at(19).as_deref()), (Some("first"), Some("first")));
    assert_eq!((at(20).as_deref(), at(99).as_deref()), (Some("second"), Some("second")));
}

/// A turn that ended without a closing message is completed from its transcript once.
pub fn turns_are_completed_from_transcripts(store: &TestStore) {
    let session = session_id();
    let stop = |closing: Option<&str>| {
        let end = TurnEnd {
            status: TurnStatus::Done,
            closing: closing.map(str::to_owned),
            failure: None,
            transcript_path: Some("/t.jsonl".into()),
            at: later(9),
        };
        write(store, move |tx| tx.end_turn(session, &end));
    };
    let pending = || read(store, move |tx| tx.turns_to_complete(session, 10));
    start(store, session, "closed", 1);
    stop(Some("words"));
    assert!(pending().is_empty());
    start(store, session, "open", 2);
    stop(None);
    let found = pending();
    assert_eq!(
        found.iter().map(|(turn, path)| (turn.prompt.as_str(), path.as_str())).collect::<Vec<_>>(),
        [("open", "/t.jsonl")]
    );
    let id = found[0].0.id;
    let enqueued =
        || read(store, |tx| tx.pending_items(100)).iter().filter(|item| item.item == id.to_string()).count();
    let before = enqueued();
    write(store, move |tx| tx.complete_turn(id, Some("read")));
    assert_eq!(enqueued(), before + 1, "the closing message must become searchable");
    assert!(pending().is_empty());
    assert_eq!(turns(store, session)[0].closing.as_deref(), Some("read"));
}
