//! Turns: a job is taken on by one process at a time, and again when it is due.

use baton_core::Timestamp;
use baton_store::Store;

use super::fixture::{NOW, later};
use super::store::{TestStore, write};

fn take(store: &Store, name: &'static str, now: Timestamp, since: Timestamp) -> bool {
    write(store, move |tx| tx.take_turn(name, now, since))
}

/// A job is taken on once, and again when the last time lies far enough back; jobs do not know each other.
pub fn a_job_is_taken_on_when_it_is_due(store: &TestStore) {
    assert!(take(store, "sweep", NOW, NOW), "nobody ever took it on");
    let just_before = Timestamp::from_millis(NOW.as_millis() - 1);
    assert!(!take(store, "sweep", later(1), just_before), "it was taken on after that");
    assert!(take(store, "other", later(1), just_before), "another job is another job");
    assert!(take(store, "sweep", later(60), NOW), "it is due again");
    assert!(!take(store, "sweep", later(61), later(59)), "the refused and the other turn changed nothing");
}
