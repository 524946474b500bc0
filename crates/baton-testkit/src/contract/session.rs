//! Single sessions: fields, and one active session per tuple. Lists are in `session_list`.

use baton_core::{EndReason, Repo, Session, SessionId, SessionStatus, SessionTuple};
use baton_store::StoreError;
use serde_json::{Map, json};

use super::fixture::{NOW, earlier, full_session, handoff, later, session, track, tuple};
use super::store::{TestStore, read, try_write, write};

fn insert(store: &TestStore, session: &Session) {
    let session = session.clone();
    write(store, move |tx| tx.insert_session(&session));
}

fn find(store: &TestStore, id: SessionId) -> Option<Session> {
    read(store, move |tx| tx.session(id))
}

fn lock_active(store: &TestStore, tuple: &SessionTuple) -> Vec<SessionId> {
    let tuple = tuple.clone();
    let found = write(store, move |tx| tx.lock_active_sessions(&tuple));
    found.into_iter().map(|session| session.id).collect()
}

fn ended(mut session: Session) -> Session {
    session.end(NOW, EndReason::Manual).unwrap();
    session
}

/// Every field is read back as written, set or not.
pub fn reads_back_every_field(store: &TestStore) {
    let tracked = SessionTuple { track: Some(track(0)), ..tuple("agent") };
    let mut with_empty_meta = session(tuple("other-agent"));
    with_empty_meta.meta = Some(Map::new());
    for written in [session(tuple("agent")), session(tracked), full_session(), with_empty_meta] {
        insert(store, &written);
        assert_eq!(find(store, written.id), Some(written.clone()));
        let id = written.id;
        assert_eq!(write(store, move |tx| tx.lock_session(id)), Some(written.clone()));
        let branch = written.facts.branch.map(|branch| (id, branch));
        let branches = read(store, move |tx| tx.branches_of_sessions(&[id]));
        assert_eq!(branches, branch.into_iter().collect());
    }
}

/// The earliest session of a chat is found, whatever its status, agent and repository, but not in another venture.
pub fn finds_the_first_session_of_a_chat(store: &TestStore) {
    let chat =
        |agent: &str| SessionTuple { client_session_id: Some("chat-1".parse().unwrap()), ..tuple(agent) };
    let other = SessionTuple { venture: "elsewhere".parse().unwrap(), ..chat("c") };
    let (first, second, third) = (ended(session(chat("a"))), session(chat("b")), session(other));
    for written in [&first, &second, &third, &session(tuple("d"))] {
        insert(store, written);
    }
    let mut ids = [first.id, second.id];
    ids.sort();
    let find = |except: SessionId| {
        let (venture, id) = (first.tuple.venture.clone(), "chat-1".parse().unwrap());
        read(store, move |tx| tx.first_session_of_chat(&venture, &id, except)).map(|session| session.id)
    };
    assert_eq!(find(third.id), Some(ids[0]));
    assert_eq!(find(ids[0]), Some(ids[1]));
}

/// Every status and every end reason is read back.
pub fn reads_back_every_status(store: &TestStore) {
    let statuses = [SessionStatus::Ended, SessionStatus::Abandoned];
    let reasons = [EndReason::Manual, EndReason::Stale, EndReason::Superseded, EndReason::Error];
    for status in statuses {
        for reason in reasons {
            let written = Session { status, end_reason: Some(reason), ..session(tuple("agent")) };
            insert(store, &written);
            assert_eq!(find(store, written.id), Some(written));
        }
    }
}

/// A stored time outside the years 1970 to 9999 is reported and not replaced by the nearest time.
pub fn times_out_of_range_are_corruption(store: &TestStore) {
    let written = session(tuple("agent"));
    insert(store, &written);
    for millis in [-1, i64::MAX] {
        let sql = format!("UPDATE sessions SET last_heartbeat_at = {millis}");
        store.place().execute(&sql, &sql);
        let answer = try_write(store, move |tx| tx.session(written.id));
        assert!(
            matches!(&answer, Err(StoreError::Corrupt { table, .. }) if table == "sessions"),
            "{answer:?}"
        );
    }
}

