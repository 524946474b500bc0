//! Summaries and prompts: who may make a summary and when, what is kept of it, and what it is made from.

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::{ObservationId, SessionId, Timestamp};
use baton_store::{NewQueueItem, NewSummary, QueueClaim, Store, StoredSummary, SummaryClaim};

use super::fixture::{AWKWARD, NOW, later, observation_id, queue_item, session_id};
use super::store::{TestStore, read, write};

fn ask(store: &Store, session: SessionId, run_at: Timestamp) {
    write(store, move |tx| tx.request_summary(session, NOW, run_at));
}

/// Claims for a minute.
fn claim(store: &Store, now: Timestamp, limit: u32) -> Vec<SummaryClaim> {
    let lease_until = now.plus(std::time::Duration::from_secs(60));
    write(store, move |tx| tx.claim_summaries(now, lease_until, limit))
}

fn sessions(claims: &[SummaryClaim]) -> Vec<SessionId> {
    claims.iter().map(|claim| claim.session_id).collect()
}

/// Keeps a summary on top of whatever there is.
fn keep(store: &Store, session: SessionId, summary: &StoredSummary, fence: Option<i64>) -> bool {
    let replaces = find(store, session).map(|before| before.made_at);
    keep_over(store, session, replaces, summary, &[], fence)
}

fn keep_over(
    store: &Store,
    session: SessionId,
    replaces: Option<Timestamp>,
    stored: &StoredSummary,
    covers: &[ObservationId],
    fence: Option<i64>,
) -> bool {
    let summary = NewSummary { stored: stored.clone(), replaces, covers: covers.to_vec() };
    write(store, move |tx| tx.keep_summary(session, &summary, fence))
}

fn postpone(store: &Store, claim: &SummaryClaim, run_at: Option<Timestamp>) -> bool {
    let claim = claim.clone();
    write(store, move |tx| tx.postpone_summary(&claim, run_at, AWKWARD))
}

fn find(store: &Store, session: SessionId) -> Option<StoredSummary> {
    read(store, move |tx| tx.summary(session))
}

fn wakes_at(store: &Store) -> Option<Timestamp> {
    read(store, |tx| tx.summaries_wake_at())
}

fn plain(text: &str) -> StoredSummary {
    StoredSummary {
        made_at: NOW,
        summary: SessionSummary { summary: text.into(), ..SessionSummary::default() },
        observations: 0,
        provenance: Provenance {
            compressor: "offline".into(),
            prompt_version: "offline-v1".into(),
            ..Provenance::default()
        },
    }
}

fn full() -> StoredSummary {
    StoredSummary {
        made_at: later(3),
        summary: SessionSummary {
            summary: AWKWARD.into(),
            key_files: vec![AWKWARD.into(), String::new()],
            key_decisions: vec!["one".into(), AWKWARD.into()],
        },
        observations: 1 << 40,
        provenance: Provenance {
            compressor: AWKWARD.into(),
            model: Some(AWKWARD.into()),
            prompt_version: AWKWARD.into(),
            tokens_in: 1 << 41,
            tokens_out: 1 << 42,
        },
    }
}

/// What goes in comes out, also over what was there before; what it cost adds up.
pub fn reads_back_every_field(store: &TestStore) {
    let (mine, other) = (session_id(), session_id());
    assert_eq!(find(store, mine), None);
    let expected = full();
    assert!(keep(store, mine, &expected, None));
    assert_eq!((find(store, mine), find(store, other)), (Some(expected), None));

    assert!(keep(store, mine, &plain("shorter"), None));
    let shorter = plain("shorter");
    let provenance = Provenance { tokens_in: 1 << 41, tokens_out: 1 << 42, ..shorter.provenance.clone() };
    assert_eq!(find(store, mine), Some(StoredSummary { provenance, ..shorter }));
}

/// A summary that was asked for and not made yet is none.
pub fn one_that_is_asked_for_is_not_there_yet(store: &TestStore) {
    let session = session_id();
    ask(store, session, NOW);
    assert_eq!(find(store, session), None);
    claim(store, NOW, 1);
    assert_eq!(find(store, session), None);
}

