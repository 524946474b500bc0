//! Transactions: all or nothing, whatever happens inside, and what an acknowledgement promises.

use std::sync::mpsc;
use std::thread;

use baton_core::{Session, SessionId};
use baton_store::{Durability, Outcome, Page, SessionFilter, Store, StoreError};

use super::fixture::{NOW, Refusal, break_off, request, session, tuple};
use super::gate::Gate;
use super::store::{CONNECTIONS, TestStore, read, try_write, write};

/// Makes sessions of distinct tuples.
fn sessions(count: usize) -> Vec<Session> {
    (0..count).map(|number| session(tuple(&format!("agent-{number}")))).collect()
}

fn is_there(store: &Store, id: SessionId) -> bool {
    read(store, move |tx| tx.session(id)).is_some()
}

/// Work that says no leaves nothing behind and gets its own error back.
pub fn refused_work_leaves_nothing(store: &TestStore) {
    let refused = session(tuple("agent"));
    let id = refused.id;
    let answer: Result<(), Refusal> = store
        .write(Durability::Full, move |tx| {
            tx.insert_session(&refused)?;
            tx.log_request(&request(NOW))?;
            Err(Refusal::Own)
        })
        .wait();
    assert!(matches!(answer, Err(Refusal::Own)), "{answer:?}");
    assert!(!is_there(store, id));
    assert_eq!(read(store, |tx| tx.requests(10)), []);
}

/// Work that panics leaves nothing behind, is answered `Broken`, and the store goes on; so it is inside a nested part.
pub fn broken_work_leaves_nothing(store: &TestStore) {
    let made = sessions(3);
    let [plain, nested, after] = &made[..] else { unreachable!("three were made") };
    let broken = plain.clone();
    let answer: Result<(), StoreError> = try_write(store, move |tx| {
        tx.insert_session(&broken)?;
        break_off()
    });
    assert!(matches!(answer, Err(StoreError::Broken)), "{answer:?}");

    let broken = nested.clone();
    let answer: Result<(), StoreError> = try_write(store, move |tx| {
        tx.nested(&mut |tx| {
            tx.insert_session(&broken).unwrap();
            break_off()
        })
    });
    assert!(matches!(answer, Err(StoreError::Broken)), "{answer:?}");

    let answer: Result<(), StoreError> = store.read(|_| break_off()).wait();
    assert!(matches!(answer, Err(StoreError::Broken)), "{answer:?}");

    let whole = after.clone();
    write(store, move |tx| tx.insert_session(&whole));
    assert_eq!(made.iter().map(|one| is_there(store, one.id)).collect::<Vec<_>>(), [false, false, true]);
}

/// Whatever work makes of a statement that failed, its acknowledgement tells the truth: `Ok` means kept, all of it.
pub fn an_acknowledgement_after_a_failed_statement_is_true(store: &TestStore) {
    let made = sessions(3);
    let first = made[0].clone();
    write(store, move |tx| tx.insert_session(&first));

    let (before, after) = (made[1].clone(), made[2].clone());
    let same_tuple = session(made[0].tuple.clone());
    let answer = try_write(store, move |tx| {
        tx.insert_session(&before)?;
        assert!(tx.insert_session(&same_tuple).is_err(), "the tuple is taken");
        // Work that carries on regardless, as it should not.
        let _ = tx.insert_session(&after);
        Ok(())
    });
    let kept: Vec<bool> = made.iter().map(|one| is_there(store, one.id)).collect();
    assert_eq!(kept, [true, answer.is_ok(), answer.is_ok()], "{answer:?}");
}

/// A nested part is undone by itself, also after a statement in it failed, and what surrounds it is kept.
pub fn a_nested_part_is_undone_alone(store: &TestStore) {
    let made = sessions(5);
    let parts = made.clone();
    let same_tuple = session(made[0].tuple.clone());
    write(store, move |tx| {
        let [before, undone, kept, inner, after] = &parts[..] else { unreachable!("five were made") };
        tx.insert_session(before)?;
        tx.nested(&mut |tx| {
            tx.insert_session(undone).unwrap();
            assert!(tx.insert_session(&same_tuple).is_err(), "the tuple is taken");
            Outcome::Undo
        })?;
        tx.nested(&mut |tx| {
            tx.insert_session(kept).unwrap();
            tx.nested(&mut |tx| {
                tx.insert_session(inner).unwrap();
                Outcome::Undo
            })
            .unwrap();
            Outcome::Keep
        })?;
        tx.insert_session(after)
    });
    let kept: Vec<bool> = made.iter().map(|one| is_there(store, one.id)).collect();
    assert_eq!(kept, [true, false, true, false, true]);
}

/// A nested part that is kept goes with the rest when the whole is undone.
pub fn a_kept_part_goes_with_its_whole(store: &TestStore) {
    let part = session(tuple("agent"));
    let id = part.id;
    let answer: Result<(), Refusal> = store
        .write(Durability::Full, move |tx| {
            tx.nested(&mut |tx| {
                tx.insert_session(&part).unwrap();
                Outcome::Keep
            })?;
            Err(Refusal::Own)
        })
        .wait();
    assert!(matches!(answer, Err(Refusal::Own)), "{answer:?}");
    assert!(!is_there(store, id));
}

/// Work submitted as a read keeps nothing.
pub fn reading_keeps_nothing(store: &TestStore) {
    let written = session(tuple("agent"));
    let id = written.id;
    // Whether an engine refuses the statement or undoes it is its own affair.
    let _: Result<(), StoreError> = store.read(move |tx| tx.insert_session(&written)).wait();
    assert!(!is_there(store, id));
}

/// A read sees one state throughout: what is committed while it runs is not in it.
pub fn a_read_sees_one_state(store: &TestStore) {
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
    assert!(is_there(store, made[1].id), "the next read sees it");
}

/// An acknowledged write is visible to every other store on the database; a lazy one as well.
pub fn an_acknowledged_write_is_visible_to_others(store: &TestStore) {
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

/// Closing a store finishes what waits in it.
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
