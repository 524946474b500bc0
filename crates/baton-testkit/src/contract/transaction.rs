//! Transactions: atomicity, and the meaning of an acknowledgement.

use std::sync::mpsc;
use std::thread;

use baton_core::{Session, SessionId};
use baton_store::{Durability, Outcome, Page, SessionFilter, Store, StoreError};

use super::fixture::{NOW, WorkError, panic_silently, request, session, tuple};
use super::gate::Gate;
use super::store::{CONNECTIONS, TestStore, read, try_write, write};

/// Creates sessions with distinct tuples.
fn sessions(count: usize) -> Vec<Session> {
    (0..count).map(|number| session(tuple(&format!("agent-{number}")))).collect()
}

fn is_there(store: &Store, id: SessionId) -> bool {
    read(store, move |tx| tx.session(id)).is_some()
}

/// Work that returns an error is rolled back, and the caller gets the error.
pub fn rejected_work_is_rolled_back(store: &TestStore) {
    let refused = session(tuple("agent"));
    let id = refused.id;
    let answer: Result<(), WorkError> = store
        .write(Durability::Full, move |tx| {
            tx.insert_session(&refused)?;
            tx.log_request(&request(NOW))?;
            Err(WorkError::Own)
        })
        .wait();
    assert!(matches!(answer, Err(WorkError::Own)), "{answer:?}");
    assert!(!is_there(store, id));
    assert_eq!(read(store, |tx| tx.requests(10)), []);
}

/// Work that panics is rolled back and reported as `WorkFailed`, also in a nested part, and the store keeps working.
pub fn panicking_work_is_rolled_back(store: &TestStore) {
    let made = sessions(3);
    let [plain, nested, after] = &made[..] else { unreachable!("three were made") };
    let broken = plain.clone();
    let answer: Result<(), StoreError> = try_write(store, move |tx| {
        tx.insert_session(&broken)?;
        panic_silently()
    });
    assert!(matches!(answer, Err(StoreError::WorkFailed)), "{answer:?}");

    let broken = nested.clone();
    let answer: Result<(), StoreError> = try_write(store, move |tx| {
        tx.nested(&mut |tx| {
            tx.insert_session(&broken).unwrap();
            panic_silently()
        })
    });
    assert!(matches!(answer, Err(StoreError::WorkFailed)), "{answer:?}");

    let answer: Result<(), StoreError> = store.read(|_| panic_silently()).wait();
    assert!(matches!(answer, Err(StoreError::WorkFailed)), "{answer:?}");

    let whole = after.clone();
    write(store, move |tx| tx.insert_session(&whole));
    assert_eq!(made.iter().map(|one| is_there(store, one.id)).collect::<Vec<_>>(), [false, false, true]);
}

/// However work handles a failed statement, `Ok` means that everything was committed.
pub fn ok_after_a_failed_statement_means_committed(store: &TestStore) {
    let made = sessions(3);
    let first = made[0].clone();
    write(store, move |tx| tx.insert_session(&first));

    let (before, after) = (made[1].clone(), made[2].clone());
    let same_tuple = session(made[0].tuple.clone());
    let answer = try_write(store, move |tx| {
        tx.insert_session(&before)?;
        assert!(tx.insert_session(&same_tuple).is_err(), "the tuple already has an active session");
        // Work that continues after an error, although it should not.
        let _ = tx.insert_session(&after);
        Ok(())
    });
    let kept: Vec<bool> = made.iter().map(|one| is_there(store, one.id)).collect();
    assert_eq!(kept, [true, answer.is_ok(), answer.is_ok()], "{answer:?}");
}

/// A nested part is rolled back alone, even after a failed statement, and the rest is kept.
pub fn nested_part_is_rolled_back_alone(store: &TestStore) {
    let made = sessions(5);
    let parts = made.clone();
    let same_tuple = session(made[0].tuple.clone());
    write(store, move |tx| {
        let [before, undone, kept, inner, after] = &parts[..] else { unreachable!("five were made") };
        tx.insert_session(before)?;
        tx.nested(&mut |tx| {
            tx.insert_session(undone).unwrap();
            assert!(tx.insert_session(&same_tuple).is_err(), "the tuple already has an active session");
            Outcome::RollBack
        })?;
        tx.nested(&mut |tx| {
            tx.insert_session(kept).unwrap();
            tx.nested(&mut |tx| {
                tx.insert_session(inner).unwrap();
                Outcome::RollBack
            })
            .unwrap();
            Outcome::Commit
        })?;
        tx.insert_session(after)
    });
    let kept: Vec<bool> = made.iter().map(|one| is_there(store, one.id)).collect();
    assert_eq!(kept, [true, false, true, false, true]);
}