/// A summary is claimed when it is due, by one alone, until the lease runs out; then by another, who fences the first off.
pub fn a_claim_lasts_for_its_lease(store: &TestStore) {
    let session = session_id();
    assert_eq!(wakes_at(store), None);
    ask(store, session, later(5));
    assert_eq!(wakes_at(store), Some(later(5)));
    assert_eq!(claim(store, Timestamp::from_millis(later(5).as_millis() - 1), 10), []);
    let first = claim(store, later(5), 10).remove(0);
    assert_eq!((first.session_id, first.attempts), (session, 1));
    assert_eq!(wakes_at(store), Some(later(65)), "whoever claimed it may die");
    assert_eq!(claim(store, later(64), 10), [], "it is taken");
    let second = claim(store, later(65), 10).remove(0);
    assert_eq!((second.session_id, second.attempts), (session, 2));
    assert!(second.fence > first.fence, "{} is not above {}", second.fence, first.fence);
    assert!(!keep(store, session, &plain("late"), Some(first.fence)), "the old claim is void");
    assert!(!postpone(store, &first, None), "the old claim is void");
    assert_eq!((find(store, session), wakes_at(store)), (None, Some(later(125))));
    assert!(keep(store, session, &plain("made"), Some(second.fence)));
    assert_eq!((find(store, session), wakes_at(store)), (Some(plain("made")), None));
    assert_eq!(claim(store, later(10_000), 10), []);
}

/// Summaries come longest due first, as many as asked for.
pub fn the_longest_due_come_first(store: &TestStore) {
    let all: Vec<SessionId> = (0..5).map(|_| session_id()).collect();
    for (session, second) in all.iter().zip([3, 1, 4, 0, 2]) {
        ask(store, *session, later(second));
    }
    assert_eq!(claim(store, later(10), 0), []);
    assert_eq!(sessions(&claim(store, later(10), 1)), [all[3]]);
    let two = sessions(&claim(store, later(10), 2));
    assert!(two.len() == 2 && two.contains(&all[1]) && two.contains(&all[4]), "{two:?}");
    assert_eq!(claim(store, later(10), 10).len(), 2);
}

/// A claimed summary is put off to a moment, or until it is asked for again; only by who has it.
pub fn a_claimed_one_is_put_off(store: &TestStore) {
    let session = session_id();
    ask(store, session, NOW);
    let first = claim(store, NOW, 1).remove(0);
    assert!(postpone(store, &first, Some(later(7))));
    assert!(!postpone(store, &first, Some(later(8))), "it was put off already");
    assert_eq!((wakes_at(store), claim(store, later(6), 1)), (Some(later(7)), vec![]));
    let second = claim(store, later(7), 1).remove(0);
    assert_eq!(second.attempts, 2);
    assert!(postpone(store, &second, None));
    assert_eq!((wakes_at(store), claim(store, later(10_000), 1)), (None, vec![]));
    ask(store, session, later(9));
    assert_eq!(claim(store, later(9), 1).remove(0).attempts, 1, "asked for anew");
}

/// One that is asked for again while it is made stays due, whatever comes of the first.
pub fn one_that_is_asked_for_again_meanwhile_stays_due(store: &TestStore) {
    let [kept, put_off, dropped] = [session_id(), session_id(), session_id()];
    for session in [kept, put_off, dropped] {
        ask(store, session, NOW);
    }
    let claims = claim(store, NOW, 10);
    let of = |session| claims.iter().find(|claim| claim.session_id == session).unwrap();
    for session in [kept, put_off, dropped] {
        ask(store, session, later(3));
    }
    assert!(keep(store, kept, &plain("made"), Some(of(kept).fence)));
    assert!(postpone(store, of(put_off), Some(later(50))));
    assert!(postpone(store, of(dropped), None));
    assert_eq!(find(store, kept), Some(plain("made")));
    assert_eq!(wakes_at(store), Some(later(3)));
    let mut due = sessions(&claim(store, later(3), 10));
    due.sort_unstable();
    assert_eq!(due, [kept, put_off, dropped]);
}

