//! Differences reported for a changed working tree.

use std::fs;

use baton_core::task::Inspector;
use baton_core::{ErrorCode, Fault};
use baton_git::{GitError, PermitAll, StatusCode};

use crate::sandbox::{Sandbox, file_letters};

fn dirty() -> Sandbox {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("b", "1\n")]);
    sandbox.write("a", "2\n");
    sandbox.write("new", "1\n");
    sandbox
}

#[test]
fn unchanged_tree_has_no_differences() {
    let sandbox = dirty();
    let differences = sandbox.differences(|sandbox| {
        // Time stamps and internal data of git do not count.
        sandbox.write("a", "2\n");
        sandbox.git(&["status"]);
        sandbox.git(&["gc", "--quiet"]);
    });
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn commit_of_all_changes_changes_no_file() {
    let (expected, verification) = dirty().verified(Sandbox::commit);
    assert!(verification.changes.is_empty(), "{:?}", verification.changes);
    let actual = &verification.current.snapshot;
    assert_ne!(expected.head.commit(), actual.head.commit());
    assert!(actual.clean && !expected.clean);
}

#[test]
fn stash_is_reported_with_the_affected_files() {
    let (expected, verification) = dirty().verified(|sandbox| {
        sandbox.git(&["stash", "--quiet", "--include-untracked"]);
    });
    assert_eq!(expected.stash, None);
    assert_eq!(verification.current.snapshot.stash.as_ref().unwrap().count, 1);
    assert_eq!(file_letters(&verification.changes), ["M a", "D new"]);
}

#[test]
fn stashes_are_counted_in_every_kind_of_repository() {
    for arguments in [&[][..], &["--ref-format=reftable"]] {
        let sandbox = Sandbox::with_arguments(arguments);
        sandbox.write("a", "1\n");
        sandbox.commit();
        for round in 0..2 {
            sandbox.write("a", format!("{round} changed\n"));
            sandbox.git(&["stash", "--quiet"]);
        }
        let stash = sandbox.repository().status(&[]).unwrap().stash.unwrap();
        assert_eq!(stash.count, 2);
        assert_eq!(stash.tip.to_string(), sandbox.git_text(&["rev-parse", "refs/stash"]));
        sandbox.git(&["stash", "clear"]);
        assert_eq!(sandbox.repository().status(&[]).unwrap().stash, None);
    }
}

#[test]
fn hard_reset_is_reported_with_the_affected_files() {
    let (_, verification) = dirty().verified(|sandbox| {
        sandbox.git(&["reset", "--quiet", "--hard"]);
        sandbox.remove("new");
    });
    assert!(verification.current.snapshot.clean);
    assert_eq!(file_letters(&verification.changes), ["M a", "D new"]);
}

#[test]
fn head_movement_changes_no_file() {
    let commands: [&[&str]; 5] = [
        &["commit", "--quiet", "--allow-empty", "-m", "x"],
        &["reset", "--quiet", "--soft", "HEAD^"],
        &["commit", "--quiet", "--amend", "--allow-empty", "-m", "other"],
        &["checkout", "--quiet", "-b", "x"],
        &["checkout", "--quiet", "--detach"],
    ];
    for command in commands {
        let sandbox = dirty();
        sandbox.git(&["commit", "--quiet", "--allow-empty", "-m", "second"]);
        let (expected, verification) = sandbox.verified(|sandbox| drop(sandbox.git(command)));
        assert!(verification.changes.is_empty(), "{command:?}: {:?}", verification.changes);
        assert_ne!(expected.head, verification.current.snapshot.head, "{command:?}");
    }
}

#[test]
fn movement_from_a_missing_commit_is_verified() {
    let (expected, verification) = dirty().verified(|sandbox| {
        sandbox.git(&["stash", "--quiet"]);
        sandbox.git(&["commit", "--quiet", "--amend", "-m", "other"]);
        sandbox.git(&["stash", "pop", "--quiet"]);
        sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
        sandbox.git(&["gc", "--quiet", "--prune=now"]);
    });
    assert!(verification.changes.is_empty(), "{:?}", verification.changes);
    assert_ne!(expected.head.commit(), verification.current.snapshot.head.commit());
}

#[test]
fn staged_only_changes_are_in_the_snapshot() {
    let sandbox = dirty();
    let staged = |between: &dyn Fn(&Sandbox)| {
        let (expected, verification) = sandbox.verified(between);
        assert!(verification.changes.is_empty(), "{:?}", verification.changes);
        (expected.staged, verification.current.snapshot.staged)
    };
    let (expected, actual) = staged(&|sandbox| drop(sandbox.git(&["add", "a"])));
    assert_eq!(expected, []);
    assert_eq!(actual[0].path.to_string(), "a");
    assert_eq!(actual[0].change, StatusCode::Modified);

    // Other content in the index with the same working tree.
    let (expected, actual) = staged(&|sandbox| {
        sandbox.write("a", "in between\n");
        sandbox.git(&["add", "a"]);
        sandbox.write("a", "2\n");
    });
    assert_ne!(expected[0].index, actual[0].index);
    let (_, actual) = staged(&|sandbox| drop(sandbox.git(&["reset", "--quiet"])));
    assert_eq!(actual, []);
}

#[test]
fn edits_renames_and_additions_are_reported_per_file() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("long", "a long line to be recognised by\n")]);
    sandbox.write("a", "2\n");
    let differences = sandbox.differences(|sandbox| {
        sandbox.write("a", "3\n");
        fs::rename(sandbox.path("long"), sandbox.path("moved")).unwrap();
        sandbox.write("added", "1\n");
    });
    assert_eq!(file_letters(&differences), ["M a", "A added", "R moved"]);
}

/// Rejects everything.
struct Closed;

impl Inspector for Closed {
    fn restart(&mut self) {}

    fn inspect(&mut self, _: &str, _: &[u8]) {}

    fn check(&self) -> Result<(), Fault> {
        Err(Fault::new(ErrorCode::SecretFound, "nothing may be stored"))
    }
}

/// Lists every file below a folder with its size.
fn stored(folder: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { open.push(entry.path()) } else { found.push((entry.path(), meta.len())) }
        }
    }
    found.sort();
    found
}

#[test]
fn withheld_files_are_reported_by_name_and_hash() {
    for attributes in ["", "*.txt text\n"] {
        let sandbox = Sandbox::with_files(&[
            (".gitattributes", attributes),
            ("a.txt", "1\n"),
            ("b", "2\n"),
            ("d/c", "3\n"),
        ]);
        sandbox.write("b", "left\n");
        let (repository, object_store) = (sandbox.repository(), sandbox.object_store());
        let expected = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
        sandbox.write("a.txt", "1\r\nedited\r\n");
        sandbox.write("b", "2\n");
        sandbox.write("new", "came\n");
        sandbox.remove("d/c");
        let before = stored(object_store.folder());
        let refused = repository.capture(&object_store, &mut Closed);
        assert!(matches!(refused, Err(GitError::Withheld)), "{refused:?}");
        let withheld = repository.verify(&object_store, &expected, &mut Closed).unwrap();
        assert_eq!(stored(object_store.folder()), before, "nothing may be stored");
        let kept = repository.verify(&object_store, &expected, &mut PermitAll).unwrap();
        assert_ne!(stored(object_store.folder()), before);
        assert_eq!(withheld.changes, kept.changes, "{attributes}");
        assert_eq!(kept.changes.len(), 4);
        assert_eq!(withheld.current.snapshot, kept.current.snapshot);
    }
}
