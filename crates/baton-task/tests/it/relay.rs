//! A task from init to completion, with rework, other pipelines and all files.

use std::fs;

use baton_core::{ErrorCode, Sha256Hash};
use baton_task::rules::{Manifest, RoleStatus};
use serde_json::json;

use crate::checkout::{Checkout, TASK, TASK_FILE};

#[test]
fn init_freezes_the_task_and_lists_its_sources() {
    let checkout = Checkout::new();
    let answer = checkout.call("init_context", json!({ "task_id": TASK, "actor": "runner" }));
    assert_eq!(answer["context_path"], ".agent-output/TASK-0824/context.json");
    assert_eq!(answer["summary"].as_array().unwrap().len(), 8);
    assert_eq!(checkout.read(".agent-output/.gitignore"), b"*\n", "git must ignore the output folder");
    let context = checkout.context();
    assert_eq!(context.created_by, "runner");
    assert_eq!(context.immutable.task_snapshot.description, "Make it faster.\n");
    assert_eq!(context.immutable.repo_paths, ["docs/settings.md", "src/main.rs"]);
    let citation = &context.immutable.standards_citations[0];
    assert_eq!((citation.section.as_str(), citation.line_span.as_deref()), ("layering-rules", Some("L3-L5")));
    assert_eq!(context.git.head, context.git.base_commit);
    let manifest: Manifest =
        serde_json::from_slice(&checkout.read(".agent-output/TASK-0824/context.manifest")).unwrap();
    let kinds: Vec<&str> = manifest.sources.iter().map(|source| source.kind.as_str()).collect();
    assert_eq!(kinds, ["standard", "task"]);
    for source in &manifest.sources {
        assert_eq!(source.sha256, Sha256Hash::of(&checkout.read(&source.path)), "{}", source.path);
    }
    for (file, sha) in &manifest.derived {
        assert_eq!(*sha, Sha256Hash::of(&checkout.read(&format!(".agent-output/TASK-0824/{file}"))));
    }
    assert_eq!(checkout.code("init_context", json!({ "task_id": TASK })), ErrorCode::TaskExists);
}

#[test]
fn equal_checkouts_produce_identical_files() {
    let (one, other) = (Checkout::with_context(), Checkout::with_context());
    for file in ["context.json", "context.manifest", "context-reviewer.json"] {
        let path = format!(".agent-output/TASK-0824/{file}");
        assert_eq!(one.read(&path), other.read(&path), "{file}");
    }
}

#[test]
fn init_warns_about_a_dirty_tree_and_other_tasks() {
    let checkout = Checkout::with_context();
    checkout.write("tasks/TASK-2.task.yaml", &TASK_FILE.replace("TASK-0824", "TASK-2"));
    checkout.write("src/main.rs", "changed\n");
    let answer = checkout.call("init_context", json!({ "task_id": "TASK-2" }));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("modified files already") && warnings.contains("TASK-0824"), "{warnings}");
}

