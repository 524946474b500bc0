//! Invalid input is rejected with a clear error and the right code, and no file is partially written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use baton_core::ErrorCode;
use serde_json::json;

use crate::checkout::{Checkout, TASK, TASK_FILE};

/// Returns every file below a folder with its content.
fn all_files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                files.insert(
                    entry.path().to_string_lossy().into_owned(),
                    fs::read(entry.path()).unwrap_or_default(),
                );
            }
        }
    }
    files
}

fn output(checkout: &Checkout) -> BTreeMap<String, Vec<u8>> {
    all_files(&checkout.root().join(".agent-output"))
}

#[test]
fn operations_on_unknown_tasks_return_task_not_found() {
    let checkout = Checkout::new();
    assert_eq!(checkout.code("init_context", json!({ "task_id": "TASK-9" })), ErrorCode::TaskNotFound);
    for (name, params) in [
        ("get_context", json!({ "task_id": "TASK-9" })),
        ("update_agent", json!({ "task_id": "TASK-9", "agent": "implementer", "status": "done" })),
        ("mark_blocked", json!({ "task_id": "TASK-9", "agent": "implementer", "finding": "x" })),
        ("snapshot_worktree", json!({ "task_id": "TASK-9", "agent": "implementer" })),
        ("verify_worktree", json!({ "task_id": "TASK-9", "expected_agent": "implementer" })),
        ("get_diff", json!({ "task_id": "TASK-9", "agent": "implementer" })),
        ("record_qa", json!({ "task_id": "TASK-9", "agent": "implementer", "content": "x" })),
        ("attach_evidence", json!({ "task_id": "TASK-9", "type": "plan", "path": "README.md" })),
        ("rebuild_context", json!({ "task_id": "TASK-9" })),
        ("resolve_drift", json!({ "task_id": "TASK-9", "note": "x" })),
        ("complete", json!({ "task_id": "TASK-9" })),
    ] {
        assert_eq!(checkout.code(name, params), ErrorCode::TaskNotFound, "{name}");
    }
    assert!(!checkout.root().join(".agent-output").exists());
}

#[test]
fn unreadable_task_files_are_rejected_and_nothing_is_written() {
    let cases = [("title: [", "settings.task.yaml:"), ("- a list", "must contain fields")];
    for (text, expected) in cases {
        let checkout = Checkout::new();
        checkout.write("tasks/open/TASK-0824-settings.task.yaml", text);
        let fault = checkout.refused("init_context", json!({ "task_id": TASK }));
        assert_eq!(fault.code, ErrorCode::InvalidRequest, "{}", fault.message);
        assert!(fault.message.contains(expected), "{expected}: {}", fault.message);
        assert!(fault.hint.is_some() || fault.details.is_some(), "{}", fault.message);
        assert!(output(&checkout).is_empty(), "files were written: {expected}");
    }
    let checkout = Checkout::new();
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &TASK_FILE.replace("in_progress", "todo"));
    assert_eq!(checkout.code("init_context", json!({ "task_id": TASK })), ErrorCode::TaskConflict);
}

#[test]
fn task_files_with_unknown_or_invalid_fields_initialise_with_warnings() {
    let cases = [
        (TASK_FILE.replace("title: Faster settings", "title: ''"), "title is missing; TASK-0824 is assumed"),
        (TASK_FILE.replace("priority: P1\n", ""), "priority"),
        (TASK_FILE.replace("P1", "P7"), "priority \"P7\""),
        (TASK_FILE.replace("id: TASK-0824", "id: TASK-1"), "id is TASK-1"),
        (TASK_FILE.replace("area: backend", "area: ['x']"), "area"),
        (
            TASK_FILE.replace("    - docs/settings.md", "    - ../../etc/passwd"),
            "must not leave the repository",
        ),
        (TASK_FILE.replace("    - docs/settings.md", "    - :nope"), ":nope is not known"),
        (
            TASK_FILE.replace("standards:\n  - standards/backend.md#layering-rules\n", ""),
            "no standards are cited",
        ),
        (TASK_FILE.replace("#layering-rules", "#nothing"), "it has no section"),
        (TASK_FILE.replace("standards/backend.md#", "../backend.md#"), "is not a file of the repository"),
        (format!("{TASK_FILE}plan: [{{ id: 1 }}]\nrisks: []\n"), "does not use: owner, plan, risks"),
    ];
    for (text, expected) in cases {
        let checkout = Checkout::new();
        checkout.write("tasks/open/TASK-0824-settings.task.yaml", &text);
        let answer = checkout.call("init_context", json!({ "task_id": TASK }));
        assert!(
            answer["warnings"].to_string().replace("\\\"", "\"").contains(expected),
            "{expected}: {answer}"
        );
    }
}

