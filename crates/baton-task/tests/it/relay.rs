//! A task from its beginning to its end, with rework, other pipelines and every file in its place.

use std::fs;

use baton_core::task::{Manifest, RoleStatus};
use baton_core::{ErrorCode, Sha256Hash};
use serde_json::json;

use crate::checkout::{Checkout, TASK, TASK_FILE};

#[test]
fn init_freezes_the_task_and_lists_its_sources() {
    let checkout = Checkout::new();
    let answer = checkout.call("init_context", json!({ "task_id": TASK, "actor": "runner" }));
    assert_eq!(answer["context_path"], ".agent-output/TASK-0824/context.json");
    assert_eq!(answer["summary"].as_array().unwrap().len(), 8);
    assert_eq!(checkout.read(".agent-output/.gitignore"), b"*\n", "diffs and logs belong into no commit");
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
fn the_same_checkout_makes_the_same_bytes() {
    let (one, other) = (Checkout::begun(), Checkout::begun());
    for file in ["context.json", "context.manifest", "context-reviewer.json"] {
        let path = format!(".agent-output/TASK-0824/{file}");
        assert_eq!(one.read(&path), other.read(&path), "{file}");
    }
}

#[test]
fn a_dirty_tree_and_other_tasks_warn() {
    let checkout = Checkout::begun();
    checkout.write("tasks/TASK-2.task.yaml", &TASK_FILE.replace("TASK-0824", "TASK-2"));
    checkout.write("src/main.rs", "changed\n");
    let answer = checkout.call("init_context", json!({ "task_id": "TASK-2" }));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("modified files already") && warnings.contains("TASK-0824"), "{warnings}");
}

#[test]
fn implementer_reviewer_and_validator_hand_over() {
    let checkout = Checkout::begun();
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
    assert!(!first.contains("reviewed"), "the first role took over nothing: {first}");
    checkout.update("reviewer", "done");
    checkout.work("validator", "src/new.rs", "pub fn fast() { /* validated */ }\n");
    let done = checkout.call("complete", json!({ "task_id": TASK }));
    assert!(done["archive_path"].as_str().unwrap().starts_with(".agent-output/.archive/TASK-0824@"));
    assert_eq!(checkout.code("get_context", json!({ "task_id": TASK })), ErrorCode::TaskNotFound);
}

