//! Repository, branch and commit in hook reports: the same names as for other verbs, also in linked worktrees.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::checkout::Checkout;

/// Reports a stop event in a folder and returns the resulting session.
fn session_in(checkout: &Checkout, folder: &Path, chat: &str) -> Value {
    let report = json!({ "session_id": chat, "cwd": folder, "hook_event_name": "Stop" });
    let finished = checkout.home.run_with_input(&["hook", "stop"], report.to_string().as_bytes());
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{finished:?}");
    let listed = checkout.home.run(&["session", "list", "--venture", "local", "--format", "json"]).json();
    let sessions = listed["data"]["sessions"].as_array().unwrap().clone();
    sessions.into_iter().find(|session| session["client_session_id"] == chat).unwrap()
}

/// Returns the repository name that `baton session start` uses in a folder.
fn repo_of_session_start(checkout: &Checkout, folder: &Path) -> Value {
    let mut command: Command = checkout.home.command();
    let output = command
        .current_dir(folder)
        .args(["session", "start", "--agent", "somebody", "--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let started: Value = serde_json::from_slice(&output.stdout).unwrap();
    started["data"]["session"]["repo"].clone()
}

#[test]
fn hooks_and_session_start_name_the_repository_alike() {
    let checkout = Checkout::new();
    let root = checkout.root().to_owned();
    let steps: [(&[&str], &str); 5] = [
        (&["config", "gc.auto", "0"], "local/shop"),
        (&["remote", "add", "origin", "git@github.com:acme/shop-front.git"], "acme/shop-front"),
        (&["remote", "set-url", "origin", "https://gitlab.example.com/group/sub/Shop.git/"], ""),
        (&["remote", "add", "upstream", "https://github.com/upstream/shop.git"], ""),
        (&["config", "include.path", "more.config"], ""),
    ];
    for (number, (step, expected)) in steps.iter().enumerate() {
        checkout.git(step);
        let started = repo_of_session_start(&checkout, &root);
        for (name, folder) in [("root", root.clone()), ("src", root.join("src"))] {
            let session = session_in(&checkout, &folder, &format!("{name}-{number}"));
            assert_eq!(session["repo"], started, "{step:?} in {name}");
        }
        assert!(expected.is_empty() || started == *expected, "{started} is not {expected}");
    }
}

#[test]
fn a_linked_worktree_belongs_to_the_main_repository() {
    let checkout = Checkout::new();
    let root = checkout.root().to_owned();
    let linked = checkout.home.path().join("elsewhere/shop-feature");
    checkout.git(&["worktree", "add", "--quiet", "-b", "feature", linked.to_str().unwrap()]);
    for (number, remote) in [None, Some("https://github.com/acme/shop.git")].into_iter().enumerate() {
        if let Some(url) = remote {
            checkout.git(&["remote", "add", "origin", url]);
        }
        let main = session_in(&checkout, &root, &format!("main-{number}"));
        let other = session_in(&checkout, &linked.join("src"), &format!("linked-{number}"));
        assert_eq!(main["repo"], other["repo"]);
        assert_eq!(main["repo"], repo_of_session_start(&checkout, &linked));
        assert_eq!((&main["branch"], &other["branch"]), (&"main".into(), &"feature".into()));
        let head = checkout.git(&["rev-parse", "HEAD"]);
        assert_eq!(
            (&main["commit_sha"], &other["commit_sha"]),
            (&head.as_str().into(), &head.as_str().into())
        );
    }
}

#[test]
fn file_paths_are_relative_to_the_checkout_root() {
    let checkout = Checkout::new();
    let report = json!({
        "session_id": "c", "cwd": checkout.path("src"), "tool_name": "Edit",
        "tool_input": { "file_path": checkout.path("src/lib.rs"), "old_string": "1", "new_string": "2" },
        "tool_response": {},
    });
    let finished = checkout.home.run_with_input(&["hook", "post-tool-use"], report.to_string().as_bytes());
    assert_eq!(finished.code, 0, "{finished:?}");
    let listed = checkout.home.run(&["queue", "list", "--status", "raw", "--format", "json"]).json();
    assert_eq!(listed["data"]["items"][0]["files_touched"], json!(["src/lib.rs"]));
}

#[test]
fn sessions_start_in_repositories_without_commits_damaged_or_deleted() {
    let checkout = Checkout::unborn();
    let session = session_in(&checkout, checkout.root(), "unborn");
    assert_eq!((&session["repo"], &session["branch"]), (&"local/shop".into(), &"main".into()));
    assert_eq!(session["commit_sha"], Value::Null);
    std::fs::write(checkout.path(".git/HEAD"), b"\xff\xfe").unwrap();
    std::fs::write(checkout.path(".git/config"), b"[[[").unwrap();
    let session = session_in(&checkout, checkout.root(), "damaged");
    assert_eq!(session["repo"], "local/shop");
    let session = session_in(&checkout, &checkout.path("gone/away"), "gone");
    assert!(session["repo"].is_string());
}
