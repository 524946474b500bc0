//! Drift: every change of the working tree after a snapshot is detected, listed and recorded.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};

const VERIFY: [&str; 4] = ["verify-worktree", TASK, "--expected-agent", "implementer"];
const REVIEW: [&str; 6] = ["update-agent", TASK, "--agent", "reviewer", "--status", "in_progress"];

/// Returns kind and path of every difference.
fn named(error: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let differences = error["details"]["differences"].as_array().unwrap();
    differences.iter().map(|difference| (text(&difference["kind"]), text(&difference["path"]))).collect()
}

/// Asserts that an edit is detected as these differences, blocks all verbs that write, and can be resolved.
fn assert_drift(edit: impl FnOnce(&Checkout), expected: &[(&str, &str)]) -> Value {
    let checkout = Checkout::implemented();
    edit(&checkout);
    let error = checkout.refused(5, &REVIEW);
    assert_eq!(error["code"], "drift_detected");
    let expected: Vec<(String, String)> =
        expected.iter().map(|(kind, path)| ((*kind).to_owned(), (*path).to_owned())).collect();
    assert_eq!(named(&error), expected, "{error:#}");
    let message = error["message"].as_str().unwrap();
    for difference in error["details"]["differences"].as_array().unwrap() {
        assert!(message.contains(difference["message"].as_str().unwrap()), "{message}");
    }
    // The same drift is recorded once, and verbs that write fail.
    assert_eq!(checkout.refused(5, &VERIFY)["details"]["drift_budget"], 1);
    for verb in [
        &REVIEW[..],
        &["snapshot-worktree", TASK, "--agent", "implementer"],
        &["mark-blocked", TASK, "--agent", "reviewer", "--finding", "x"],
        &["complete", TASK],
    ] {
        assert_eq!(checkout.refused(6, verb)["code"], "task_blocked");
    }
    checkout.task(&["get-context", TASK]);
    let resolved = checkout.task(&["resolve-drift", TASK, "--note", "it was me", "--actor", "somebody"]);
    assert_eq!((&resolved["resolved"], &resolved["snapshot"]), (&json!(1), &json!(2)));
    assert_eq!(checkout.task(&REVIEW)["verified_snapshot"], 2);
    error
}

#[test]
fn changed_content_is_drift() {
    assert_drift(
        |c| c.write("src/main.rs", "fn main() { other() }\n"),
        &[("content_changed", "src/main.rs")],
    );
}

#[test]
fn changed_content_of_the_same_size_and_second_is_drift() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { aaaa() }\n");
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout.write("src/main.rs", "fn main() { bbbb() }\n");
    assert_eq!(named(&checkout.refused(5, &REVIEW)), [("content_changed".into(), "src/main.rs".into())]);
}

#[test]
fn a_changed_mode_is_drift() {
    let executable = fs::Permissions::from_mode(0o755);
    let error = assert_drift(
        |c| fs::set_permissions(c.path("src/lib.rs"), executable).unwrap(),
        &[("mode_changed", "src/lib.rs")],
    );
    let difference = &error["details"]["differences"][0];
    assert_eq!((&difference["expected"], &difference["actual"]), (&json!("100644"), &json!("100755")));
}

#[test]
fn a_renamed_file_is_drift() {
    let error = assert_drift(
        |c| fs::rename(c.path("src/lib.rs"), c.path("src/library.rs")).unwrap(),
        &[("renamed", "src/library.rs"), ("scope_file_missing", "src/lib.rs")],
    );
    assert_eq!(error["details"]["differences"][0]["expected"], "src/lib.rs");
}

#[test]
fn added_and_removed_files_are_drift() {
    assert_drift(|c| c.write("src/new.rs", "// new\n"), &[("added", "src/new.rs")]);
    assert_drift(
        |c| fs::remove_file(c.path("src/lib.rs")).unwrap(),
        &[("removed", "src/lib.rs"), ("scope_file_missing", "src/lib.rs")],
    );
}

#[test]
fn a_file_replaced_by_a_link_is_drift() {
    assert_drift(
        |c| {
            fs::remove_file(c.path("src/lib.rs")).unwrap();
            symlink("main.rs", c.path("src/lib.rs")).unwrap();
        },
        &[("type_changed", "src/lib.rs")],
    );
}

#[test]
fn a_commit_of_the_changes_is_drift() {
    let error = assert_drift(Checkout::commit, &[("base_commit_moved", ""), ("committed", "")]);
    assert!(error["message"].as_str().unwrap().contains("working tree was committed"));
}

