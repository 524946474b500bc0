//! Schedules: a job is claimed by one process at a time, and again when it is due.

use baton_core::Timestamp;
use baton_store::Store;

use super::fixture::{NOW, later};
use super::store::{TestStore, write};

fn take(store: &Store, name: &'static str, now: Timestamp, since: Timestamp) -> bool {
    write(store, move |tx| tx.claim_run(name, now, since))
}

/// A job can be claimed once, and again when the last claim is old enough. Jobs are independent.
pub fn job_can_be_claimed_when_due(store: &TestStore) {
    assert!(take(store, "sweep", NOW, NOW), "the job was never claimed");
    let just_before = Timestamp::from_millis(NOW.as_millis() - 1);
    assert!(!take(store, "sweep", later(1), just_before), "the job was claimed after that");
    assert!(take(store, "other", later(1), just_before), "jobs are independent");
    assert!(take(store, "sweep", later(60), NOW), "it is due again");
    assert!(!take(store, "sweep", later(61), later(59)), "rejected claims and other jobs change nothing");
}