#[test]
fn a_task_passes_from_implementer_to_reviewer_to_validator() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    checkout.write("src/new.rs", "pub fn fast() {}\n");
    checkout.write("README.md", "Read me too\n");
    let answer = checkout.snapshot("implementer");
    let snapshot = &answer["snapshot"];
    assert_eq!(snapshot["files_changed"].as_array().unwrap().len(), 3);
    assert_eq!(snapshot["diff_stat"], "+3 -2");
    assert_eq!(snapshot["out_of_scope"], json!(["README.md"]));
    assert!(answer["warnings"].to_string().contains("README.md"), "{answer}");
    assert_eq!(snapshot["diff_from_base"], ".agent-output/TASK-0824/0001-implementer-from-base.diff.gz");
    checkout.update("implementer", "done");
    let verified =
        checkout.call("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
    assert_eq!(verified["snapshot"], 1);
    let taken = checkout.update("reviewer", "in_progress");
    assert_eq!(taken["verified_snapshot"], 1);
    checkout.write("src/new.rs", "pub fn fast() { /* reviewed */ }\n");
    let reviewed = checkout.snapshot("reviewer");
    assert_eq!(reviewed["snapshot"]["previous_agent"], "implementer");
    assert!(reviewed["snapshot"]["diff_from_implementer"].is_string());
    assert!(reviewed["snapshot"]["incremental_diff_error"].is_null());
    let diff = |kind: &str| {
        let params = json!({ "task_id": TASK, "agent": "reviewer", "type": kind, "content": true });
        checkout.call("get_diff", params)["content"].as_str().unwrap().to_owned()
    };
    assert!(diff("incremental").contains("reviewed") && !diff("incremental").contains("README"));
    assert!(diff("from_base").contains("README"));
    let first = json!({ "task_id": TASK, "agent": "implementer", "type": "incremental", "content": true });
    let first = checkout.call("get_diff", first)["content"].to_string();
    assert!(!first.contains("reviewed"), "the diff of the first role must not contain later work: {first}");
    checkout.update("reviewer", "done");
    checkout.work("validator", "src/new.rs", "pub fn fast() { /* validated */ }\n");
    let done = checkout.call("complete", json!({ "task_id": TASK }));
    assert!(done["archive_path"].as_str().unwrap().starts_with(".agent-output/.archive/TASK-0824@"));
    assert_eq!(checkout.code("get_context", json!({ "task_id": TASK })), ErrorCode::TaskNotFound);
}

#[test]
fn a_blocked_task_returns_to_the_implementer_and_back() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "one\n");
    checkout.update("reviewer", "in_progress");
    let finding = json!({ "task_id": TASK, "agent": "reviewer", "finding": "no tests" });
    assert_eq!(checkout.call("mark_blocked", finding)["state"]["status"], "blocked");
    let refused = checkout
        .refused("update_agent", json!({ "task_id": TASK, "agent": "validator", "status": "in_progress" }));
    assert_eq!(refused.code, ErrorCode::TaskBlocked);
    checkout.work("implementer", "src/tests.rs", "two\n");
    checkout.work("reviewer", "src/tests.rs", "three\n");
    let context = checkout.context();
    let sequence: Vec<&str> = context.snapshots.iter().map(|snapshot| snapshot.agent.as_str()).collect();
    assert_eq!(sequence, ["implementer", "implementer", "reviewer"]);
    let reviewer = &context.coordination[&"reviewer".parse().unwrap()];
    assert_eq!(
        (reviewer.status, reviewer.resolved_findings.as_slice()),
        (RoleStatus::Done, &["no tests".into()][..])
    );
}

#[test]
fn only_the_role_that_holds_the_task_can_work() {
    let checkout = Checkout::with_context();
    checkout.write("src/main.rs", "x\n");
    for (name, params) in [
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "reviewer" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "reviewer", "status": "done" })),
    ] {
        assert_eq!(checkout.code(name, params), ErrorCode::TaskConflict);
    }
    // The first role acquires the task implicitly.
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout.update("reviewer", "in_progress");
    let params = json!({ "task_id": TASK, "agent": "implementer" });
    assert_eq!(checkout.code("snapshot_worktree", params), ErrorCode::TaskConflict);
}

#[test]
fn other_roles_come_from_the_task_or_the_configuration() {
    let checkout = Checkout::new();
    checkout.write(".baton.toml", "[task]\npipeline = ['writer', 'editor']\n");
    checkout.call("init_context", json!({ "task_id": TASK }));
    checkout.work("writer", "src/main.rs", "x\n");
    checkout.work("editor", "src/main.rs", "y\n");
    assert!(checkout.root().join(".agent-output/TASK-0824/context-editor.json").is_file());
    assert_eq!(
        checkout.code("update_agent", json!({ "task_id": TASK, "agent": "reviewer", "status": "done" })),
        ErrorCode::InvalidRequest
    );
    checkout.call("complete", json!({ "task_id": TASK }));
}