#[test]
fn missing_standards_are_cited_standards() {
    let checkout = Checkout::new();
    let text = TASK_FILE.replace("standards/backend.md#", "standards/missing.md#");
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &text);
    let answer = checkout.call("init_context", json!({ "task_id": TASK }));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("it does not exist"), "{warnings}");
    assert!(!warnings.contains("no standards are cited"), "{warnings}");
}

#[test]
fn names_and_paths_outside_the_checkout_are_rejected() {
    let checkout = Checkout::with_context();
    let outside = tempfile::NamedTempFile::new().unwrap();
    symlink(outside.path(), checkout.root().join("leak")).unwrap();
    let before = output(&checkout);
    for id in ["../TASK-1", "TASK-../x", "TASK-", "", "TASK-1/..", "TASK-1\0"] {
        assert_eq!(
            checkout.code("get_context", json!({ "task_id": id })),
            ErrorCode::InvalidRequest,
            "{id:?}"
        );
        assert_eq!(
            checkout.code("purge_context", json!({ "task_id": id })),
            ErrorCode::InvalidRequest,
            "{id:?}"
        );
    }
    for role in ["../x", "", "Implementer", "a/b"] {
        let params = json!({ "task_id": TASK, "agent": role, "status": "done" });
        assert_eq!(checkout.code("update_agent", params), ErrorCode::InvalidRequest, "{role:?}");
    }
    for path in ["../x", "/etc/passwd", "leak", "src/../../x", ".", ""] {
        let attach = json!({ "task_id": TASK, "type": "plan", "path": path });
        assert_eq!(checkout.code("attach_evidence", attach), ErrorCode::InvalidRequest, "{path:?}");
        let update =
            json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress", "qa_log": path });
        assert_eq!(checkout.code("update_agent", update), ErrorCode::InvalidRequest, "{path:?}");
    }
    let missing = json!({ "task_id": TASK, "agent": "implementer", "from": "none.log" });
    assert_eq!(checkout.code("record_qa", missing), ErrorCode::NotFound);
    assert_eq!(output(&checkout), before);
}

#[test]
fn an_output_folder_that_is_a_link_is_not_followed() {
    let checkout = Checkout::new();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), checkout.root().join(".agent-output")).unwrap();
    assert_eq!(checkout.code("init_context", json!({ "task_id": TASK })), ErrorCode::TaskConflict);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_context_is_reported_and_not_changed() {
    let checkout = Checkout::with_context();
    let path = ".agent-output/TASK-0824/context.json";
    let good = String::from_utf8(checkout.read(path)).unwrap();
    for bad in ["", "{}", "null", &good[..good.len() / 2], &good.replace("\"pending\"", "\"done\"")] {
        checkout.write(path, bad);
        for (name, params) in [
            ("get_context", json!({ "task_id": TASK })),
            ("update_agent", json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress" })),
            ("init_context", json!({ "task_id": TASK })),
        ] {
            let fault = checkout.refused(name, params);
            let expected = matches!(fault.code, ErrorCode::TaskCorrupt | ErrorCode::UnsupportedSchemaVersion);
            assert!(expected && fault.message.contains("context.json"), "{name}: {fault:?}");
        }
        assert_eq!(checkout.read(path), bad.as_bytes(), "a damaged context must not be changed");
    }
    checkout.write(path, &good);
    checkout.call("get_context", json!({ "task_id": TASK }));
}

fn secret() -> String {
    format!("AKIA{}", "IOSFODNN7EXAMPLQ")
}

#[test]
fn secrets_are_rejected_unless_forced() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("qa.log", &format!("line\nkey {}\n", secret()));
    checkout.write("src/main.rs", &format!("let key = \"{}\";\n", secret()));
    let before = output(&checkout);
    let calls = [
        (
            "mark_blocked",
            json!({ "task_id": TASK, "agent": "reviewer", "finding": format!("found {}", secret()) }),
        ),
        ("record_qa", json!({ "task_id": TASK, "agent": "implementer", "from": "qa.log" })),
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer" })),
        ("attach_evidence", json!({ "task_id": TASK, "type": "excerpt", "path": "qa.log", "lines": "2" })),
        (
            "update_agent",
            json!({ "task_id": TASK, "agent": "implementer", "status": "done", "qa_log": "qa.log",
                "without_snapshot": true }),
        ),
    ];
    for (name, params) in &calls {
        let fault = checkout.refused(name, params.clone());
        assert_eq!(fault.code, ErrorCode::SecretFound, "{name}");
        let text = format!("{} {:?} {:?}", fault.message, fault.details, fault.hint);
        assert!(text.contains("aws-access-key") && !text.contains(&secret()), "{text}");
        assert_eq!(output(&checkout), before, "{name}: files were written");
    }
    for (name, params) in &calls[1..3] {
        let mut params = params.clone();
        params["force_secrets"] = true.into();
        let answer = checkout.call(name, params);
        assert!(answer["warnings"].to_string().contains("accepted and recorded"), "{name}: {answer}");
    }
    // The finding in qa.log was accepted with the snapshot, whose diff contains that file.
    for (name, params) in &calls[3..] {
        checkout.call(name, params.clone());
    }
    let context = checkout.context();
    let verbs: Vec<&str> = context.audit.forced_secrets.iter().map(|forced| forced.verb.as_str()).collect();
    assert_eq!(verbs, ["record-qa", "snapshot-worktree"]);
    assert!(!serde_json::to_string(&context.audit).unwrap().contains(&secret()));
}