/// A nested part that was kept is rolled back with the whole transaction.
pub fn nested_part_is_rolled_back_with_its_transaction(store: &TestStore) {
    let part = session(tuple("agent"));
    let id = part.id;
    let answer: Result<(), WorkError> = store
        .write(Durability::Full, move |tx| {
            tx.nested(&mut |tx| {
                tx.insert_session(&part).unwrap();
                Outcome::Commit
            })?;
            Err(WorkError::Own)
        })
        .wait();
    assert!(matches!(answer, Err(WorkError::Own)), "{answer:?}");
    assert!(!is_there(store, id));
}

/// Writes in a read transaction are not kept.
pub fn writes_in_a_read_are_rolled_back(store: &TestStore) {
    let written = session(tuple("agent"));
    let id = written.id;
    // Engines may reject the statement or roll it back.
    let _: Result<(), StoreError> = store.read(move |tx| tx.insert_session(&written)).wait();
    assert!(!is_there(store, id));
}

/// A read sees one snapshot: commits while it runs are not visible.
pub fn read_sees_one_snapshot(store: &TestStore) {
    let made = sessions(2);
    let first = made[0].clone();
    write(store, move |tx| tx.insert_session(&first));
    let writer = store.another();
    let second = made[1].clone();
    let (started, has_started) = mpsc::channel();
    let (committed, has_committed) = mpsc::channel();
    let writing = thread::spawn(move || {
        has_started.recv().unwrap();
        write(&writer, move |tx| tx.insert_session(&second));
        committed.send(()).unwrap();
    });

    let (before, after) = read(store, move |tx| {
        let mut count = || {
            let found = tx.active_sessions(&SessionFilter::default(), Page::first(10))?;
            Ok::<_, StoreError>(found.len())
        };
        let before = count()?;
        started.send(()).unwrap();
        has_committed.recv().unwrap();
        Ok((before, count()?))
    });
    writing.join().unwrap();

    assert_eq!((before, after), (1, 1), "before and after the other commit");
    assert!(is_there(store, made[1].id), "the next read sees the commit");
}

/// An acknowledged write, also a lazy one, is visible to every other store on the database.
pub fn acknowledged_writes_are_visible_to_others(store: &TestStore) {
    let other = store.another();
    for (durability, written) in
        [Durability::Full, Durability::Lazy, Durability::Full].into_iter().zip(sessions(3))
    {
        let id = written.id;
        let answer: Result<(), StoreError> =
            store.write(durability, move |tx| tx.insert_session(&written)).wait();
        answer.unwrap();
        assert!(is_there(&other, id), "{durability:?}, to another store");
        assert!(is_there(store, id), "{durability:?}, to the same store");
        assert!(is_there(&store.another(), id), "{durability:?}, to a store opened afterwards");
    }
}

/// Closing a store finishes its queued work.
pub fn closing_finishes_waiting_work(store: &TestStore) {
    if !store.runs_in_background() {
        return;
    }
    let closing = store.another();
    let gate = Gate::new();
    let occupied: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let gate = gate.clone();
            closing.write::<_, StoreError, _>(Durability::Full, move |_| {
                gate.pass();
                Ok(())
            })
        })
        .collect();
    gate.await_arrivals(1);
    let made = sessions(20);
    let waiting: Vec<_> = made
        .iter()
        .cloned()
        .map(|one| closing.write::<_, StoreError, _>(Durability::Full, move |tx| tx.insert_session(&one)))
        .collect();

    gate.open();
    drop(closing);

    for pending in occupied.into_iter().chain(waiting) {
        pending.wait().unwrap();
    }
    assert!(made.iter().all(|one| is_there(store, one.id)));
}