#[test]
fn rebuild_captures_changed_files_and_keeps_role_statuses() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    let same = checkout.call("rebuild_context", json!({ "task_id": TASK }));
    assert_eq!(same["changed"], false);
    checkout.write("standards/backend.md", "## Layering Rules\n\nLayers point up.\n");
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    let params = json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" });
    let fault = checkout.refused("update_agent", params);
    assert!(fault.message.contains("cited standards changed"), "{}", fault.message);
    let warnings = checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].to_string();
    assert!(warnings.contains("standards/backend.md#layering-rules: expected SHA"), "{warnings}");
    let rebuilt = checkout.call("rebuild_context", json!({ "task_id": TASK }));
    assert_eq!((&rebuilt["changed"], &rebuilt["immutable_revision"]), (&json!(true), &json!(2)));
    assert_eq!(rebuilt["changed_sources"], json!(["standards/backend.md"]));
    let context = checkout.context();
    assert_eq!(context.immutable.standards_citations[0].requirement, "Layers point up.");
    assert_eq!(context.coordination[&"implementer".parse().unwrap()].status, RoleStatus::Done);
    checkout.update("reviewer", "in_progress");
}

#[test]
fn evidence_is_attached_once_and_cited_by_id() {
    let checkout = Checkout::with_context();
    let params =
        json!({ "task_id": TASK, "type": "excerpt", "path": "standards/backend.md", "lines": "3-5" });
    let first = checkout.call("attach_evidence", params.clone());
    assert!(first["evidence"]["id"].as_str().unwrap().starts_with("ev_"));
    assert_eq!(first["evidence"]["lines"], "L3-L5");
    let again = checkout.call("attach_evidence", params);
    assert_eq!((&again["known"], &again["evidence"]), (&json!(true), &first["evidence"]));
    let whole =
        checkout.call("attach_evidence", json!({ "task_id": TASK, "type": "plan", "path": "README.md" }));
    assert!(whole["evidence"]["excerpt"].is_null());
    assert_eq!(checkout.context().evidence.len(), 2);
}

#[test]
fn role_context_contains_only_the_parts_of_that_role() {
    let checkout = Checkout::with_context();
    let answer = checkout.call("get_context", json!({ "task_id": TASK, "role": "reviewer" }));
    assert!(answer["context"].is_null());
    assert!(answer["role"]["export"]["immutable"].get("validation_baseline").is_none());
    assert_eq!(answer["role"]["statuses"]["implementer"], "pending");
    let stored = checkout.read(".agent-output/TASK-0824/context-reviewer.json");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&stored).unwrap(), answer["role"]["export"]);
}

#[test]
fn an_incremental_diff_contains_all_changes_of_the_role() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "implemented\n");
    checkout.update("reviewer", "in_progress");
    checkout.write("src/one.rs", "r1\n");
    checkout.snapshot("reviewer");
    checkout.write("src/two.rs", "r2\n");
    let second = checkout.snapshot("reviewer")["snapshot"].clone();
    assert_eq!(second["previous_agent"], "implementer");
    assert_eq!(second["diff_from_implementer"], second["diff_from_previous"]);
    let diff = |agent: &str| {
        let params = json!({ "task_id": TASK, "agent": agent, "type": "incremental", "content": true });
        checkout.call("get_diff", params)["content"].as_str().unwrap().to_owned()
    };
    let text = diff("reviewer");
    assert!(text.contains("+r1") && text.contains("+r2") && !text.contains("implemented"), "{text}");
    checkout.call("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": "no tests" }));
    // Rework is compared with the reviewer's snapshot, even after several snapshots of the implementer.
    checkout.update("implementer", "in_progress");
    for (path, text) in [("src/three.rs", "i1\n"), ("src/four.rs", "i2\n")] {
        checkout.write(path, text);
        let taken = checkout.snapshot("implementer")["snapshot"].clone();
        assert_eq!(
            (&taken["previous_agent"], &taken["diff_from_implementer"]),
            (&json!("reviewer"), &json!(null))
        );
    }
    let text = diff("implementer");
    assert!(text.contains("+i1") && text.contains("+i2") && !text.contains("+r1"), "{text}");
}

