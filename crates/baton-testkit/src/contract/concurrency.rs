//! Concurrency: real threads through two stores on one database, and work in one batch.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use baton_core::checkpoint::{Place, Workflow};
use baton_core::{KeyClaim, Session, SessionId};
use baton_store::{Durability, Page, Pending, QueueClaim, SessionFilter, Store, StoreError};

use super::fixture::{
    NOW, WorkError, checkpoint, earlier, frame, key_record, key_scope, later, panic_silently, queue_item,
    session, tuple, workflow,
};
use super::gate::Gate;
use super::store::{TestStore, read, write};

/// Runs a function on this many threads, all starting together, every second one on another store.
fn at_once<T: Send>(store: &TestStore, threads: usize, run: impl Fn(usize, &Store) -> T + Sync) -> Vec<T> {
    let other = store.another();
    let (barrier, run) = (Barrier::new(threads), &run);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let store: &Store = if number % 2 == 0 { store } else { &other };
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    run(number, store)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn active(store: &Store) -> BTreeSet<SessionId> {
    let found = read(store, |tx| tx.active_sessions(&SessionFilter::default(), Page::first(10_000)));
    found.into_iter().map(|session| session.id).collect()
}

/// Sixteen workers process a queue of five hundred items: each item is claimed exactly once.
pub fn no_item_is_claimed_twice(store: &TestStore) {
    let items: Vec<_> = (0..500).map(|_| queue_item(NOW)).collect();
    let all: BTreeSet<i64> =
        write(store, move |tx| items.iter().filter_map(|item| tx.enqueue(item).transpose()).collect());
    assert_eq!(all.len(), 500);

    let claims = at_once(store, 16, |_, store| {
        let mut mine = Vec::new();
        loop {
            let claim = QueueClaim { now: NOW, lease_until: later(60), limit: 7 };
            let claimed = write(store, move |tx| tx.claim_queue(claim));
            assert!(claimed.len() <= 7, "asked for 7, got {}", claimed.len());
            if claimed.is_empty() {
                return mine;
            }
            mine.extend(claimed.into_iter().map(|item| item.id));
        }
    });
    let claimed: Vec<i64> = claims.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 500, "each item is claimed once");
    assert_eq!(BTreeSet::from_iter(claimed), all);
}

/// Sixty-four simultaneous starts of one tuple create one active session, and all return its id.
pub fn simultaneous_starts_share_one_session(store: &TestStore) {
    let ids = at_once(store, 64, |_, store| {
        let fresh = session(tuple("agent"));
        write(store, move |tx| {
            if let Some(found) = tx.lock_active_sessions(&fresh.tuple)?.first() {
                return Ok(found.id);
            }
            tx.insert_session(&fresh)?;
            Ok(fresh.id)
        })
    });
    assert_eq!(BTreeSet::from_iter(ids), active(store));
    assert_eq!(active(store).len(), 1);
}

/// Thirty-two concurrent requests with one key have one effect, and all get the same response.
pub fn concurrent_requests_with_one_key_have_one_effect(store: &TestStore) {
    let answers = at_once(store, 32, |number, store| {
        let effect = session(tuple(&format!("agent-{number}")));
        write(store, move |tx| match tx.claim_key(&key_scope("key"), NOW)? {
            KeyClaim::Answered(record) => Ok(record.response_body),
            KeyClaim::Claimed => {
                tx.insert_session(&effect)?;
                tx.record_key(&key_scope("key"), &key_record(&effect.id.to_string()))?;
                Ok(effect.id.to_string())
            }
        })
    });
    let answers = BTreeSet::from_iter(answers);
    assert_eq!(answers, active(store).iter().map(SessionId::to_string).collect());
    assert_eq!(answers.len(), 1);
}

/// Of thirty-two callers that claim a turn at once, one succeeds.
pub fn turn_is_taken_by_one_caller(store: &TestStore) {
    for (now, since) in [(NOW, earlier(60)), (later(60), NOW)] {
        let taken = at_once(store, 32, |_, store| write(store, move |tx| tx.claim_run("sweep", now, since)));
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "at {now}: {taken:?}");
    }
}

/// Concurrent heartbeats keep the latest time, in whatever order they arrive.
pub fn concurrent_heartbeats_keep_the_latest(store: &TestStore) {
    let beaten = session(tuple("agent"));
    let id = beaten.id;
    write(store, move |tx| tx.insert_session(&beaten));
    at_once(store, 16, |number, store| {
        write(store, move |tx| tx.beat_session(id, later(number as u64)));
    });
    let found = read(store, move |tx| tx.session(id)).unwrap();
    assert_eq!(found.last_heartbeat_at, later(15));
}

