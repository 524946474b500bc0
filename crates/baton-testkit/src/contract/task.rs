//! The task index: the latest record of every checkout is returned.

use baton_core::Timestamp;
use baton_core::task::{TaskRecord, TaskStatus};
use baton_store::{Store, TaskFilter};

use super::fixture::{AWKWARD, NOW, later};
use super::store::{TestStore, read, write};

fn task(checkout: &str, updated_at: Timestamp) -> TaskRecord {
    TaskRecord {
        venture: "v".parse().unwrap(),
        host: "host".into(),
        checkout: checkout.into(),
        task_id: "TASK-1".parse().unwrap(),
        repo: None,
        title: String::new(),
        status: TaskStatus::Pending,
        holder: None,
        open_drifts: 0,
        updated_at,
    }
}

fn put(store: &Store, task: &TaskRecord) {
    let task = task.clone();
    write(store, move |tx| tx.put_task(&task));
}

fn all() -> TaskFilter {
    let venture = "v".parse().unwrap();
    TaskFilter { venture, repo: None, status: None, only_open: false, offset: 0, limit: 10 }
}

fn list(store: &Store, filter: TaskFilter) -> Vec<TaskRecord> {
    read(store, move |tx| tx.tasks(&filter))
}

/// Every field is read back as written.
pub fn reads_back_every_field(store: &TestStore) {
    for (number, status) in TaskStatus::ALL.into_iter().enumerate() {
        let full = TaskRecord {
            host: AWKWARD.into(),
            task_id: format!("TASK-{number}").parse().unwrap(),
            repo: Some("o/r".parse().unwrap()),
            title: AWKWARD.into(),
            status,
            holder: Some("reviewer".parse().unwrap()),
            open_drifts: 3,
            ..task(AWKWARD, later(1))
        };
        put(store, &full);
        assert_eq!(list(store, TaskFilter { status: Some(status), ..all() }), [full]);
    }
    let plain = TaskRecord { venture: "w".parse().unwrap(), ..task("/c", NOW) };
    put(store, &plain);
    assert_eq!(list(store, TaskFilter { venture: "w".parse().unwrap(), ..all() }), [plain]);
}

/// A task has one record per checkout; an older record does not replace a newer one.
pub fn newer_record_is_kept(store: &TestStore) {
    let (old, young) = (task("/c", NOW), TaskRecord { status: TaskStatus::Done, ..task("/c", later(1)) });
    put(store, &old);
    put(store, &young);
    assert_eq!(list(store, all()), std::slice::from_ref(&young));
    put(store, &old);
    assert_eq!(list(store, all()), std::slice::from_ref(&young));
    let same_moment = TaskRecord { open_drifts: 1, ..young };
    put(store, &same_moment);
    assert_eq!(list(store, all()), [same_moment]);
}

/// Lists contain the tasks of one venture, last updated first, and support filters and pages.
pub fn lists_filter_and_order(store: &TestStore) {
    let here = TaskRecord { repo: Some("o/r".parse().unwrap()), ..task("/a", later(2)) };
    let tasks = [
        task("/z", later(3)),
        here.clone(),
        TaskRecord { task_id: "TASK-2".parse().unwrap(), ..task("/b", later(1)) },
        task("/b", later(1)),
        TaskRecord { host: "another".into(), ..task("/b", later(1)) },
    ];
    tasks.iter().rev().for_each(|task| put(store, task));
    put(store, &TaskRecord { venture: "other".parse().unwrap(), ..task("/a", later(9)) });
    assert_eq!(list(store, all()), tasks);
    assert_eq!(list(store, TaskFilter { repo: here.repo.clone(), ..all() }), [here]);
    assert_eq!(list(store, TaskFilter { status: Some(TaskStatus::Done), ..all() }), []);
    assert_eq!(list(store, TaskFilter { offset: 1, limit: 3, ..all() }), tasks[1..4]);
}

/// A list of open tasks has no finished ones, and finished ones do not count for its limit.
pub fn open_tasks_are_listed_without_finished_ones(store: &TestStore) {
    let tasks = TaskStatus::ALL.map(|status| TaskRecord { status, ..task(status.as_str(), NOW) });
    tasks.iter().for_each(|task| put(store, task));
    for finished in [TaskStatus::Done, TaskStatus::Completed] {
        put(store, &TaskRecord { status: finished, ..task("/later", later(1)) });
    }
    let found = list(store, TaskFilter { only_open: true, limit: 4, ..all() });
    let mut statuses: Vec<&str> = found.iter().map(|task| task.status.as_str()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["blocked", "in_progress", "pending", "waiting"]);
}

/// Deleting a task of one checkout does not affect others.
pub fn only_the_deleted_task_is_gone(store: &TestStore) {
    let (gone, kept) = (task("/a", NOW), task("/b", NOW));
    put(store, &gone);
    put(store, &kept);
    let forget = |host: &'static str| {
        let gone = gone.clone();
        write(store, move |tx| tx.delete_task(&gone.venture, host, &gone.checkout, &gone.task_id))
    };
    assert!(!forget("elsewhere"));
    assert!(forget("host"));
    assert!(!forget("host"), "it was already deleted");
    assert_eq!(list(store, all()), [kept]);
}