/// Whoever needs no claim keeps a summary at once: one that waited is no longer due.
pub fn one_that_is_made_at_once_is_no_longer_due(store: &TestStore) {
    let [never, waiting, claimed] = [session_id(), session_id(), session_id()];
    ask(store, claimed, NOW);
    let held = claim(store, NOW, 1).remove(0);
    ask(store, waiting, later(1));
    for session in [never, waiting, claimed] {
        assert!(keep(store, session, &plain("at once"), None));
        assert_eq!(find(store, session), Some(plain("at once")));
    }
    assert_eq!((wakes_at(store), claim(store, later(10_000), 10)), (None, vec![]));
    assert!(!postpone(store, &held, Some(later(1))), "there is nothing left to put off");
}

/// A summary that goes on from another than the latest one is not kept, and covers nothing.
pub fn one_that_was_overtaken_is_not_kept(store: &TestStore) {
    let session = session_id();
    ask(store, session, NOW);
    let held = claim(store, NOW, 1).remove(0);
    let first = StoredSummary { made_at: later(1), ..plain("first") };
    assert!(keep_over(store, session, None, &first, &[], None));
    let overtaken = StoredSummary { made_at: later(2), ..plain("overtaken") };
    for fence in [None, Some(held.fence)] {
        assert!(!keep_over(store, session, None, &overtaken, &[observation_id()], fence));
        assert!(!keep_over(store, session, Some(NOW), &overtaken, &[], fence));
    }
    assert_eq!(find(store, session), Some(first));
    assert!(keep_over(store, session, Some(later(1)), &overtaken, &[], None));
    assert_eq!(find(store, session), Some(overtaken));
}

/// When items that were given up are to be tried again, the summaries that were made without them are due again.
pub fn those_made_without_what_is_retried_are_renewed(store: &TestStore) {
    let [made, other, never] = [session_id(), session_id(), session_id()];
    let give_up = |session| {
        let item = NewQueueItem { session_id: session, ..queue_item(NOW) };
        write(store, move |tx| {
            let id = tx.enqueue(&item)?.unwrap();
            let claim = QueueClaim { now: NOW, lease_until: later(60), limit: 1 };
            let claimed = tx.claim_queue(claim)?.remove(0);
            assert_eq!(claimed.id, id);
            assert!(tx.fail_queue_item(id, claimed.fence, "broken", NOW)?);
            Ok(id)
        })
    };
    let [first, second, _] = [made, other, never].map(give_up);
    for session in [made, other] {
        assert!(keep(store, session, &plain("without it"), None));
    }
    let renew = |item, now| write(store, move |tx| tx.renew_summaries(item, now));
    renew(Some(first), later(1));
    assert_eq!(sessions(&claim(store, later(1), 10)), [made]);
    renew(Some(second + 1_000), later(1));
    assert_eq!(claim(store, later(1), 10), []);
    renew(None, later(2));
    let mut due = sessions(&claim(store, later(2), 10));
    due.sort_unstable();
    let mut expected = [made, other];
    expected.sort_unstable();
    assert_eq!(due, expected, "a session without a summary has none to be renewed");
}

/// Prompts come newest first, as many as asked for, each session its own.
pub fn prompts_come_newest_first(store: &TestStore) {
    let (mine, other) = (session_id(), session_id());
    for text in ["first", AWKWARD, "", "first"] {
        write(store, move |tx| tx.insert_prompt(mine, text, NOW));
        write(store, move |tx| tx.insert_prompt(other, "somebody else's", NOW));
    }
    let prompts = |session, limit| read(store, move |tx| tx.prompts(session, limit));
    assert_eq!(prompts(mine, 10), ["first", "", AWKWARD, "first"]);
    assert_eq!(prompts(mine, 2), ["first", ""]);
    assert_eq!(prompts(session_id(), 10), Vec::<String>::new());
}