#[test]
fn a_forced_secret_is_accepted_from_then_on() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", &format!("let key = \"{}\";\n", secret()));
    let snapshot = |role: &str| json!({ "task_id": TASK, "agent": role });
    let fault = checkout.refused("snapshot_worktree", snapshot("implementer"));
    assert!(fault.message.contains("aws-access-key at src/main.rs"), "{}", fault.message);
    let mut forced = snapshot("implementer");
    forced["force_secrets"] = true.into();
    checkout.call("snapshot_worktree", forced);
    checkout.call("snapshot_worktree", snapshot("implementer"));
    checkout.update("implementer", "done");
    checkout.update("reviewer", "in_progress");
    checkout.write("src/main.rs", &format!("// moved\nlet key = \"{}\";\n", secret()));
    let again = checkout.call("snapshot_worktree", snapshot("reviewer"));
    assert!(!again["warnings"].to_string().contains("accepted and recorded"), "{again}");
    let audit = checkout.context().audit;
    assert_eq!((audit.forced_secrets.len(), audit.accepted_secrets.len()), (1, 1), "{audit:?}");
    assert_eq!(audit.accepted_secrets[0].path, "src/main.rs");
    // Another secret in the same file, and the same secret in another file, are not accepted.
    for (path, text) in [("src/main.rs", secret().replace('Q', "R")), ("src/other.rs", secret())] {
        let before = checkout.read("src/main.rs");
        checkout.write(path, &format!("let key = \"{text}\";\n"));
        assert_eq!(
            checkout.code("snapshot_worktree", snapshot("reviewer")),
            ErrorCode::SecretFound,
            "{path}"
        );
        checkout.write("src/main.rs", &String::from_utf8(before).unwrap());
    }
}

#[test]
fn diff_of_a_drift_is_stored_unless_it_contains_a_secret_that_was_not_accepted() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", &format!("let key = \"{}\";\n", secret()));
    let forced = json!({ "task_id": TASK, "agent": "implementer", "force_secrets": true });
    checkout.call("snapshot_worktree", forced);
    checkout.update("implementer", "done");
    let verify = json!({ "task_id": TASK, "expected_agent": "implementer" });
    let diff = json!({ "task_id": TASK, "type": "drift", "content": true });
    let edits = [("// moved", secret(), true), ("// other", secret().replace('Q', "R"), false)];
    for (line, secret, stored) in edits {
        checkout.write("src/main.rs", &format!("{line}\nlet key = \"{secret}\";\n"));
        assert_eq!(checkout.code("verify_worktree", verify.clone()), ErrorCode::DriftDetected);
        let found = checkout.try_call("get_diff", diff.clone());
        let content = found.map(|answer| answer["content"].as_str().unwrap().contains(line));
        assert_eq!(
            content.map_err(|fault| fault.code),
            if stored { Ok(true) } else { Err(ErrorCode::NotFound) }
        );
    }
}

