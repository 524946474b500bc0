//! What becomes of a task's files: archive, purge, sweep; and repair after a crash.

use std::fs;
use std::time::Duration;

use baton_core::ErrorCode;
use serde_json::json;

use crate::checkout::{Checkout, TASK};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn completed_tasks_are_kept_for_thirty_days() {
    let checkout = Checkout::begun();
    assert_eq!(checkout.code("complete", json!({ "task_id": TASK })), ErrorCode::TaskConflict);
    let done = checkout.call("complete", json!({ "task_id": TASK, "force": true }));
    let archive = checkout.root().join(done["archive_path"].as_str().unwrap());
    assert!(archive.join("context.json").is_file());
    assert!(!checkout.root().join(".agent-output/TASK-0824").exists());
    let list = |archived: bool| checkout.call("list", json!({ "archived": archived }))["tasks"].clone();
    assert_eq!(list(false), json!([]));
    assert_eq!(list(true)[0]["title"], "Faster settings");
    checkout.pass(29 * DAY);
    assert_eq!(checkout.call("sweep_contexts", json!({}))["expired"], json!([]));
    checkout.pass(DAY);
    assert_eq!(checkout.call("sweep_contexts", json!({ "dry_run": true }))["expired"], json!([TASK]));
    assert!(archive.is_dir());
    assert_eq!(checkout.call("sweep_contexts", json!({}))["expired"], json!([TASK]));
    assert!(!archive.exists());
}

#[test]
fn a_task_can_be_begun_again_after_it_was_completed() {
    let checkout = Checkout::begun();
    for _ in 0..2 {
        checkout.call("complete", json!({ "task_id": TASK, "force": true }));
        checkout.call("init_context", json!({ "task_id": TASK }));
    }
    assert_eq!(checkout.call("list", json!({ "archived": true }))["tasks"].as_array().unwrap().len(), 3);
}

#[test]
fn purging_is_idempotent_and_works_on_anything() {
    let checkout = Checkout::new();
    let purge = || checkout.call("purge_context", json!({ "task_id": TASK }))["purged"].clone();
    assert_eq!(purge(), false);
    assert!(!checkout.root().join(".agent-output").exists(), "nothing to purge leaves no trace");
    checkout.call("init_context", json!({ "task_id": TASK }));
    checkout.write(".agent-output/TASK-0824/context.json", "garbage");
    assert_eq!(purge(), true);
    assert_eq!(purge(), false);
    assert!(!checkout.root().join(".agent-output/.trash").exists());
    assert!(checkout.root().join(".agent-output/.context_store.lock").is_file(), "the lock stays");
    checkout.call("init_context", json!({ "task_id": TASK }));
}

#[test]
fn sweeping_takes_what_is_orphaned_and_old() {
    let checkout = Checkout::begun();
    let sweep = |ttl: &str, all: bool| checkout.call("sweep_contexts", json!({ "ttl": ttl, "all": all }));
    assert_eq!(sweep("7d", false)["kept"], json!([TASK]));
    checkout.pass(8 * DAY);
    assert_eq!(sweep("7d", false)["kept"], json!([TASK]), "its task is in progress");
    fs::remove_file(checkout.root().join("tasks/open/TASK-0824-settings.task.yaml")).unwrap();
    assert_eq!(sweep("30d", false)["kept"], json!([TASK]), "it is not old enough");
    assert_eq!(sweep("7d", false)["swept"], json!([TASK]));
    assert_eq!(sweep("7d", false)["swept"], json!([]));
    assert_eq!(checkout.code("sweep_contexts", json!({ "ttl": "soon" })), ErrorCode::InvalidRequest);
}

#[test]
fn sweeping_leaves_what_cannot_be_read_alone() {
    let checkout = Checkout::begun();
    checkout.write(".agent-output/TASK-0824/context.json", "garbage");
    checkout.pass(100 * DAY);
    let answer = checkout.call("sweep_contexts", json!({ "ttl": "1d", "all": true }));
    assert_eq!(answer["unreadable"].as_array().unwrap().len(), 1);
    let list = checkout.call("list", json!({}))["tasks"].clone();
    assert!(list[0]["problem"].as_str().unwrap().contains("context.json"), "{list}");
}

#[test]
fn what_a_crash_left_of_derived_files_is_made_again() {
    let checkout = Checkout::begun();
    let good = checkout.read(".agent-output/TASK-0824/context-reviewer.json");
    checkout
        .write(".agent-output/TASK-0824/context-reviewer.json", "{\"of\":\"a revision that never was\"}\n");
    checkout.write(".agent-output/TASK-0824/.tmp-half", "half");
    checkout.update("implementer", "in_progress");
    assert_eq!(checkout.read(".agent-output/TASK-0824/context-reviewer.json"), good);
    assert!(!checkout.root().join(".agent-output/TASK-0824/.tmp-half").exists());
    fs::remove_file(checkout.root().join(".agent-output/TASK-0824/context.manifest")).unwrap();
    checkout.update("implementer", "pending");
    assert!(checkout.root().join(".agent-output/TASK-0824/context.manifest").is_file());
}

#[test]
fn an_interrupted_init_can_be_repeated() {
    let checkout = Checkout::begun();
    fs::remove_file(checkout.root().join(".agent-output/TASK-0824/context.json")).unwrap();
    checkout.call("init_context", json!({ "task_id": TASK }));
    assert_eq!(checkout.context().audit.update_count, 1);
}

#[test]
fn another_beginning_overwrites_no_diff() {
    let checkout = Checkout::begun();
    checkout.work("implementer", "src/main.rs", "first\n");
    let first = ".agent-output/TASK-0824/0001-implementer-from-base.diff.gz";
    let before = checkout.read(first);
    fs::remove_file(checkout.root().join(".agent-output/TASK-0824/context.json")).unwrap();
    let answer = checkout.call("init_context", json!({ "task_id": TASK }));
    assert!(answer["warnings"].to_string().contains("files of an earlier context"), "{answer}");
    checkout.work("implementer", "src/main.rs", "second\n");
    assert_eq!(checkout.read(first), before);
    assert!(checkout.context().snapshots[0].diff_from_base.ends_with("/0002-implementer-from-base.diff.gz"));
}

#[test]
fn temporary_files_of_killed_processes_are_removed_by_the_sweep() {
    let checkout = Checkout::begun();
    let left = [".agent-output/.tmp-abc", ".agent-output/TASK-0824/.tmp-def"];
    left.iter().for_each(|path| checkout.write(path, "half"));
    checkout.call("sweep_contexts", json!({}));
    for path in left {
        assert!(!checkout.root().join(path).exists(), "{path}");
    }
    checkout.context();
}