/// The latest session of a tuple is found, whatever its status.
pub fn finds_the_latest_session_of_a_tuple(store: &TestStore) {
    let latest =
        |tuple: SessionTuple| read(store, move |tx| tx.latest_session(&tuple)).map(|session| session.id);
    assert_eq!(latest(tuple("agent")), None);
    let old = ended(Session { created_at: earlier(60), ..session(tuple("agent")) });
    let new = ended(session(tuple("agent")));
    let tracked = session(SessionTuple { track: Some(track(0)), ..tuple("agent") });
    for session in [&new, &old, &tracked, &session(tuple("other-agent"))] {
        insert(store, session);
    }
    assert_eq!(latest(tuple("agent")), Some(new.id));
    assert_eq!(latest(tracked.tuple.clone()), Some(tracked.id));
    let active = Session { created_at: later(60), ..session(tuple("agent")) };
    insert(store, &active);
    assert_eq!(latest(tuple("agent")), Some(active.id));
}

pub fn finds_nothing_under_an_unknown_id(store: &TestStore) {
    let (known, unknown) = (session(tuple("agent")), session(tuple("agent")).id);
    insert(store, &known);
    assert_eq!(find(store, unknown), None);
    assert_eq!(write(store, move |tx| tx.lock_session(unknown)), None);
}

/// An update changes only the mutable fields: id, tuple and creation stay.
pub fn update_writes_only_what_may_change(store: &TestStore) {
    let (before, neighbour) = (session(tuple("agent")), session(tuple("neighbour")));
    insert(store, &before);
    insert(store, &neighbour);
    let changed = Session { id: before.id, ..full_session() };

    let update = changed.clone();
    write(store, move |tx| tx.update_session(&update));

    let expected = Session {
        facts: changed.facts,
        status: changed.status,
        last_heartbeat_at: changed.last_heartbeat_at,
        ended_at: changed.ended_at,
        end_reason: changed.end_reason,
        meta: changed.meta,
        ..before.clone()
    };
    assert_eq!(find(store, before.id), Some(expected));
    assert_eq!(find(store, neighbour.id), Some(neighbour), "no other session may change");
}

/// An update also clears fields: absent values are stored as absent.
pub fn update_clears_absent_fields(store: &TestStore) {
    let before = full_session();
    insert(store, &before);
    let cleared = Session {
        facts: session(tuple("unused")).facts,
        ended_at: None,
        end_reason: None,
        meta: None,
        ..before.clone()
    };
    let update = cleared.clone();
    write(store, move |tx| tx.update_session(&update));
    assert_eq!(find(store, before.id), Some(cleared));
}

/// A heartbeat moves forward and changes nothing else; a late one has no effect.
pub fn heartbeats_only_move_forward(store: &TestStore) {
    let mut beaten = Session { meta: json!({ "kept": 1 }).as_object().cloned(), ..session(tuple("agent")) };
    let neighbour = session(tuple("neighbour"));
    insert(store, &beaten);
    insert(store, &neighbour);
    let id = beaten.id;
    for (at, expected) in [(later(60), later(60)), (earlier(60), later(60)), (later(61), later(61))] {
        write(store, move |tx| tx.beat_session(id, at));
        beaten.last_heartbeat_at = expected;
        assert_eq!(find(store, id), Some(beaten.clone()), "after a heartbeat at {at}");
    }
    assert_eq!(find(store, neighbour.id), Some(neighbour), "no other heartbeat may move");
}

/// Context is given once within a period.
pub fn context_is_given_once(store: &TestStore) {
    let (mine, other) = (session(tuple("agent")), session(tuple("neighbour")));
    insert(store, &mine);
    insert(store, &other);
    let give = |id, at, since| write(store, move |tx| tx.claim_context_start(id, at, since));
    assert!(give(mine.id, NOW, earlier(5)));
    assert!(!give(mine.id, later(1), earlier(4)), "it was given a second ago");
    assert!(give(other.id, later(1), earlier(4)), "another session");
    assert!(give(mine.id, later(5), NOW), "five seconds later");
    assert_eq!(find(store, mine.id), Some(mine), "nothing else changes");
}

