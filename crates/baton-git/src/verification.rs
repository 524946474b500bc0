//! Verification of a working tree against a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Keep, Withheld};
use crate::changes::FileChange;
use crate::error::GitError;
use crate::head::Head;
use crate::inspector::{Inspector, PermitAll};
use crate::nested::NestedRepository;
use crate::object::{FileMode, ObjectId};
use crate::path::RepoPath;
use crate::repository::Repository;
use crate::snapshot::{Snapshot, StagedChange, TreeFile};
use crate::stash::Stash;
use crate::status::StatusSide;
use crate::vault::Vault;

/// Result of a verification.
#[derive(Debug)]
pub struct Verification {
    /// Current state of the working tree. Its objects are in the vault if the tree differs and the inspector permitted
    /// it.
    pub present: Capture,
    /// All differences.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Returns true if there are no differences.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// A difference between a snapshot and the current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum Difference {
    /// `HEAD` differs, so all changes have another base.
    HeadMoved {
        /// Previous `HEAD`.
        expected: Head,
        /// Current `HEAD`.
        actual: Head,
        /// Kind of the movement.
        movement: HeadMovement,
    },
    /// The changes, or some of them, were committed.
    Committed {
        /// The new commit.
        commit: ObjectId,
    },
    /// The changes were stashed: the working tree and the stash differ.
    Stashed {
        /// Previous stash.
        expected: Option<Stash>,
        /// Current stash.
        actual: Option<Stash>,
    },
    /// The changes were discarded without a commit or a stash.
    Discarded,
    /// A file differs in content, mode, type or name, or was added or deleted.
    File {
        /// Previous (`before`) and current (`after`) content.
        change: FileChange,
        /// Whether the current file is untracked.
        untracked: bool,
    },
    /// A nested repository has another commit, or was added or removed.
    NestedMoved {
        /// Path of the nested repository.
        path: RepoPath,
        /// Previous state.
        expected: Option<NestedRepository>,
        /// Current state.
        actual: Option<NestedRepository>,
    },
    /// The staged content differs, regardless of the working tree.
    Staged {
        /// The path.
        path: RepoPath,
        /// Previously staged; `None` if the index equalled `HEAD`.
        expected: Option<StagedChange>,
        /// Currently staged; `None` if the index equals `HEAD`.
        actual: Option<StagedChange>,
    },
    /// The sparse checkout now omits a file that it did not omit, or vice versa.
    CheckedOut {
        /// The path.
        path: RepoPath,
        /// Whether the file was checked out.
        expected: bool,
        /// Whether the file is checked out.
        actual: bool,
    },
}

/// How `HEAD` moved from one commit to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadMovement {
    /// The same commit on another branch, or on none.
    OtherBranch,
    /// To a descendant: a commit, a merge, a pull.
    Forward,
    /// To an ancestor: a reset.
    Backward,
    /// To an unrelated commit: a rebase, an amended commit, another branch.
    Sideways,
}

impl Repository {
    /// Compares the working tree with a snapshot whose objects are in the vault.
    ///
    /// # Errors
    ///
    /// As [`Repository::capture`].
    pub fn verify(&self, vault: &Vault, expected: &Snapshot) -> Result<Verification, GitError> {
        self.verify_inspected(vault, expected, &mut PermitAll)
    }

    /// Like [`verify`](Self::verify), but stores nothing that the inspector rejects. Differences are then known only by
    /// name and hash, so a rename is reported as a deletion and an addition.
    ///
    /// # Errors
    ///
    /// As [`Repository::capture`].
    pub fn verify_inspected(
        &self,
        vault: &Vault,
        expected: &Snapshot,
        inspector: &mut dyn Inspector,
    ) -> Result<Verification, GitError> {
        let present = self.capture_keeping(vault, Keep::ObjectsUnless(expected.tree), inspector)?;
        let actual = present.snapshot();
        let mut differences = Vec::new();
        let movement = movement(vault, &expected.head, &actual.head)?;
        if let Some(movement) = movement {
            let (expected, actual) = (expected.head.clone(), actual.head.clone());
            differences.push(Difference::HeadMoved { expected, actual, movement });
        }
        let same_tree = expected.tree == actual.tree;
        differences.extend(outcome_of_changes(expected, actual, movement));
        if !same_tree {
            differences.extend(files(vault, expected, &present)?);
        }
        differences.extend(nested(expected, actual));
        if expected.head.commit() == actual.head.commit() {
            differences.extend(staged(expected, actual));
        }
        if expected.not_checked_out != actual.not_checked_out {
            differences.extend(checked_out(vault, expected, actual)?);
        }
        Ok(Verification { present, differences })
    }
}

fn movement(vault: &Vault, expected: &Head, actual: &Head) -> Result<Option<HeadMovement>, GitError> {
    if expected == actual {
        return Ok(None);
    }
    let (Some(from), Some(to)) = (expected.commit(), actual.commit()) else {
        let moved = match (expected.commit(), actual.commit()) {
            (None, Some(_)) => HeadMovement::Forward,
            (None, None) => HeadMovement::OtherBranch,
            _ => HeadMovement::Sideways,
        };
        return Ok(Some(moved));
    };
    if from == to {
        return Ok(Some(HeadMovement::OtherBranch));
    }
    let leads = |from: ObjectId, to: ObjectId| {
        let arguments = ["--is-ancestor".to_owned(), from.to_string(), to.to_string()];
        // The call also fails if a commit no longer exists.
        vault.call("merge-base").arguments(arguments).attempt().map(|(_, ended)| ended.status.success())
    };
    Ok(Some(if leads(from, to)? {
        HeadMovement::Forward
    } else if leads(to, from)? {
        HeadMovement::Backward
    } else {
        HeadMovement::Sideways
    }))
}

