//! Conditions for finishing a role, notes, and how a drift is shown and resolved.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use baton_core::ErrorCode;
use serde_json::json;

use crate::checkout::{Checkout, TASK};

fn done(role: &str) -> serde_json::Value {
    json!({ "task_id": TASK, "agent": role, "status": "done" })
}

#[test]
fn done_is_refused_without_a_snapshot_of_the_present_tree() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "x\n");
    let fault = checkout.refused("update_agent", done("implementer"));
    assert_eq!(fault.code, ErrorCode::TaskConflict);
    assert!(fault.message.contains("recorded no snapshot"), "{}", fault.message);
    checkout.snapshot("implementer");
    checkout.write("src/main.rs", "y\n");
    let fault = checkout.refused("update_agent", done("implementer"));
    assert!(fault.message.contains("src/main.rs"), "{}", fault.message);
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    // The next role is verified against the last snapshot.
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", "z\n");
    let mut params = done("reviewer");
    assert_eq!(checkout.code("update_agent", params.clone()), ErrorCode::TaskConflict);
    params["without_snapshot"] = json!(true);
    checkout.call("update_agent", params);
    checkout.write("src/main.rs", "y\n");
    assert_eq!(checkout.update("validator", "in_progress")["verified_snapshot"], 2);
}

#[test]
fn role_that_changed_nothing_needs_no_snapshot_of_its_own() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    checkout.update("reviewer", "in_progress");
    let answer = checkout.call("update_agent", done("reviewer"));
    assert!(answer["warnings"].to_string().contains("continues from snapshot 1"), "{answer}");
    assert_eq!(checkout.update("validator", "in_progress")["verified_snapshot"], 1);
}

#[test]
fn validator_needs_a_qa_result() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    checkout.work("reviewer", "src/main.rs", "y\n");
    checkout.update("validator", "in_progress");
    checkout.snapshot("validator");
    let fault = checkout.refused("update_agent", done("validator"));
    assert!(fault.message.contains("no QA result") && fault.hint.unwrap().contains("run-qa"));
    checkout.call("run_qa", json!({ "task_id": TASK, "agent": "validator", "command": ["exit 1"] }));
    let answer = checkout.call("update_agent", done("validator"));
    assert!(answer["warnings"].to_string().contains("failed"), "{answer}");
    assert_eq!(answer["next"], "baton task complete TASK-0824");
}

#[test]
fn edits_after_done_cannot_be_hidden_by_another_snapshot() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    checkout.write("src/main.rs", "edited by hand\n");
    let params = json!({ "task_id": TASK, "agent": "implementer" });
    assert_eq!(checkout.code("snapshot_worktree", params), ErrorCode::TaskConflict);
    let next = json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" });
    assert_eq!(checkout.code("update_agent", next), ErrorCode::DriftDetected);
}

#[test]
fn complete_verifies_the_tree_and_accepts_a_commit_of_it() {
    let checkout = Checkout::with_context();
    for role in ["implementer", "reviewer", "validator"] {
        checkout.work(role, "src/main.rs", role);
    }
    checkout.write("src/main.rs", "edited by hand\n");
    let fault = checkout.refused("complete", json!({ "task_id": TASK }));
    assert_eq!(fault.code, ErrorCode::DriftDetected);
    assert_eq!(checkout.context().drift.open_count(), 1);
    let restore = json!({ "task_id": TASK, "note": "not meant", "restore_all": true });
    checkout.call("resolve_drift", restore);
    checkout.tree.commit();
    checkout.call("complete", json!({ "task_id": TASK }));
}