#[test]
fn rework_goes_back_and_forth() {
    let checkout = Checkout::begun();
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
fn a_role_only_works_when_it_holds_the_task() {
    let checkout = Checkout::begun();
    checkout.write("src/main.rs", "x\n");
    for (name, params) in [
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "reviewer" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" })),
        ("update_agent", json!({ "task_id": TASK, "agent": "reviewer", "status": "done" })),
    ] {
        assert_eq!(checkout.code(name, params), ErrorCode::TaskConflict);
    }
    // The first role may begin without saying so.
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
fn rebuilding_takes_changed_files_over_and_keeps_where_roles_stand() {
    let checkout = Checkout::begun();
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
    let checkout = Checkout::begun();
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
fn a_role_reads_only_what_it_needs() {
    let checkout = Checkout::begun();
    let answer = checkout.call("get_context", json!({ "task_id": TASK, "role": "reviewer" }));
    assert!(answer["context"].is_null());
    assert!(answer["role"]["export"]["immutable"].get("validation_baseline").is_none());
    assert_eq!(answer["role"]["statuses"]["implementer"], "pending");
    let stored = checkout.read(".agent-output/TASK-0824/context-reviewer.json");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&stored).unwrap(), answer["role"]["export"]);
}

#[test]
fn an_incremental_diff_is_all_that_the_role_did() {
    let checkout = Checkout::begun();
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
    // Rework begins from what the reviewer left, however often the implementer takes a snapshot.
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
    let checkout = Checkout::begun();
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
    // A dead holder is given back first; whoever names no session then takes nobody's place.
    checkout.update("implementer", "pending");
    checkout.update("implementer", "in_progress");
    assert_eq!(checkout.call("update_agent", take("s2"))["state"]["session_id"], "s2");
}

#[test]
fn the_output_folder_is_ignored_whoever_made_it() {
    let checkout = Checkout::new();
    fs::create_dir(checkout.root().join(".agent-output")).unwrap();
    checkout.call("init_context", json!({ "task_id": TASK }));
    let ignore = checkout.root().join(".agent-output/.gitignore");
    assert_eq!(fs::read(&ignore).unwrap(), b"*\n");
    fs::remove_file(&ignore).unwrap();
    let half = checkout.root().join(".agent-output/.tmp-half");
    fs::write(&half, "*").unwrap();
    checkout.update("implementer", "in_progress");
    assert_eq!(fs::read(&ignore).unwrap(), b"*\n", "it comes back");
    assert!(!half.exists(), "and what a crash left of it goes");
    fs::write(&ignore, "!keep\n").unwrap();
    checkout.update("implementer", "pending");
    assert_eq!(fs::read(&ignore).unwrap(), b"!keep\n", "somebody's own is left alone");
}

#[test]
fn files_beside_the_context_that_are_not_as_it_says_are_named_and_written_anew() {
    let checkout = Checkout::begun();
    let folder = checkout.root().join(".agent-output/TASK-0824");
    let good = fs::read(folder.join("context.manifest")).unwrap();
    fs::write(folder.join("context-reviewer.json"), "{}").unwrap();
    for garbage in [None, Some("garbage")] {
        match garbage {
            None => fs::remove_file(folder.join("context.manifest")).unwrap(),
            Some(text) => fs::write(folder.join("context.manifest"), text).unwrap(),
        }
        let warnings = checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].to_string();
        let listed = checkout.call("list", json!({}))["tasks"][0]["warnings"].to_string();
        for said in [&warnings, &listed] {
            assert!(said.contains("TASK-0824/context.manifest is "), "{said}");
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
fn a_pipeline_is_taken_over_before_anybody_worked_and_not_afterwards() {
    let checkout = Checkout::begun();
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
        "those of no role any more are gone"
    );
    checkout.update("writer", "in_progress");
    checkout.write(file, &format!("{TASK_FILE}pipeline: [painter]\n"));
    let refused = rebuild();
    assert!(refused["warnings"].to_string().contains("stays as it was"), "{refused}");
    for _ in 0..2 {
        let again = rebuild();
        assert_eq!(
            (&again["changed"], &again["immutable_revision"]),
            (&json!(false), &refused["immutable_revision"])
        );
        assert!(again["warnings"].to_string().contains("stays as it was"), "{again}");
    }
}

#[test]
fn a_changed_standard_of_this_checkout_is_drift_too_and_the_hint_says_so() {
    let checkout = Checkout::begun();
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
fn evidence_that_changed_since_is_said() {
    let checkout = Checkout::begun();
    checkout.call("attach_evidence", json!({ "task_id": TASK, "type": "plan", "path": "README.md" }));
    checkout.call(
        "attach_evidence",
        json!({ "task_id": TASK, "type": "plan", "path": "README.md", "lines": "1" }),
    );
    let warnings = || checkout.call("get_context", json!({ "task_id": TASK }))["warnings"].clone();
    assert_eq!(warnings(), json!([]));
    checkout.write("README.md", "Another plan\n");
    assert_eq!(warnings().as_array().unwrap().len(), 1, "of lines there is a copy");
    assert!(warnings()[0].as_str().unwrap().starts_with("README.md changed after it was attached as ev_"));
    fs::remove_file(checkout.root().join("README.md")).unwrap();
    assert!(warnings()[0].as_str().unwrap().contains("cannot be read"), "{}", warnings());
}

#[test]
fn what_is_asked_for_and_not_there_is_explained() {
    let checkout = Checkout::begun();
    checkout.work("implementer", "src/main.rs", "x\n");
    let hint = |name: &str, params: serde_json::Value| checkout.refused(name, params).hint.unwrap();
    let validator = json!({ "task_id": TASK, "agent": "validator" });
    assert!(hint("get_diff", validator).contains("validator has left none"));
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