#[test]
fn a_role_is_held_by_one_session() {
    let checkout = Checkout::with_context();
    let take = |session: &str| json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress", "session_id": session });
    checkout.call("update_agent", take("s1"));
    checkout.call("update_agent", take("s1"));
    checkout.update("implementer", "in_progress");
    let fault = checkout.refused("update_agent", take("s2"));
    assert_eq!(fault.code, ErrorCode::TaskConflict);
    assert!(fault.message.contains("the session s1 holds TASK-0824 as implementer"), "{}", fault.message);
    assert!(fault.hint.unwrap().contains("--status pending"));
    let done = json!({ "task_id": TASK, "agent": "implementer", "status": "done", "session_id": "s2" });
    assert_eq!(checkout.code("update_agent", done), ErrorCode::TaskConflict);
    // `pending` releases the task of a dead session. A role acquired without a session id can be taken by any session.
    checkout.update("implementer", "pending");
    checkout.update("implementer", "in_progress");
    assert_eq!(checkout.call("update_agent", take("s2"))["state"]["session_id"], "s2");
}

#[test]
fn the_output_folder_has_a_gitignore_even_if_it_existed() {
    let checkout = Checkout::new();
    fs::create_dir(checkout.root().join(".agent-output")).unwrap();
    checkout.call("init_context", json!({ "task_id": TASK }));
    let ignore = checkout.root().join(".agent-output/.gitignore");
    assert_eq!(fs::read(&ignore).unwrap(), b"*\n");
    fs::remove_file(&ignore).unwrap();
    let half = checkout.root().join(".agent-output/.tmp-half");
    fs::write(&half, "*").unwrap();
    checkout.update("implementer", "in_progress");
    assert_eq!(fs::read(&ignore).unwrap(), b"*\n", "a missing .gitignore must be rewritten");
    assert!(!half.exists(), "temporary files of a crash must be removed");
    fs::write(&ignore, "!keep\n").unwrap();
    checkout.update("implementer", "pending");
    assert_eq!(fs::read(&ignore).unwrap(), b"!keep\n", "an existing .gitignore must be kept");
}

#[test]
fn derived_files_that_do_not_match_the_context_are_reported_and_rewritten() {
    let checkout = Checkout::with_context();
    let folder = checkout.root().join(".agent-output/TASK-0824");
    let good = fs::read(folder.join("context.manifest")).unwrap();
    fs::write(folder.join("context-reviewer.json"), "{}").unwrap();
    for (garbage, problem) in [(None, "is missing"), (Some("garbage"), "was modified")] {
        match garbage {
            None => fs::remove_file(folder.join("context.manifest")).unwrap(),
            Some(text) => fs::write(folder.join("context.manifest"), text).unwrap(),
        }
        let warnings = checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].to_string();
        let listed = checkout.call("list", json!({}))["tasks"][0]["warnings"].to_string();
        for text in [&warnings, &listed] {
            assert!(text.contains(&format!("TASK-0824/context.manifest {problem}")), "{text}");
        }
        let rebuilt = checkout.call("rebuild_context", json!({ "task_id": TASK }));
        assert_eq!((&rebuilt["changed"], &rebuilt["immutable_revision"]), (&json!(false), &json!(1)));
        assert!(rebuilt["repaired"].to_string().contains("context.manifest"), "{rebuilt}");
        assert_eq!(fs::read(folder.join("context.manifest")).unwrap(), good);
        assert_eq!(checkout.call("get_context", json!({ "task_id": TASK }))["warnings"], json!([]));
    }
    assert_eq!(checkout.call("rebuild_context", json!({ "task_id": TASK }))["repaired"], json!([]));
}