/// A tuple matches only its own active session: an absent track is not 0, and an absent chat is not another chat.
pub fn tuples_are_matched_exactly(store: &TestStore) {
    let base = tuple("agent");
    let tuples = [
        base.clone(),
        SessionTuple { agent: "Agent".parse().unwrap(), ..base.clone() },
        SessionTuple { venture: "vc2".parse().unwrap(), ..base.clone() },
        SessionTuple { repo: "owner/Repo".parse().unwrap(), ..base.clone() },
        SessionTuple { track: Some(track(0)), ..base.clone() },
        SessionTuple { track: Some(track(1)), ..base.clone() },
        SessionTuple { client_session_id: Some("0".parse().unwrap()), ..base.clone() },
        SessionTuple { client_session_id: Some("chat".parse().unwrap()), ..base.clone() },
        SessionTuple { client_session_id: Some("CHAT".parse().unwrap()), ..base.clone() },
        SessionTuple { track: Some(track(0)), client_session_id: Some("0".parse().unwrap()), ..base },
    ];
    for tuple in &tuples {
        assert_eq!(lock_active(store, tuple), [], "{tuple:?} does not exist yet");
        insert(store, &ended(session(tuple.clone())));
        assert_eq!(lock_active(store, tuple), [], "an ended session of {tuple:?} is not active");
        let active = session(tuple.clone());
        insert(store, &active);
        assert_eq!(lock_active(store, tuple), [active.id], "{tuple:?}");
    }
}

/// A second active session of a tuple is rejected, whatever its other fields. There may be many ended ones.
pub fn tuple_has_one_active_session(store: &TestStore) {
    let tracked = SessionTuple { track: Some(track(0)), ..tuple("agent") };
    let chat = SessionTuple { client_session_id: Some("chat".parse().unwrap()), ..tuple("agent") };
    for tuple in [tuple("agent"), tracked, chat] {
        let first = session(tuple.clone());
        insert(store, &first);

        let second = session(tuple.clone());
        let (refused, id) = (second.clone(), second.id);
        let answer = try_write(store, move |tx| tx.insert_session(&refused));
        assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
        assert_eq!(find(store, id), None);
        assert_eq!(lock_active(store, &tuple), [first.id]);

        insert(store, &ended(session(tuple.clone())));
        insert(store, &ended(session(tuple.clone())));
        let over = ended(first);
        write(store, move |tx| tx.update_session(&over));
        insert(store, &second);
        assert_eq!(lock_active(store, &tuple), [id]);
    }
}

pub fn ids_are_unique(store: &TestStore) {
    let first = session(tuple("agent"));
    insert(store, &first);
    let second = Session { id: first.id, ..session(tuple("other-agent")) };
    let answer = try_write(store, move |tx| tx.insert_session(&second));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    assert_eq!(find(store, first.id), Some(first));
}

/// Correcting the repository changes it for the session and its handoffs, which are indexed again, and for their marks. The
/// chat finds it by the repository that its hooks report, also after a second correction.
pub fn corrected_repository_is_found_by_the_reported_one(store: &TestStore) {
    let chat = SessionTuple { client_session_id: Some("chat".parse().unwrap()), ..tuple("agent") };
    let (written, other) = (session(chat.clone()), session(tuple("agent")));
    insert(store, &written);
    insert(store, &other);
    let left = handoff(&written);
    let stored = left.clone();
    write(store, move |tx| tx.insert_handoff(&stored));
    let corrected = |tuple: SessionTuple| read(store, move |tx| tx.corrected_repo(&tuple));
    assert_eq!(corrected(chat.clone()), None);
    for repo in ["right/one", "right/two"] {
        let (id, new): (_, Repo) = (written.id, repo.parse().unwrap());
        let pending = || read(store, |tx| tx.pending_items(100));
        let entries = pending();
        write(store, move |tx| tx.delete_pending(&entries));
        write(store, move |tx| tx.correct_session_repo(id, &new));
        assert_eq!(
            pending().into_iter().map(|entry| entry.item).collect::<Vec<_>>(),
            [left.id.to_string()],
            "search filters by repository"
        );
        assert_eq!(corrected(chat.clone()), Some(repo.parse().unwrap()));
        assert_eq!(find(store, id).unwrap().tuple.repo.as_str(), repo);
        assert_eq!(read(store, move |tx| tx.handoff(left.id)).unwrap().repo.as_str(), repo);
    }
    assert_eq!(corrected(tuple("agent")), None, "another chat is not affected");
    assert_eq!(find(store, other.id), Some(other));
}