#[test]
fn a_moved_head_is_drift() {
    let error = assert_drift(
        |c| {
            c.git(&["commit", "--quiet", "--allow-empty", "-m", "other"]);
        },
        &[("base_commit_moved", "")],
    );
    assert!(error["message"].as_str().unwrap().contains("base commit changed"));
}

#[test]
fn a_stash_or_reset_is_drift() {
    assert_drift(
        |c| {
            c.git(&["stash", "--quiet"]);
        },
        &[("stashed", ""), ("content_changed", "src/main.rs")],
    );
    assert_drift(
        |c| {
            c.git(&["checkout", "--quiet", "."]);
        },
        &[("reset", ""), ("content_changed", "src/main.rs")],
    );
}

/// Creates a task whose implementer edited one file and created an untracked one.
fn with_a_new_file() -> Checkout {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { edited() }\n");
    checkout.write("src/new.rs", "pub fn edited() {}\n");
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout
}

#[test]
fn untracked_files_do_not_hide_a_commit_stash_or_reset() {
    type Step = &'static [&'static str];
    let main = ("content_changed", "src/main.rs");
    let steps: [(Step, &[(&str, &str)]); 5] = [
        (&["stash", "--quiet"], &[("stashed", ""), main]),
        (&["reset", "--quiet", "--hard"], &[("reset", ""), main]),
        (&["checkout", "--quiet", "."], &[("reset", ""), main]),
        (&["commit", "--quiet", "-a", "-m", "x"], &[("base_commit_moved", ""), ("committed", "")]),
        (&["commit", "--quiet", "--allow-empty", "-m", "x"], &[("base_commit_moved", "")]),
    ];
    for (step, expected) in steps {
        let checkout = with_a_new_file();
        checkout.git(step);
        let error = checkout.refused(5, &VERIFY);
        let expected: Vec<(String, String)> =
            expected.iter().map(|(kind, path)| ((*kind).to_owned(), (*path).to_owned())).collect();
        assert_eq!(named(&error), expected, "{step:?}: {error:#}");
    }
}

#[test]
fn a_change_out_of_scope_is_drift() {
    let error = assert_drift(|c| c.write("README.md", "Changed\n"), &[("content_changed", "README.md")]);
    let difference = &error["details"]["differences"][0];
    assert_eq!(difference["in_scope"], false);
    assert!(difference["message"].as_str().unwrap().ends_with("(out of scope)"));
}

#[test]
fn several_changes_are_all_listed() {
    assert_drift(
        |c| {
            c.write("src/main.rs", "fn main() { other() }\n");
            c.write("a new file", "1\n");
            c.write("README.md", "Changed\n");
            fs::set_permissions(c.path("src/lib.rs"), fs::Permissions::from_mode(0o755)).unwrap();
        },
        &[
            ("content_changed", "README.md"),
            ("added", "a new file"),
            ("mode_changed", "src/lib.rs"),
            ("content_changed", "src/main.rs"),
        ],
    );
}

#[test]
fn staged_and_ignored_changes_are_not_drift() {
    let checkout = Checkout::implemented();
    checkout.git(&["add", "src/main.rs"]);
    checkout.write(".git/info/exclude", "*.log\n");
    checkout.write("noise.log", "1\n");
    checkout.write(".agent-output/note", "1\n");
    let verified = checkout.task(&VERIFY);
    let notice = &verified["notices"][0];
    assert_eq!((&notice["kind"], &notice["path"]), (&json!("staged_only"), &json!("src/main.rs")));
    assert_eq!((&notice["expected"], &notice["actual"]), (&json!(".M"), &json!("M.")), "{verified}");
    let taken = checkout.task(&REVIEW);
    assert!(taken["warnings"].to_string().contains("only the index differs"), "{taken}");
}

#[test]
fn drift_is_detected_without_the_objects_of_the_snapshot() {
    let checkout = Checkout::implemented();
    fs::remove_dir_all(checkout.path(".agent-output/.objects")).unwrap();
    checkout.task(&VERIFY);
    checkout.write("src/main.rs", "fn main() { other() }\n");
    let error = checkout.refused(5, &VERIFY);
    assert_eq!(named(&error), [("content_changed".into(), String::new())], "{error}");
    checkout.task(&["resolve-drift", TASK, "--note", "somebody cleaned up"]);
    checkout.task(&REVIEW);
}
