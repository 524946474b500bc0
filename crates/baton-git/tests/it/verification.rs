//! Differences reported for a changed working tree.

use std::fs;

use baton_git::{Difference, GitError, HeadMovement, Inspector, RepoPath, StatusCode, Verification};

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
fn commit_of_all_changes_is_reported() {
    let differences = dirty().differences(Sandbox::commit);
    let [Difference::HeadMoved { movement, expected, actual }, Difference::Committed { commit }] =
        &differences[..]
    else {
        panic!("{differences:?}")
    };
    assert_eq!(*movement, HeadMovement::Forward);
    assert_ne!(expected.commit(), actual.commit());
    assert_eq!(Some(*commit), actual.commit());
}

#[test]
fn stash_is_reported_with_the_affected_files() {
    let differences = dirty().differences(|sandbox| {
        sandbox.git(&["stash", "--quiet", "--include-untracked"]);
    });
    let stashed = differences.iter().find_map(|difference| match difference {
        Difference::Stashed { expected, actual } => Some((expected.clone(), actual.clone())),
        _ => None,
    });
    let (expected, actual) = stashed.unwrap();
    assert_eq!(expected, None);
    assert_eq!(actual.unwrap().count, 1);
    assert_eq!(file_letters(&differences), ["M a", "D new"]);
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
fn hard_reset_is_reported_as_discarded() {
    let differences = dirty().differences(|sandbox| {
        sandbox.git(&["reset", "--quiet", "--hard"]);
        sandbox.remove("new");
    });
    assert!(differences.contains(&Difference::Discarded), "{differences:?}");
    assert_eq!(file_letters(&differences), ["M a", "D new"]);
}

#[test]
fn head_movement_is_reported_with_its_kind() {
    let movement = |between: &dyn Fn(&Sandbox)| {
        let sandbox = dirty();
        sandbox.git(&["commit", "--quiet", "--allow-empty", "-m", "second"]);
        let differences = sandbox.differences(between);
        assert!(file_letters(&differences).is_empty(), "{differences:?}");
        differences.iter().find_map(|difference| match difference {
            Difference::HeadMoved { movement, .. } => Some(*movement),
            _ => None,
        })
    };
    let git = |arguments: &'static [&'static str]| {
        move |sandbox: &Sandbox| {
            sandbox.git(arguments);
        }
    };
    let empty = git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
    assert_eq!(movement(&empty), Some(HeadMovement::Forward));
    assert_eq!(movement(&git(&["reset", "--quiet", "--soft", "HEAD^"])), Some(HeadMovement::Backward));
    let amend = git(&["commit", "--quiet", "--amend", "--allow-empty", "-m", "other"]);
    assert_eq!(movement(&amend), Some(HeadMovement::Sideways));
    assert_eq!(movement(&git(&["checkout", "--quiet", "-b", "x"])), Some(HeadMovement::OtherBranch));
    assert_eq!(movement(&git(&["checkout", "--quiet", "--detach"])), Some(HeadMovement::OtherBranch));
}

#[test]
fn movement_from_a_missing_commit_is_reported() {
    let differences = dirty().differences(|sandbox| {
        sandbox.git(&["stash", "--quiet"]);
        sandbox.git(&["commit", "--quiet", "--amend", "-m", "other"]);
        sandbox.git(&["stash", "pop", "--quiet"]);
        sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
        sandbox.git(&["gc", "--quiet", "--prune=now"]);
    });
    assert!(
        matches!(differences[..], [Difference::HeadMoved { movement: HeadMovement::Sideways, .. }]),
        "{differences:?}"
    );
}

#[test]
fn staged_only_changes_are_reported() {
    let sandbox = dirty();
    let differences = sandbox.differences(|sandbox| {
        sandbox.git(&["add", "a"]);
    });
    let [Difference::Staged { path, expected, actual }] = &differences[..] else { panic!("{differences:?}") };
    assert_eq!(path.to_string(), "a");
    assert_eq!(*expected, None);
    assert_eq!(actual.as_ref().unwrap().change, StatusCode::Modified);

    // Other content in the index with the same working tree.
    let differences = sandbox.differences(|sandbox| {
        sandbox.write("a", "in between\n");
        sandbox.git(&["add", "a"]);
        sandbox.write("a", "2\n");
    });
    assert!(matches!(differences[..], [Difference::Staged { expected: Some(_), actual: Some(_), .. }]));
    let differences = sandbox.differences(|sandbox| {
        sandbox.git(&["reset", "--quiet"]);
    });
    assert!(matches!(differences[..], [Difference::Staged { expected: Some(_), actual: None, .. }]));
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
    let untracked: Vec<bool> = differences
        .iter()
        .filter_map(|difference| match difference {
            Difference::File { untracked, .. } => Some(*untracked),
            _ => None,
        })
        .collect();
    assert_eq!(untracked, [false, true, true]);
    let text = serde_json::to_string(&differences).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Difference>>(&text).unwrap(), differences);
}

/// Rejects everything.
struct Closed;

impl Inspector for Closed {
    fn begin(&mut self) {}

    fn look(&mut self, _: &RepoPath, _: &[u8]) {}

    fn permits(&mut self) -> bool {
        false
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
        let (repository, vault) = (sandbox.repository(), sandbox.vault());
        let expected = repository.capture(&vault).unwrap().snapshot().clone();
        sandbox.write("a.txt", "1\r\nedited\r\n");
        sandbox.write("b", "2\n");
        sandbox.write("new", "came\n");
        sandbox.remove("d/c");
        let before = stored(vault.folder());
        let refused = repository.capture_inspected(&vault, &mut Closed);
        assert!(matches!(refused, Err(GitError::Withheld)), "{refused:?}");
        let withheld = repository.verify_inspected(&vault, &expected, &mut Closed).unwrap();
        assert_eq!(stored(vault.folder()), before, "nothing may be stored");
        let kept = repository.verify(&vault, &expected).unwrap();
        assert_ne!(stored(vault.folder()), before);
        let told = |verification: &Verification| -> Vec<_> {
            let files = verification.differences.iter().filter_map(|difference| match difference {
                Difference::File { change, .. } => {
                    Some((change.path.clone(), change.kind, change.before, change.after))
                }
                _ => None,
            });
            files.collect()
        };
        assert_eq!(told(&withheld), told(&kept), "{attributes}");
        assert_eq!(told(&kept).len(), 4);
        assert_eq!(withheld.present.snapshot(), kept.present.snapshot());
    }
}