#[test]
fn a_changed_pipeline_is_used_only_before_the_first_role_has_worked() {
    let checkout = Checkout::with_context();
    let file = "tasks/open/TASK-0824-settings.task.yaml";
    checkout.write(file, &format!("{TASK_FILE}pipeline: [writer, editor]\n"));
    let rebuild = || checkout.call("rebuild_context", json!({ "task_id": TASK }));
    assert_eq!((&rebuild()["changed"], &rebuild()["changed"]), (&json!(true), &json!(false)));
    let exports = || {
        let mut names: Vec<String> = fs::read_dir(checkout.root().join(".agent-output/TASK-0824"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("context-"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        exports(),
        ["context-editor.json", "context-writer.json"],
        "exports of removed roles must be deleted"
    );
    checkout.update("writer", "in_progress");
    checkout.write(file, &format!("{TASK_FILE}pipeline: [painter]\n"));
    let refused = rebuild();
    assert!(refused["warnings"].to_string().contains("changed pipeline is ignored"), "{refused}");
    for _ in 0..2 {
        let again = rebuild();
        assert_eq!(
            (&again["changed"], &again["immutable_revision"]),
            (&json!(false), &refused["immutable_revision"])
        );
        assert!(again["warnings"].to_string().contains("changed pipeline is ignored"), "{again}");
    }
}

#[test]
fn a_changed_standard_blocks_acquisition_and_is_also_drift() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    checkout.write("standards/backend.md", "## Layering Rules\n\nLayers point up.\n");
    let take = json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" });
    let hint = checkout.refused("update_agent", take.clone()).hint.unwrap();
    assert!(hint.contains("rebuild-context TASK-0824") && hint.contains("resolve-drift TASK-0824"), "{hint}");
    checkout.call("rebuild_context", json!({ "task_id": TASK }));
    assert_eq!(checkout.code("update_agent", take.clone()), ErrorCode::DriftDetected);
    checkout.call("resolve_drift", json!({ "task_id": TASK, "note": "a better standard" }));
    checkout.call("update_agent", take);
}

#[test]
fn changed_or_missing_evidence_causes_a_warning() {
    let checkout = Checkout::with_context();
    checkout.call("attach_evidence", json!({ "task_id": TASK, "type": "plan", "path": "README.md" }));
    checkout.call(
        "attach_evidence",
        json!({ "task_id": TASK, "type": "plan", "path": "README.md", "lines": "1" }),
    );
    let warnings = || checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].clone();
    assert_eq!(warnings(), json!([]));
    checkout.write("README.md", "Another plan\n");
    assert_eq!(warnings().as_array().unwrap().len(), 1, "attached lines have a stored copy");
    assert!(warnings()[0].as_str().unwrap().starts_with("README.md changed after it was attached as ev_"));
    fs::remove_file(checkout.root().join("README.md")).unwrap();
    assert!(warnings()[0].as_str().unwrap().contains("cannot be read"), "{}", warnings());
}

#[test]
fn errors_about_missing_snapshots_diffs_and_contexts_have_hints() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "x\n");
    let hint = |name: &str, params: serde_json::Value| checkout.refused(name, params).hint.unwrap();
    let validator = json!({ "task_id": TASK, "agent": "validator" });
    assert!(hint("get_diff", validator).contains("validator has recorded none"));
    let verify = json!({ "task_id": TASK, "expected_agent": "validator" });
    assert!(!hint("verify_worktree", verify).contains("snapshot-worktree"));
    let diff = ".agent-output/TASK-0824/0001-implementer-from-base.diff.gz";
    fs::remove_file(checkout.root().join(diff)).unwrap();
    let params = json!({ "task_id": TASK, "agent": "implementer" });
    assert_eq!(checkout.code("get_diff", params), ErrorCode::TaskCorrupt);
    checkout.update("implementer", "in_progress");
    checkout.write("run.log", &format!("AKIA{}\n", "IOSFODNN7EXAMPLQ"));
    let record = json!({ "task_id": TASK, "agent": "implementer", "from": "run.log" });
    let fault = checkout.refused("record_qa", record);
    assert!(fault.message.contains("aws-access-key at run.log:1"), "{}", fault.message);
    checkout.call("complete", json!({ "task_id": TASK, "force": true }));
    let fault = checkout.refused("get_context", json!({ "task_id": TASK }));
    assert!(
        fault.message.contains("its files are in .agent-output/.archive/TASK-0824@"),
        "{}",
        fault.message
    );
}
