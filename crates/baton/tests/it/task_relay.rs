//! A task from role to role on a real repository, with every verb, and the effects on the repository.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};

#[test]
fn a_task_passes_through_all_roles_with_every_verb() {
    let checkout = Checkout::new();
    let base = checkout.git(&["rev-parse", "HEAD"]);
    let begun = checkout.task(&["init-context", TASK, "--base-commit", "HEAD", "--actor", "runner"]);
    assert_eq!((&begun["base_commit"], &begun["warnings"]), (&json!(base), &json!([])));
    assert_eq!(begun["pipeline"], json!(["implementer", "reviewer", "validator"]));
    assert_eq!(checkout.refused(4, &["init-context", TASK])["code"], "task_exists");

    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() {\n    fast();\n}\n");
    checkout.write("src/fast.rs", "pub fn fast() {}\n");
    checkout.write("qa.log", "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
    let quality = checkout.task(&["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"]);
    assert_eq!(quality["runs"][0]["passed"], 12);
    fs::remove_file(checkout.path("qa.log")).unwrap();
    let evidence =
        checkout.task(&["attach-evidence", TASK, "--type", "plan", "--path", "src/lib.rs", "--lines", "1-3"]);
    assert!(evidence["evidence"]["id"].as_str().unwrap().starts_with("ev_"));
    let first = checkout.snapshot("implementer");
    assert_eq!((&first["sequence"], &first["diff_stat"]), (&json!(1), &json!("+4 -1")));
    assert_eq!(first["files_changed"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!(first["base_commit"], base);
    checkout.update("implementer", "done");

    let verified = checkout.task(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
    assert_eq!((&verified["snapshot"], &verified["notices"]), (&json!(1), &json!([])));
    let taken = checkout.update("reviewer", "in_progress");
    assert_eq!(taken["verified_snapshot"], 1);
    assert_eq!(taken["next"], format!("baton task get-context {TASK} --role reviewer"));
    let diff = checkout.task(&["get-diff", TASK, "--agent", "implementer", "--content"]);
    let text = diff["content"].as_str().unwrap();
    assert!(text.contains("+    fast();") && text.contains("new file mode 100644"), "{text}");
    let role = checkout.task(&["get-context", TASK, "--role", "reviewer"]);
    assert!(role["context"].is_null() && role["role"].is_object());

    // The reviewer blocks the task, the implementer fixes it, the reviewer continues.
    checkout.task(&["mark-blocked", TASK, "--agent", "reviewer", "--finding", "src/fast.rs: is slow"]);
    checkout.work("implementer", "fn main() {\n    faster();\n}\n");
    checkout.update("reviewer", "in_progress");
    checkout.write("src/fast.rs", "pub fn faster() {}\n");
    let second = checkout.snapshot("reviewer");
    assert_eq!((&second["sequence"], &second["previous_agent"]), (&json!(3), &json!("implementer")));
    checkout.update("reviewer", "done");
    let increment =
        checkout.task(&["get-diff", TASK, "--agent", "reviewer", "--type", "incremental", "--content"]);
    let text = increment["content"].as_str().unwrap();
    assert!(text.contains("+pub fn faster() {}") && !text.contains("src/main.rs"), "{text}");

    checkout.work("validator", "fn main() {\n    faster();\n}\n");
    let context = checkout.context();
    assert_eq!(context["coordination"]["reviewer"]["resolved_findings"], json!(["src/fast.rs: is slow"]));
    assert_eq!(context["snapshots"].as_array().unwrap().len(), 4);
    assert!(checkout.path(".agent-output/.objects").is_dir());
    // A rebuild adds a new file that matches the scope pattern.
    assert_eq!(context["immutable"]["repo_paths"], json!(["src/lib.rs", "src/main.rs"]));
    assert_eq!(checkout.task(&["rebuild-context", TASK])["changed"], true);
    let scope = checkout.context()["immutable"]["repo_paths"].clone();
    assert_eq!(scope, json!(["src/fast.rs", "src/lib.rs", "src/main.rs"]));

    let done = checkout.task(&["complete", TASK]);
    assert!(checkout.path(done["archive_path"].as_str().unwrap()).join("context.json").is_file());
    assert!(!checkout.path(".agent-output/.objects").exists(), "unused objects must be removed");
    assert_eq!(checkout.task(&["list"])["tasks"], json!([]));
    assert_eq!(checkout.task(&["list", "--archived"])["tasks"][0]["task_id"], TASK);
    assert_eq!(checkout.task(&["sweep-contexts", "--ttl", "1h"])["swept"], json!([]));
    assert_eq!(checkout.task(&["purge-context", TASK])["purged"], false);
}

#[test]
fn text_output_describes_verification_and_drift() {
    let checkout = Checkout::implemented();
    let human = |arguments: &[&str]| {
        let finished = checkout.home.run(&[&["task"], arguments].concat());
        assert_eq!(finished.code, 0, "{finished:?}");
        finished.stdout
    };
    assert!(
        human(&["verify-worktree", TASK, "--expected-agent", "implementer"])
            .contains("the working tree matches snapshot")
    );
    assert!(human(&["list"]).contains("TASK-0824  Faster settings  implementer done"));
    checkout.write("src/main.rs", "fn main() { /* not mine */ }\n");
    let finished = checkout.home.run(&["task", "verify-worktree", TASK, "--expected-agent", "implementer"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (5, ""));
    assert!(finished.stderr.contains("src/main.rs: expected SHA"), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("next: show it with baton task get-diff TASK-0824 --type drift --content"),
        "{}",
        finished.stderr
    );
}

#[test]
fn text_output_lists_evidence_drifts_failures_and_sweeps() {
    let checkout = Checkout::implemented();
    let human = |arguments: &[&str]| {
        let finished = checkout.home.run(&[&["task"], arguments].concat());
        assert_eq!(finished.code, 0, "{finished:?}");
        finished.stdout
    };
    checkout.task(&["attach-evidence", TASK, "--type", "plan", "--path", "README.md"]);
    checkout.write("src/main.rs", "fn main() { /* not mine */ }\n");
    checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    for arguments in [&["get-context", TASK][..], &["get-context", TASK, "--role", "reviewer"]] {
        let text = human(arguments);
        for part in [
            "\nscope:\n  src/**/*.rs\nexisting files in scope:\n  src/lib.rs\n",
            "evidence:\n  ev_",
            "plan  README.md",
            "drifts:\n  found ",
            "src/main.rs: expected SHA",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    checkout.write("qa.log", "FAILED t.py::a - it is wrong\n1 failed, 3 passed in 0.1s\n");
    checkout.task(&["resolve-drift", TASK, "--note", "it was me"]);
    checkout.update("implementer", "in_progress");
    let text = human(&["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"]);
    assert!(text.contains("pytest: 3 passed, 1 failed, 0 skipped, 0 errors, 0 warnings"), "{text}");
    assert!(text.contains("  t.py::a in t.py: it is wrong"), "{text}");
    assert!(text.starts_with("failed\n") && !text.contains("baseline"), "{text}");
    let dry = ["sweep-contexts", "--ttl", "0s", "--all", "--dry-run", "--actor", "cleaner"];
    assert_eq!(human(&dry), "would archive TASK-0824\nnext: baton task list\n");
    assert_eq!(
        human(&["sweep-contexts", "--ttl", "0s", "--all"]),
        "archived TASK-0824\nnext: baton task list\n"
    );
    assert_eq!(
        human(&["purge-context", TASK, "--actor", "cleaner"]),
        "TASK-0824 had nothing to purge\nnext: baton task list\n"
    );
}

#[test]
fn init_does_not_warn_about_staged_files() {
    let checkout = Checkout::new();
    checkout.write("src/main.rs", "fn main() { staged() }\n");
    checkout.git(&["add", "src/main.rs"]);
    assert_eq!(checkout.task(&["init-context", TASK])["warnings"], json!([]));
    checkout.write("src/main.rs", "fn main() { and_edited() }\n");
    let warnings = checkout.task(&["init-context", "TASK-0825"])["warnings"].to_string();
    assert!(warnings.contains("modified files already"), "{warnings}");
}

#[test]
fn several_tasks_in_one_checkout_cause_warnings_and_keep_objects() {
    let checkout = Checkout::implemented();
    let other = checkout.task(&["init-context", "TASK-0825"]);
    assert!(
        other["warnings"].to_string().contains("other tasks have a context in this checkout (TASK-0824)")
    );
    let warned = checkout.home.run(&[
        "task",
        "update-agent",
        "TASK-0825",
        "--agent",
        "implementer",
        "--status",
        "in_progress",
    ]);
    assert!(warned.stderr.contains("1 other task has a context"), "{warned:?}");
    checkout.task(&["purge-context", "TASK-0825"]);
    assert!(checkout.path(".agent-output/.objects").is_dir());
    checkout.task(&["purge-context", TASK]);
    assert!(!checkout.path(".agent-output/.objects").exists());
}

#[test]
fn unused_objects_are_removed_with_their_context() {
    let checkout = Checkout::implemented();
    let packs = || fs::read_dir(checkout.path(".agent-output/.objects/objects/pack")).unwrap().count();
    let of_first = packs();
    for (verb, task) in
        [("purge-context", "TASK-0831"), ("complete", "TASK-0832"), ("sweep-contexts", "TASK-0833")]
    {
        let file = format!("tasks/{task}-other.task.yaml");
        let text = fs::read_to_string(checkout.path("tasks/TASK-0824-settings.task.yaml")).unwrap();
        let before = fs::read_to_string(checkout.path("src/main.rs")).unwrap();
        checkout.write(&file, &text.replace("Faster settings", task));
        checkout.task(&["init-context", task]);
        checkout.task(&["update-agent", task, "--agent", "implementer", "--status", "in_progress"]);
        checkout.write("src/main.rs", &format!("// only {task} needs this\n"));
        checkout.task(&["snapshot-worktree", task, "--agent", "implementer"]);
        assert!(packs() > of_first, "{verb}");
        checkout.write("src/main.rs", &before);
        fs::remove_file(checkout.path(&file)).unwrap();
        match verb {
            "complete" => checkout.task(&[verb, task, "--force"]),
            "sweep-contexts" => checkout.task(&[verb, "--ttl", "0s"]),
            _ => checkout.task(&[verb, task]),
        };
        assert_eq!(packs(), of_first, "{verb}");
    }
    checkout.task(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
    checkout.write("src/main.rs", "fn main() {}\n");
    let error = checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    assert_eq!(error["details"]["differences"][0]["kind"], "reset", "{error}");
    assert_eq!(error["details"]["differences"][1]["path"], "src/main.rs", "{error}");
}

#[test]
fn tasks_work_before_the_first_commit_and_with_a_detached_head() {
    let checkout = Checkout::unborn();
    assert_eq!(checkout.task(&["init-context", TASK])["base_commit"], Value::Null);
    checkout.work("implementer", "fn main() { one() }\n");
    assert_eq!(checkout.update("reviewer", "in_progress")["verified_snapshot"], 1);
    checkout.task(&["purge-context", TASK]);

    checkout.commit();
    checkout.git(&["checkout", "--quiet", "--detach"]);
    checkout.task(&["init-context", TASK]);
    let git = checkout.context()["git"].clone();
    assert_eq!((&git["branch"], &git["head"]), (&Value::Null, &json!(checkout.git(&["rev-parse", "HEAD"]))));
    checkout.work("implementer", "fn main() { two() }\n");
    checkout.update("reviewer", "in_progress");
}

#[test]
fn a_linked_worktree_has_its_own_tasks() {
    let checkout = Checkout::with_context();
    checkout.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = checkout.home.path().join("linked");
    let run = |arguments: &[&str]| {
        let output =
            checkout.home.command().current_dir(&linked).arg("task").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run(&["list"]).contains("no task has a context here"));
    run(&["init-context", TASK]);
    run(&["update-agent", TASK, "--agent", "implementer", "--status", "in_progress"]);
    fs::write(linked.join("src/main.rs"), "fn main() { three() }\n").unwrap();
    run(&["snapshot-worktree", TASK, "--agent", "implementer"]);
    assert!(
        run(&["verify-worktree", TASK, "--expected-agent", "implementer"])
            .contains("the working tree matches snapshot")
    );
    assert_eq!(checkout.context()["snapshots"], json!([]), "the first checkout must not change");
}

#[test]
fn nested_repositories_are_reported_and_not_captured() {
    let checkout = Checkout::new();
    checkout.git(&["clone", "--quiet", ".", "../part"]);
    checkout.git(&["submodule", "--quiet", "add", "../part", "part"]);
    checkout.git(&["clone", "--quiet", ".", "../elsewhere"]);
    fs::rename(checkout.home.path().join("elsewhere"), checkout.path("stray")).unwrap();
    checkout.task(&["init-context", TASK]);
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { four() }\n");
    let taken = checkout.task(&["snapshot-worktree", TASK, "--agent", "implementer"]);
    let warnings = taken["warnings"].to_string();
    assert!(warnings.contains("part is a submodule"), "{warnings}");
    assert!(warnings.contains("stray is an embedded repository"), "{warnings}");
    checkout.update("implementer", "done");
    // A new commit in the submodule changes the tree.
    checkout.git(&["-C", "part", "commit", "--quiet", "--allow-empty", "-m", "x"]);
    let error = checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    assert_eq!(error["details"]["differences"][0]["path"], "part", "{error}");
}

/// Returns content and modification time of every file in a folder, except Baton's own files.
fn files_with_times(root: &Path) -> BTreeMap<PathBuf, (i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if meta.is_dir() {
                if path != root.join(".agent-output") {
                    folders.push(path);
                }
            } else {
                let content = fs::read(&path).unwrap_or_default();
                all.insert(path, (meta.mtime(), meta.mtime_nsec(), content));
            }
        }
    }
    all
}

#[test]
fn task_verbs_do_not_change_the_repository_of_the_user() {
    let checkout = Checkout::new();
    // An outdated index, a stash, a staged file and an untracked file.
    checkout.write("README.md", "Set aside\n");
    checkout.git(&["stash", "--quiet"]);
    checkout.write("src/main.rs", "fn main() { staged() }\n");
    checkout.git(&["add", "src/main.rs"]);
    checkout.write("src/main.rs", "fn main() { unstaged() }\n");
    checkout.write("src/lib.rs", &fs::read_to_string(checkout.path("src/lib.rs")).unwrap());
    checkout.write("untracked.txt", "1\n");
    let before = files_with_times(checkout.root());
    checkout.task(&["init-context", TASK]);
    checkout.update("implementer", "in_progress");
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout.task(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
    checkout.update("reviewer", "in_progress");
    checkout.snapshot("reviewer");
    checkout.task(&["get-diff", TASK, "--agent", "reviewer", "--content"]);
    checkout.task(&["list"]);
    checkout.task(&["complete", TASK, "--force"]);
    assert_eq!(files_with_times(checkout.root()), before);
}