#[test]
fn a_secret_in_the_actor_is_rejected_even_if_forced() {
    let checkout = Checkout::with_context();
    for force in [false, true] {
        let params = json!({ "task_id": TASK, "agent": "reviewer", "finding": "x", "actor": secret(), "force_secrets": force });
        let fault = checkout.refused("mark_blocked", params);
        assert!(fault.code == ErrorCode::SecretFound && !fault.message.contains(&secret()), "{fault:?}");
    }
}

#[test]
fn secrets_in_a_task_file_or_a_note_are_rejected() {
    let checkout = Checkout::new();
    let leaky = TASK_FILE.replace("faster.", &format!("faster with {}.", secret()));
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &leaky);
    checkout.tree.commit();
    assert_eq!(checkout.code("init_context", json!({ "task_id": TASK })), ErrorCode::SecretFound);
    assert!(!checkout.root().join(".agent-output/TASK-0824").exists());
    checkout.call("init_context", json!({ "task_id": TASK, "force_secrets": true }));
    // A forced secret stays accepted when its revision is archived.
    checkout
        .call("record_qa", json!({ "task_id": TASK, "agent": "implementer", "content": "1 passed in 0.1s" }));
    checkout.work("implementer", "src/main.rs", "x\n");
    checkout.write("src/main.rs", "y\n");
    checkout.code("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
    let note = json!({ "task_id": TASK, "note": format!("used {}", secret()) });
    assert_eq!(checkout.code("resolve_drift", note), ErrorCode::SecretFound);
    assert_eq!(checkout.context().drift.open_count(), 1);
}

#[test]
fn invalid_parameters_are_rejected() {
    let checkout = Checkout::with_context();
    for (name, params) in [
        ("update_agent", json!({ "task_id": TASK, "agent": "implementer", "status": "finished" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "implementer", "status": "blocked" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "implementer" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "stranger", "status": "done" })),
        ("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": "  " })),
        ("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": "x".repeat(5000) })),
        ("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": "\u{1b}[2J" })),
        ("resolve_drift", json!({ "task_id": TASK, "note": "" })),
        ("get_diff", json!({ "task_id": TASK, "agent": "reviewer", "type": "sideways" })),
        ("attach_evidence", json!({ "task_id": TASK, "type": "A B", "path": "README.md" })),
        ("attach_evidence", json!({ "task_id": TASK, "type": "plan", "path": "README.md", "lines": "9-1" })),
        ("record_qa", json!({ "task_id": TASK, "agent": "implementer" })),
        ("init_context", json!({ "task_id": TASK, "surprise": 1 })),
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer", "actor": "" })),
        ("list", json!([])),
    ] {
        assert_eq!(checkout.code(name, params.clone()), ErrorCode::InvalidRequest, "{name} {params}");
    }
    let unknown = json!({ "task_id": TASK, "base_commit": "nonsense" });
    checkout.call("purge_context", json!({ "task_id": TASK }));
    assert_eq!(checkout.code("init_context", unknown), ErrorCode::InvalidRequest);
}

#[test]
fn a_held_lock_times_out_and_reads_still_work() {
    let mut checkout = Checkout::with_context();
    checkout.environment = crate::checkout::environment_at(checkout.root(), std::sync::Arc::default())
        .with_lock_timeout(Duration::from_millis(30));
    let file = fs::File::open(checkout.root().join(".agent-output/.context_store.lock")).unwrap();
    file.lock().unwrap();
    let params = json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress" });
    let fault = checkout.refused("update_agent", params.clone());
    assert_eq!(fault.code, ErrorCode::Overloaded);
    checkout.call("get_context", json!({ "task_id": TASK }));
    drop(file);
    checkout.call("update_agent", params);
}

#[test]
fn a_modified_diff_is_reported_as_corrupt() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    let params = json!({ "task_id": TASK, "agent": "implementer", "content": true });
    checkout.call("get_diff", params.clone());
    checkout.write(".agent-output/TASK-0824/0001-implementer-from-base.diff.gz", "junk");
    assert_eq!(checkout.code("get_diff", params), ErrorCode::TaskCorrupt);
}
