//! Lifecycle of task files: archive, purge, sweep, and repair after a crash.

use std::fs;
use std::time::Duration;

use baton_core::ErrorCode;
use serde_json::json;

use crate::checkout::{Checkout, TASK};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn completed_tasks_are_archived_for_30_days() {
    let checkout = Checkout::with_context();
    assert_eq!(checkout.code("complete", json!({ "task_id": TASK })), ErrorCode::TaskConflict);
    let done = checkout.call("complete", json!({ "task_id": TASK, "force": true }));
    let archive = checkout.root().join(done["archive_path"].as_str().unwrap());
    assert!(archive.join("context.json").is_file());
    assert!(!checkout.root().join(".agent-output/TASK-0824").exists());
    let list = |archived: bool| checkout.call("list", json!({ "archived": archived }))["tasks"].clone();
    assert_eq!(list(false), json!([]));
    assert_eq!(list(true)[0]["title"], "Faster settings");
    checkout.advance_clock(29 * DAY);
    assert_eq!(checkout.call("sweep_contexts", json!({}))["expired"], json!([]));
    checkout.advance_clock(DAY);
    assert_eq!(checkout.call("sweep_contexts", json!({ "dry_run": true }))["expired"], json!([TASK]));
    assert!(archive.is_dir());
    assert_eq!(checkout.call("sweep_contexts", json!({}))["expired"], json!([TASK]));
    assert!(!archive.exists());
}

#[test]
fn a_completed_task_can_be_initialised_again() {
    let checkout = Checkout::with_context();
    for _ in 0..2 {
        checkout.call("complete", json!({ "task_id": TASK, "force": true }));
        checkout.call("init_context", json!({ "task_id": TASK }));
    }
    assert_eq!(checkout.call("list", json!({ "archived": true }))["tasks"].as_array().unwrap().len(), 3);
}

#[test]
fn purge_is_idempotent_and_deletes_damaged_contexts() {
    let checkout = Checkout::new();
    let purge = || checkout.call("purge_context", json!({ "task_id": TASK }))["purged"].clone();
    assert_eq!(purge(), false);
    assert!(
        !checkout.root().join(".agent-output").exists(),
        "a purge without a task must not create the folder"
    );
    checkout.call("init_context", json!({ "task_id": TASK }));
    checkout.write(".agent-output/TASK-0824/context.json", "garbage");
    assert_eq!(purge(), true);
    assert_eq!(purge(), false);
    assert!(!checkout.root().join(".agent-output/.trash").exists());
    assert!(
        checkout.root().join(".agent-output/.context_store.lock").is_file(),
        "the lock file must be kept"
    );
    checkout.call("init_context", json!({ "task_id": TASK }));
}

#[test]
fn sweep_archives_old_contexts_without_a_task_file() {
    let checkout = Checkout::with_context();
    let sweep = |ttl: &str, all: bool| checkout.call("sweep_contexts", json!({ "ttl": ttl, "all": all }));
    assert_eq!(sweep("7d", false)["kept"], json!([TASK]));
    checkout.advance_clock(8 * DAY);
    assert_eq!(sweep("7d", false)["kept"], json!([TASK]), "the task is in progress");
    fs::remove_file(checkout.root().join("tasks/open/TASK-0824-settings.task.yaml")).unwrap();
    assert_eq!(sweep("30d", false)["kept"], json!([TASK]), "the context is newer than the ttl");
    assert_eq!(sweep("7d", false)["swept"], json!([TASK]));
    assert_eq!(sweep("7d", false)["swept"], json!([]));
    assert_eq!(checkout.code("sweep_contexts", json!({ "ttl": "soon" })), ErrorCode::InvalidRequest);
}

#[test]
fn sweep_keeps_unreadable_contexts() {
    let checkout = Checkout::with_context();
    checkout.write(".agent-output/TASK-0824/context.json", "garbage");
    checkout.advance_clock(100 * DAY);
    let answer = checkout.call("sweep_contexts", json!({ "ttl": "1d", "all": true }));
    assert_eq!(answer["unreadable"].as_array().unwrap().len(), 1);
    let list = checkout.call("list", json!({}))["tasks"].clone();
    assert!(list[0]["problem"].as_str().unwrap().contains("context.json"), "{list}");
}

#[test]
fn derived_files_damaged_by_a_crash_are_rewritten() {
    let checkout = Checkout::with_context();
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
    let checkout = Checkout::with_context();
    fs::remove_file(checkout.root().join(".agent-output/TASK-0824/context.json")).unwrap();
    checkout.call("init_context", json!({ "task_id": TASK }));
    assert_eq!(checkout.context().audit.update_count, 1);
}

#[test]
fn a_second_init_does_not_overwrite_artifacts() {
    let checkout = Checkout::with_context();
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
fn sweep_removes_temporary_files_of_killed_processes() {
    let checkout = Checkout::with_context();
    let left = [".agent-output/.tmp-abc", ".agent-output/TASK-0824/.tmp-def"];
    left.iter().for_each(|path| checkout.write(path, "half"));
    checkout.call("sweep_contexts", json!({}));
    for path in left {
        assert!(!checkout.root().join(path).exists(), "{path}");
    }
    checkout.context();
}
