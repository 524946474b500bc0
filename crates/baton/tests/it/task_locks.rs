//! Long work on one task does not block the other tasks of a checkout.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use baton_testkit::processes::wait_until;

use crate::checkout::{Checkout, TASK};

const OTHER: &str = "TASK-0825";

/// Writes a program `git` that creates `reached` and blocks in `git status` until `gate` is removed.
fn write_blocking_git(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\nfor word; do if [ \"$word\" = status ]; then\n\
         touch '{0}/reached'; while [ -e '{0}/gate' ]; do sleep 0.02; done\nfi; done\nexec git \"$@\"\n",
        folder.display()
    );
    fs::write(folder.join("git"), script).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("gate"), "").unwrap();
}

/// Starts a verb that blocks while it reads the working tree, until the gate is removed.
fn start_blocked(checkout: &Checkout, folder: &Path, arguments: &[&str]) -> Child {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = checkout.home.command();
    command.env("PATH", path).arg("task").args(arguments);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(&format!("{arguments:?} reads the working tree"), || folder.join("reached").exists());
    child
}

#[test]
fn reading_a_large_tree_does_not_block_other_tasks() {
    let checkout = Checkout::with_context();
    checkout.task(&["init-context", OTHER]);
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    let verbs: [&[&str]; 2] = [
        &["snapshot-worktree", TASK, "--agent", "implementer"],
        &["update-agent", TASK, "--agent", "implementer", "--status", "done"],
    ];
    for (number, verb) in verbs.into_iter().enumerate() {
        let folder = checkout.home.path().join(format!("stopping-git-{number}"));
        write_blocking_git(&folder);
        let child = start_blocked(&checkout, &folder, verb);
        checkout.task(&["note", OTHER, "--agent", "implementer", "meanwhile"]);
        checkout.task(&["update-agent", OTHER, "--agent", "implementer", "--status", "in_progress"]);
        checkout.task(&["update-agent", OTHER, "--agent", "implementer", "--status", "pending"]);
        assert_eq!(checkout.task(&["list"])["tasks"].as_array().unwrap().len(), 2);
        fs::remove_file(folder.join("gate")).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // The purge of another task must not remove the objects of this snapshot.
    checkout.task(&["purge-context", OTHER]);
    checkout.task(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
}

#[test]
fn objects_of_an_unfinished_snapshot_are_not_swept() {
    let checkout = Checkout::with_context();
    checkout.task(&["init-context", OTHER]);
    checkout.task(&["update-agent", OTHER, "--agent", "implementer", "--status", "in_progress"]);
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    checkout.task(&["snapshot-worktree", OTHER, "--agent", "implementer"]);
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { faster(); }\n");
    let folder = checkout.home.path().join("stopping-git");
    write_blocking_git(&folder);
    let child = start_blocked(&checkout, &folder, &["snapshot-worktree", TASK, "--agent", "implementer"]);
    checkout.task(&["purge-context", OTHER]);
    fs::remove_file(folder.join("gate")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    checkout.update("implementer", "done");
    checkout.task(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
    let diff = checkout.task(&["get-diff", TASK, "--agent", "implementer", "--content"]);
    assert!(diff["content"].as_str().unwrap().contains("faster"), "{diff}");
}