/// Returns what happened to the uncommitted changes.
fn outcome_of_changes(
    expected: &Snapshot,
    actual: &Snapshot,
    movement: Option<HeadMovement>,
) -> Option<Difference> {
    if expected.clean {
        return None;
    }
    let same_tree = expected.tree == actual.tree;
    let commit = actual.head.commit().filter(|_| movement == Some(HeadMovement::Forward));
    if let Some(commit) = commit.filter(|_| same_tree || actual.clean) {
        return Some(Difference::Committed { commit });
    }
    if !same_tree && expected.stash != actual.stash && actual.stash.is_some() {
        let (expected, actual) = (expected.stash.clone(), actual.stash.clone());
        return Some(Difference::Stashed { expected, actual });
    }
    (actual.clean && movement.is_none()).then_some(Difference::Discarded)
}

fn files(vault: &Vault, expected: &Snapshot, present: &Capture) -> Result<Vec<Difference>, GitError> {
    let changes = match present.withheld() {
        None => vault.raw_differences(expected, present.snapshot())?.files,
        Some(withheld) => unstored(vault, expected, present, withheld)?,
    };
    let untracked: BTreeSet<&RepoPath> =
        present.files().iter().filter(|file| !file.tracked).map(|file| &file.path).collect();
    let nested = |change: &FileChange| {
        [change.before, change.after].iter().flatten().all(|content| content.mode == FileMode::Nested)
    };
    let files = changes.into_iter().filter(|change| !nested(change)).map(|change| Difference::File {
        untracked: change.after.is_some() && untracked.contains(&change.path),
        change,
    });
    Ok(files.collect())
}

/// Returns the differences from a tree that is not stored.
fn unstored(
    vault: &Vault,
    expected: &Snapshot,
    present: &Capture,
    withheld: &Withheld,
) -> Result<Vec<FileChange>, GitError> {
    let side = |file: &TreeFile| StatusSide { mode: file.mode, id: file.id };
    let actual = present.files().iter().map(|file| (file.path.clone(), side(file))).collect();
    let differing: Vec<_> = pairs(vault.listing(expected.tree)?, actual).collect();
    let sizes: BTreeMap<&RepoPath, u64> =
        present.files().iter().map(|file| (&file.path, file.size_bytes)).collect();
    vault.described(differing, |path| {
        withheld.get(path).map(|hash| (sizes.get(path).copied().unwrap_or_default(), *hash))
    })
}

fn nested(expected: &Snapshot, actual: &Snapshot) -> Vec<Difference> {
    let by_path = |snapshot: &Snapshot| -> BTreeMap<RepoPath, NestedRepository> {
        snapshot.nested.iter().map(|nested| (nested.path.clone(), nested.clone())).collect()
    };
    pairs(by_path(expected), by_path(actual))
        .map(|(path, expected, actual)| Difference::NestedMoved { path, expected, actual })
        .collect()
}

fn staged(expected: &Snapshot, actual: &Snapshot) -> Vec<Difference> {
    let by_path = |snapshot: &Snapshot| -> BTreeMap<RepoPath, StagedChange> {
        snapshot.staged.iter().map(|staged| (staged.path.clone(), staged.clone())).collect()
    };
    pairs(by_path(expected), by_path(actual))
        .map(|(path, expected, actual)| Difference::Staged { path, expected, actual })
        .collect()
}

/// Returns the keys with different values in two maps.
fn pairs<V: PartialEq>(
    expected: BTreeMap<RepoPath, V>,
    mut actual: BTreeMap<RepoPath, V>,
) -> impl Iterator<Item = (RepoPath, Option<V>, Option<V>)> {
    let mut all: BTreeMap<RepoPath, (Option<V>, Option<V>)> = BTreeMap::new();
    for (path, value) in expected {
        let other = actual.remove(&path);
        all.insert(path, (Some(value), other));
    }
    for (path, value) in actual {
        all.insert(path, (None, Some(value)));
    }
    all.into_iter()
        .filter(|(_, (expected, actual))| expected != actual)
        .map(|(path, (expected, actual))| (path, expected, actual))
}

fn checked_out(vault: &Vault, expected: &Snapshot, actual: &Snapshot) -> Result<Vec<Difference>, GitError> {
    let list = |id: Option<ObjectId>| -> Result<BTreeSet<RepoPath>, GitError> {
        let Some(id) = id else { return Ok(BTreeSet::new()) };
        let output = vault.call("cat-file").arguments(["blob".to_owned(), id.to_string()]).output()?;
        let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(RepoPath::new).collect())
    };
    let (before, now) = (list(expected.not_checked_out)?, list(actual.not_checked_out)?);
    let differing = before.symmetric_difference(&now).map(|path| Difference::CheckedOut {
        path: path.clone(),
        expected: !before.contains(path),
        actual: !now.contains(path),
    });
    Ok(differing.collect())
}