#[test]
fn notes_are_shown_to_the_role_that_takes_the_task() {
    let checkout = Checkout::with_context();
    let note = |agent: &str, kind: &str, text: &str| {
        let params = json!({ "task_id": TASK, "agent": agent, "kind": kind, "text": text, "actor": "ada" });
        checkout.call("note", params)
    };
    note("implementer", "handover", "first");
    note("implementer", "handover", "look at the cache");
    note("implementer", "review", "names could be better");
    checkout.work("implementer", "src/main.rs", "x\n");
    let taken = checkout.update("reviewer", "in_progress");
    let texts: Vec<&str> =
        taken["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["look at the cache", "names could be better"]);
    assert_eq!(taken["notes"][0]["written_by"], "ada");
    let role = checkout.call("get_context", json!({ "task_id": TASK, "role": "validator" }));
    assert_eq!(role["role"]["notes"].as_array().unwrap().len(), 2);
    let empty = json!({ "task_id": TASK, "agent": "implementer", "text": " " });
    assert_eq!(checkout.code("note", empty), ErrorCode::InvalidRequest);
}

#[test]
fn drift_has_a_diff_and_its_resolution_belongs_to_the_actor() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "one\n");
    checkout.write("src/main.rs", "two\n");
    let next = json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" });
    let fault = checkout.refused("update_agent", next);
    assert!(fault.hint.unwrap().contains("--type drift --content"));
    let diff = checkout.call("get_diff", json!({ "task_id": TASK, "type": "drift", "content": true }));
    let text = diff["content"].as_str().unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text}");
    let own = checkout.context().coordination[&"implementer".parse().unwrap()].worktree_snapshot.clone();
    let params = json!({ "task_id": TASK, "note": "meant so", "actor": "ada" });
    let answer = checkout.call("resolve_drift", params);
    assert_eq!((&answer["resolved_by"], &answer["snapshot"]), (&json!("ada"), &json!(2)));
    let context = checkout.context();
    let implementer = &context.coordination[&"implementer".parse().unwrap()];
    assert_eq!(
        implementer.worktree_snapshot, own,
        "the resolution must not replace the snapshot of the role"
    );
    assert_eq!(context.snapshots[1].actor, "ada");
    assert_eq!(checkout.update("reviewer", "in_progress")["verified_snapshot"], 2);
}

#[test]
fn drift_is_restored_and_the_previous_content_is_kept() {
    let checkout = Checkout::with_context();
    let at = |path: &str| checkout.root().join(path);
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "one\n");
    checkout.write("src/tool.sh", "#!/bin/sh\n");
    fs::set_permissions(at("src/tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("main.rs", at("src/link")).unwrap();
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout.write("src/main.rs", "two\n");
    checkout.write("src/extra.rs", "extra\n");
    fs::remove_file(at("src/tool.sh")).unwrap();
    fs::remove_file(at("src/link")).unwrap();
    let verify = json!({ "task_id": TASK, "expected_agent": "implementer" });
    assert_eq!(checkout.code("verify_worktree", verify.clone()), ErrorCode::DriftDetected);
    let wrong = json!({ "task_id": TASK, "note": "n", "restore": ["README.md"] });
    assert_eq!(checkout.code("resolve_drift", wrong), ErrorCode::InvalidRequest);
    let some = json!({ "task_id": TASK, "note": "n", "restore": ["src/main.rs", "src/tool.sh", "src/link", "src/extra.rs"] });
    let answer = checkout.call("resolve_drift", some);
    assert_eq!(checkout.read("src/main.rs"), b"one\n");
    assert!(fs::metadata(at("src/tool.sh")).unwrap().permissions().mode() & 0o111 != 0);
    assert_eq!(fs::read_link(at("src/link")).unwrap().to_str(), Some("main.rs"));
    assert!(!at("src/extra.rs").exists());
    let aside = answer["set_aside"].as_array().unwrap();
    let kept: Vec<Vec<u8>> = aside.iter().map(|kept| checkout.read(kept["path"].as_str().unwrap())).collect();
    assert_eq!(kept, [b"extra\n".to_vec(), b"two\n".to_vec()]);
    assert_eq!(
        (&aside[0]["original_path"], &aside[1]["original_path"]),
        (&json!("src/extra.rs"), &json!("src/main.rs"))
    );
    checkout.call("verify_worktree", verify);
    checkout.update("reviewer", "in_progress");
}

#[test]
fn a_link_to_a_name_that_is_not_utf8_is_restored() {
    let checkout = Checkout::with_context();
    let link = checkout.root().join("src/link");
    let target = OsStr::from_bytes(b"caf\xe9.rs");
    checkout.update("implementer", "in_progress");
    symlink(target, &link).unwrap();
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    fs::remove_file(&link).unwrap();
    let verify = json!({ "task_id": TASK, "expected_agent": "implementer" });
    assert_eq!(checkout.code("verify_worktree", verify.clone()), ErrorCode::DriftDetected);
    checkout.call("resolve_drift", json!({ "task_id": TASK, "note": "n", "restore_all": true }));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new(target));
    checkout.call("verify_worktree", verify);
}
