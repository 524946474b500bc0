//! Edits outside the workflow are detected when the next role takes the task, listed by file, and resolved with a note.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use baton_core::ErrorCode;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};

fn checkout_after_implementer() -> Checkout {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "fast\n");
    checkout
}

fn verify(checkout: &Checkout) -> Result<Value, (ErrorCode, Value)> {
    let params = json!({ "task_id": TASK, "expected_agent": "implementer" });
    checkout.try_call("verify_worktree", params).map_err(|fault| (fault.code, fault.details.unwrap()))
}

fn kinds(details: &Value) -> Vec<&str> {
    details["differences"].as_array().unwrap().iter().map(|d| d["kind"].as_str().unwrap()).collect()
}

#[test]
fn verify_detects_every_kind_of_edit() {
    type Edit = fn(&Checkout);
    let edits: [(Edit, &[&str]); 7] = [
        (|c| c.write("src/main.rs", "slow\n"), &["content_changed"]),
        (|c| c.write("src/extra.rs", "new\n"), &["added"]),
        (|c| fs::remove_file(c.root().join("src/main.rs")).unwrap(), &["removed", "scope_file_missing"]),
        (
            |c| fs::set_permissions(c.root().join("src/main.rs"), fs::Permissions::from_mode(0o755)).unwrap(),
            &["mode_changed"],
        ),
        (
            |c| {
                c.tree.commit();
            },
            &["base_commit_moved", "committed"],
        ),
        (|c| c.write("src/main.rs", "fn main() {}\n"), &["reset", "content_changed"]),
        (
            |c| {
                c.write("src/main.rs", "fn main() {}\n");
                c.tree.set_stash("stash-1");
            },
            &["stashed", "content_changed"],
        ),
    ];
    for (edit, expected) in edits {
        let checkout = checkout_after_implementer();
        edit(&checkout);
        let (code, details) = verify(&checkout).unwrap_err();
        assert_eq!((code, kinds(&details)), (ErrorCode::DriftDetected, expected.to_vec()));
    }
}

#[test]
fn an_unchanged_tree_and_staged_changes_are_not_drift() {
    let checkout = checkout_after_implementer();
    assert!(verify(&checkout).is_ok());
    checkout.write(".walked/staged", "1 M. N... 100644 100644 100644 a b src/main.rs\0");
    let answer = verify(&checkout).unwrap();
    let notice = &answer["notices"][0];
    assert_eq!((&notice["kind"], &notice["path"]), (&json!("staged_only"), &json!("src/main.rs")));
    // Baton's own files are not part of the tree.
    checkout.write(".agent-output/TASK-0824/notes.txt", "mine\n");
    assert!(verify(&checkout).is_ok());
}

#[test]
fn acquiring_a_task_verifies_the_tree_and_an_open_drift_blocks_all_roles() {
    let checkout = checkout_after_implementer();
    checkout.write("src/main.rs", "edited by hand\n");
    let take = json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" });
    let fault = checkout.refused("update_agent", take.clone());
    assert_eq!(fault.code, ErrorCode::DriftDetected);
    assert!(fault.message.contains("src/main.rs: expected SHA"), "{}", fault.message);
    assert_eq!(checkout.context().drift.open_count(), 1);
    for (name, params) in [
        ("update_agent", take.clone()),
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer" })),
        ("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": "x" })),
        ("record_qa", json!({ "task_id": TASK, "agent": "implementer", "content": "x" })),
        ("attach_evidence", json!({ "task_id": TASK, "type": "plan", "path": "README.md" })),
        ("rebuild_context", json!({ "task_id": TASK })),
        ("complete", json!({ "task_id": TASK })),
    ] {
        assert_eq!(checkout.code(name, params), ErrorCode::TaskBlocked, "{name}");
    }
    let resolved =
        checkout.call("resolve_drift", json!({ "task_id": TASK, "note": "a typo", "actor": "operator" }));
    assert_eq!((&resolved["resolved"], &resolved["snapshot"]), (&json!(1), &json!(2)));
    let context = checkout.context();
    let resolution = context.drift.events[0].resolution.as_ref().unwrap();
    assert_eq!((resolution.note.as_str(), resolution.resolved_by.as_str()), ("a typo", "operator"));
    assert!(context.coordination.values().all(|state| state.drift_budget == 0));
    assert_eq!(checkout.call("update_agent", take)["verified_snapshot"], 2);
    assert_eq!(
        checkout.code("resolve_drift", json!({ "task_id": TASK, "note": "x" })),
        ErrorCode::TaskConflict
    );
}

#[test]
fn the_same_drift_is_recorded_once_and_stays_open_after_it_is_undone() {
    let checkout = checkout_after_implementer();
    checkout.write("src/main.rs", "one\n");
    for _ in 0..3 {
        verify(&checkout).unwrap_err();
    }
    assert_eq!(checkout.context().drift.open_count(), 1);
    checkout.write("src/main.rs", "two\n");
    assert_eq!(verify(&checkout).unwrap_err().1["drift_budget"], 2);
    checkout.write("src/main.rs", "fast\n");
    let answer = verify(&checkout).unwrap();
    assert_eq!(answer["drift_budget"], 2);
    assert!(answer["warnings"][0].as_str().unwrap().contains("still open"));
}

