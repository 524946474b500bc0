//! Whether a working tree is still what a snapshot says, and what is different if not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Keep, Withheld};
use crate::changes::FileChange;
use crate::error::GitError;
use crate::head::Head;
use crate::inspector::{Inspector, Unasked};
use crate::nested::NestedRepository;
use crate::object::{FileMode, ObjectId};
use crate::path::RepoPath;
use crate::repository::Repository;
use crate::snapshot::{Snapshot, StagedChange, TreeFile};
use crate::stash::Stash;
use crate::status::StatusSide;
use crate::vault::Vault;

/// The answer to whether a working tree is what a snapshot says.
#[derive(Debug)]
pub struct Verification {
    /// The working tree as it is. Its objects are in the vault if the tree is not the expected one and nobody withheld
    /// it.
    pub present: Capture,
    /// Everything that is different.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Whether nothing at all is different.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// One difference between a snapshot and the present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum Difference {
    /// The checkout stands elsewhere: the base of all changes moved.
    HeadMoved {
        /// Where it stood.
        expected: Head,
        /// Where it stands.
        actual: Head,
        /// How it got there.
        movement: HeadMovement,
    },
    /// The changes, or some of them, are in a commit now.
    Committed {
        /// That commit.
        commit: ObjectId,
    },
    /// The changes were set aside: the working tree is not what it was and there is another stash.
    Stashed {
        /// The stash as it was.
        expected: Option<Stash>,
        /// The stash as it is.
        actual: Option<Stash>,
    },
    /// There were changes and there are none any more; nobody committed or stashed them.
    Discarded,
    /// A file is not what it was: content, mode, kind, name, or whether it is there.
    File {
        /// Expected (`before`) and actual (`after`).
        change: FileChange,
        /// Whether the actual file is one that git does not track.
        untracked: bool,
    },
    /// A nested repository is at another commit, came or went.
    NestedMoved {
        /// Where it lies.
        path: RepoPath,
        /// As it was.
        expected: Option<NestedRepository>,
        /// As it is.
        actual: Option<NestedRepository>,
    },
    /// Something else is staged, whatever the working tree holds.
    Staged {
        /// The path.
        path: RepoPath,
        /// What was staged; none if the index was as `HEAD`.
        expected: Option<StagedChange>,
        /// What is staged; none if the index is as `HEAD`.
        actual: Option<StagedChange>,
    },
    /// The sparse checkout left a file out that it did not, or the other way round.
    CheckedOut {
        /// The path.
        path: RepoPath,
        /// Whether it was checked out.
        expected: bool,
        /// Whether it is.
        actual: bool,
    },
}

/// How a checkout got from one commit to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadMovement {
    /// The same commit under another branch, or none.
    OtherBranch,
    /// New commits on top: a commit, a merge, a pull.
    Forward,
    /// An earlier commit: a reset.
    Backward,
    /// Another line of commits: a rebase, an amended commit, another branch.
    Sideways,
}

impl Repository {
    /// Compares the working tree with a snapshot whose objects are in the vault.
    ///
    /// # Errors
    ///
    /// As [`Repository::capture`].
    pub fn verify(&self, vault: &Vault, expected: &Snapshot) -> Result<Verification, GitError> {
        self.verify_inspected(vault, expected, &mut Unasked)
    }

    /// The same, and stores nothing of a working tree that the inspector does not permit. What differs is then known by
    /// name and hash alone, so that a renamed file is one that went and one that came.
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
        differences.extend(fate(expected, actual, movement));
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
        // Another answer than zero also comes when a commit is not there any more.
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

/// What became of the changes that there were.
fn fate(expected: &Snapshot, actual: &Snapshot, movement: Option<HeadMovement>) -> Option<Difference> {
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

/// What differs from a tree that is not stored.
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

/// What two maps say about each key, where they do not agree.
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