/// Two hundred saves of sixteen threads to one new workflow get distinct places.
pub fn concurrent_saves_get_distinct_places(store: &TestStore) {
    let of = workflow("shared");
    let saved: usize = at_once(store, 16, |_, store| {
        for _ in 0..12 {
            let of = of.clone();
            write(store, move |tx| {
                let found = tx.lock_workflow(&of.venture, &of.id)?;
                let last = tx.last_place(&of.venture, &of.id)?;
                let place =
                    last.map_or(Place::FIRST, |last| last.next_in_series().unwrap_or(last.next_series()));
                let next = checkpoint(&of, place.series, place.position);
                tx.insert_checkpoint(&next, &frame())?;
                let Some(mut found) = found else {
                    return tx.insert_workflow(&Workflow { checkpoint_count: 1, ..of.clone() });
                };
                found.checkpoint_count += 1;
                tx.update_workflow(&found)
            });
        }
        12
    })
    .into_iter()
    .sum();
    let of = read(store, move |tx| tx.workflow(&of.venture, &of.id)).unwrap();
    assert_eq!(of.checkpoint_count, saved as u64, "every save is counted");
    let listed = read(store, move |tx| tx.checkpoints(&of.venture, &of.id, 0, 1_000));
    let places: Vec<Place> = listed.iter().rev().map(|checkpoint| checkpoint.place).collect();
    let expected: Vec<Place> =
        (0..saved as u32).map(|n| Place { series: n / 64, position: n % 64 }).collect();
    assert_eq!(places, expected);
}

/// A read-modify-write under a session lock is never lost, whether the session was found by id or by tuple.
pub fn locked_changes_are_not_lost(store: &TestStore) {
    let counted = session(tuple("agent"));
    let id = counted.id;
    write(store, move |tx| tx.insert_session(&counted));
    at_once(store, 8, |number, store| {
        for _ in 0..10 {
            write(store, move |tx| {
                let mut found = if number < 4 {
                    tx.lock_session(id)?.unwrap()
                } else {
                    tx.lock_active_sessions(&tuple("agent"))?.remove(0)
                };
                found.facts.issue_number = Some(found.facts.issue_number.unwrap_or(0) + 1);
                tx.update_session(&found)
            });
        }
    });
    let found = read(store, move |tx| tx.session(id)).unwrap();
    assert_eq!(found.facts.issue_number, Some(80));
}

/// Eight threads with fifty writes each: all writes exist afterwards.
pub fn no_write_is_lost(store: &TestStore) {
    let written = at_once(store, 8, |thread, store| {
        let insert = |number| {
            let fresh = session(tuple(&format!("agent-{thread}-{number}")));
            let id = fresh.id;
            write(store, move |tx| tx.insert_session(&fresh));
            id
        };
        (0..50).map(insert).collect::<Vec<_>>()
    });
    let written: BTreeSet<SessionId> = written.into_iter().flatten().collect();
    assert_eq!(written.len(), 400);
    assert_eq!(active(store), written);
}

/// Behaviour of one piece of work in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Succeeds,
    Fails,
    ViolatesUniqueTuple,
    Panics,
}

impl Behaviour {
    const ALL: [Self; 4] = [Self::Succeeds, Self::Fails, Self::ViolatesUniqueTuple, Self::Panics];

    fn submit(self, store: &Store, own: Session, taken: Session) -> Pending<(), WorkError> {
        store.write(Durability::Full, move |tx| {
            tx.insert_session(&own)?;
            match self {
                Self::Succeeds => Ok(()),
                Self::Fails => Err(WorkError::Own),
                Self::ViolatesUniqueTuple => Ok(tx.insert_session(&taken)?),
                Self::Panics => panic_silently(),
            }
        })
    }

    fn is_answered_by(self, answer: &Result<(), WorkError>) -> bool {
        match self {
            Self::Succeeds => answer.is_ok(),
            Self::Fails => matches!(answer, Err(WorkError::Own)),
            Self::ViolatesUniqueTuple => {
                matches!(answer, Err(WorkError::Store(StoreError::Statement { .. })))
            }
            Self::Panics => matches!(answer, Err(WorkError::Store(StoreError::WorkFailed))),
        }
    }
}

/// Work in a shared commit does not affect the other work, however it ends.
pub fn failing_work_does_not_affect_its_batch(store: &TestStore) {
    let holder = session(tuple("taken"));
    let taken = holder.tuple.clone();
    let mut expected = BTreeSet::from([holder.id]);
    write(store, move |tx| tx.insert_session(&holder));

    // While one write blocks the writer, the others are queued behind it.
    let gate = Gate::new();
    let first = store.runs_in_background().then(|| {
        let gate = gate.clone();
        store.write::<_, StoreError, _>(Durability::Full, move |_| {
            gate.pass();
            Ok(())
        })
    });
    if first.is_some() {
        gate.await_arrivals(1);
    }
    let mut pieces = Vec::new();
    for number in 0..40 {
        let behaviour = Behaviour::ALL[number % Behaviour::ALL.len()];
        let own = session(tuple(&format!("agent-{number}")));
        if behaviour == Behaviour::Succeeds {
            expected.insert(own.id);
        }
        pieces.push((behaviour, behaviour.submit(store, own, session(taken.clone()))));
    }
    gate.open();

    if let Some(first) = first {
        first.wait().unwrap();
    }
    for (behaviour, pending) in pieces {
        let answer = pending.wait();
        assert!(behaviour.is_answered_by(&answer), "{behaviour:?} was answered {answer:?}");
    }
    assert_eq!(active(store), expected);
}