#[test]
fn changes_of_the_role_that_holds_the_task_are_not_recorded_as_drift() {
    let checkout = checkout_after_implementer();
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", "reviewed\n");
    let (code, details) = verify(&checkout).unwrap_err();
    assert_eq!((code, &details["recorded"]), (ErrorCode::DriftDetected, &json!(false)));
    assert_eq!(checkout.context().drift.open_count(), 0);
    let fault =
        checkout.refused("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
    assert!(fault.message.contains("differs from snapshot 1 of implementer"), "{}", fault.message);
    assert!(fault.hint.unwrap().contains("reviewer holds the task and may change the tree"));
    checkout.snapshot("reviewer");
    checkout.update("reviewer", "done");
    // The implementer's snapshot is no longer the newest.
    assert_eq!(verify(&checkout).unwrap_err().1["recorded"], false);
    let fault =
        checkout.refused("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
    assert!(fault.hint.unwrap().contains("verify-worktree TASK-0824 --expected-agent reviewer"));
    checkout.update("validator", "in_progress");
}

#[test]
fn read_operations_do_not_change_the_context() {
    let checkout = checkout_after_implementer();
    checkout.write("src/main.rs", "edited\n");
    verify(&checkout).unwrap_err();
    let before = checkout.read(".agent-output/TASK-0824/context.json");
    checkout.call("get_context", json!({ "task_id": TASK }));
    checkout.call("list", json!({ "archived": true }));
    checkout.call("get_diff", json!({ "task_id": TASK, "agent": "implementer" }));
    verify(&checkout).unwrap_err();
    assert_eq!(checkout.read(".agent-output/TASK-0824/context.json"), before);
}

#[test]
fn a_snapshot_of_a_clean_tree_is_rejected_unless_allowed() {
    let checkout = Checkout::with_context();
    let params = json!({ "task_id": TASK, "agent": "implementer" });
    let before = checkout.read(".agent-output/TASK-0824/context.json");
    assert_eq!(checkout.code("snapshot_worktree", params), ErrorCode::InvalidRequest);
    assert_eq!(checkout.read(".agent-output/TASK-0824/context.json"), before);
    checkout
        .call("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer", "allow_clean": true }));
}

#[test]
fn a_moved_head_causes_warnings_until_it_is_resolved() {
    let checkout = Checkout::with_context();
    checkout.write("README.md", "other\n");
    checkout.tree.commit();
    let warnings = checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].to_string();
    assert!(warnings.contains("context may be stale"), "{warnings}");
    assert!(warnings.contains("baton task rebuild-context"), "{warnings}");
    // A rebuild accepts the new HEAD and creates no new revision, because the frozen part did not change.
    assert_eq!(checkout.call("rebuild_context", json!({ "task_id": TASK }))["immutable_revision"], 1);
    let warnings = || checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].clone();
    assert_eq!(warnings(), json!([]));
    checkout.work("implementer", "src/main.rs", "fast\n");
    checkout.tree.commit();
    assert!(warnings().to_string().contains("this is drift: reset HEAD, or resolve it"), "{}", warnings());
    verify(&checkout).unwrap_err();
    checkout.call("resolve_drift", json!({ "task_id": TASK, "note": "it was me" }));
    assert_eq!(warnings(), json!([]));
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", "faster\n");
    checkout.tree.commit();
    assert!(warnings().to_string().contains("the next snapshot of reviewer will start from"));
    let taken = checkout.snapshot("reviewer");
    assert!(taken["warnings"].to_string().contains("git reset --soft"), "{taken}");
    assert_eq!(warnings(), json!([]));
}

#[test]
fn a_chosen_base_commit_does_not_count_as_a_moved_head() {
    let checkout = Checkout::new();
    let base = checkout.tree.commit();
    checkout.write("README.md", "other\n");
    checkout.tree.commit();
    checkout.call("init_context", json!({ "task_id": TASK, "base_commit": base }));
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fast\n");
    let taken = checkout.snapshot("implementer");
    assert!(!taken["warnings"].to_string().contains("HEAD"), "{taken}");
    assert_eq!(checkout.call("get_context", json!({ "task_id": TASK }))["warnings"], json!([]));
}

#[test]
fn a_task_with_unsaved_changes_cannot_be_blocked() {
    let block = json!({ "task_id": TASK, "agent": "reviewer", "finding": "no tests" });
    let checkout = checkout_after_implementer();
    checkout.update("reviewer", "in_progress");
    let quiet = checkout.call("mark_blocked", block.clone());
    assert_eq!(quiet["warnings"], json!([]), "nothing was changed");
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", "corrected\n");
    let fault = checkout.refused("mark_blocked", block.clone());
    assert!(fault.message.contains("snapshot 1 (src/main.rs)"), "{}", fault.message);
    assert!(fault.hint.unwrap().ends_with("baton task snapshot-worktree TASK-0824 --agent reviewer"));
    checkout.snapshot("reviewer");
    checkout.call("mark_blocked", block);
    checkout.update("implementer", "in_progress");
}

#[test]
fn unsaved_changes_of_a_released_task_are_drift_for_the_next_role() {
    let checkout = checkout_after_implementer();
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", "corrected\n");
    let back = checkout.update("reviewer", "pending");
    assert!(back["warnings"][0].as_str().unwrap().contains("drift for the next role"), "{back}");
    let take = json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress" });
    let fault = checkout.refused("update_agent", take);
    assert!(fault.message.contains("; reviewer held the task after that\n"), "{}", fault.message);
}
