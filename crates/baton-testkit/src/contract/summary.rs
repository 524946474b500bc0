//! Summaries: rules for claiming and storing summaries, and their inputs.

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::{ObservationId, SessionId, Timestamp};
use baton_store::{NewQueueItem, NewSummary, QueueClaim, Store, StoredSummary, SummaryClaim};

use super::fixture::{AWKWARD, NOW, later, observation_id, queue_item, session_id};
use super::store::{TestStore, read, write};

fn ask(store: &Store, session: SessionId, run_at: Timestamp) {
    write(store, move |tx| tx.request_summary(session, NOW, run_at));
}

/// Claims summaries for a minute.
fn claim(store: &Store, now: Timestamp, limit: u32) -> Vec<SummaryClaim> {
    let lease_until = now.plus(std::time::Duration::from_secs(60));
    write(store, move |tx| tx.claim_summaries(now, lease_until, limit))
}

fn sessions(claims: &[SummaryClaim]) -> Vec<SessionId> {
    claims.iter().map(|claim| claim.session_id).collect()
}

/// Stores a summary that continues the current one.
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
    let summary =
        NewSummary { stored: stored.clone(), replaces, covers: covers.to_vec(), is_rewritten: true };
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
    read(store, |tx| tx.next_summary_due_at())
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

/// Every field is read back as written, also when a summary is replaced; token counts are added up.
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
    ask(store, other, NOW);
    let texts = read(store, move |tx| tx.summary_texts(&[other, mine]));
    assert_eq!(texts, [(mine, "shorter".to_owned())].into());
}

/// A requested summary that was not created yet is not found.
pub fn requested_summary_does_not_exist_yet(store: &TestStore) {
    let session = session_id();
    ask(store, session, NOW);
    assert_eq!(find(store, session), None);
    claim(store, NOW, 1);
    assert_eq!(find(store, session), None);
}

/// A due summary is claimed by one worker until its lease expires. A later claim invalidates the first.
pub fn claims_last_for_their_lease(store: &TestStore) {
    let session = session_id();
    assert_eq!(wakes_at(store), None);
    ask(store, session, later(5));
    assert_eq!(wakes_at(store), Some(later(5)));
    assert_eq!(claim(store, Timestamp::from_millis(later(5).as_millis() - 1), 10), []);
    let first = claim(store, later(5), 10).remove(0);
    assert_eq!((first.session_id, first.attempts), (session, 1));
    assert_eq!(wakes_at(store), Some(later(65)), "the worker may die");
    assert_eq!(claim(store, later(64), 10), [], "the summary is claimed");
    let second = claim(store, later(65), 10).remove(0);
    assert_eq!((second.session_id, second.attempts), (session, 2));
    assert!(second.fence > first.fence, "{} is not above {}", second.fence, first.fence);
    assert!(!keep(store, session, &plain("late"), Some(first.fence)), "the old claim is invalid");
    assert!(!postpone(store, &first, None), "the old claim is invalid");
    assert_eq!((find(store, session), wakes_at(store)), (None, Some(later(125))));
    assert!(keep(store, session, &plain("made"), Some(second.fence)));
    assert_eq!((find(store, session), wakes_at(store)), (Some(plain("made")), None));
    assert_eq!(claim(store, later(10_000), 10), []);
}

/// Summaries are claimed longest due first, up to the limit.
pub fn longest_due_summaries_come_first(store: &TestStore) {
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

/// A claimed summary can be postponed to a time, or until the next request, only by its claim.
pub fn claimed_summaries_can_be_postponed(store: &TestStore) {
    let session = session_id();
    ask(store, session, NOW);
    let first = claim(store, NOW, 1).remove(0);
    assert!(postpone(store, &first, Some(later(7))));
    assert!(!postpone(store, &first, Some(later(8))), "it was already postponed");
    assert_eq!((wakes_at(store), claim(store, later(6), 1)), (Some(later(7)), vec![]));
    let second = claim(store, later(7), 1).remove(0);
    assert_eq!(second.attempts, 2);
    assert!(postpone(store, &second, None));
    assert_eq!((wakes_at(store), claim(store, later(10_000), 1)), (None, vec![]));
    ask(store, session, later(9));
    assert_eq!(claim(store, later(9), 1).remove(0).attempts, 1, "requested again");
}

/// A summary that is requested again while it is created stays due, whatever the first outcome.
pub fn summary_requested_again_meanwhile_stays_due(store: &TestStore) {
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

pub fn summary_stored_without_a_claim_is_no_longer_due(store: &TestStore) {
    let [never, waiting, claimed] = [session_id(), session_id(), session_id()];
    ask(store, claimed, NOW);
    let held = claim(store, NOW, 1).remove(0);
    ask(store, waiting, later(1));
    for session in [never, waiting, claimed] {
        assert!(keep(store, session, &plain("at once"), None));
        assert_eq!(find(store, session), Some(plain("at once")));
    }
    assert_eq!((wakes_at(store), claim(store, later(10_000), 10)), (None, vec![]));
    assert!(!postpone(store, &held, Some(later(1))), "the claim is no longer valid");
}

/// A summary that continues an outdated one is not stored and covers nothing.
pub fn overtaken_summary_is_not_stored(store: &TestStore) {
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

/// When failed items are retried, summaries of their sessions are due again.
pub fn summaries_are_renewed_when_failed_items_are_retried(store: &TestStore) {
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
