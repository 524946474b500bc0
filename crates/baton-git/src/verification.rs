//! Verification of a working tree against a snapshot.

use std::collections::BTreeMap;

use baton_core::task::{ChangeStatus, Inspector, TreeChange};

use crate::capture::{Capture, Keep};
use crate::diff::{Detail, DiffFile, diff_trees};
use crate::error::GitError;
use crate::nested::NestedRepository;
use crate::object::FileMode;
use crate::object_store::ObjectStore;
use crate::path::RepoPath;
use crate::repository::Repository;
use crate::snapshot::{Snapshot, TreeFile};
use crate::status::StatusSide;

/// Result of a verification.
#[derive(Debug)]
pub struct Verification {
    /// Current state of the working tree. Its objects are in the object store if the tree differs and the inspector
    /// permitted it.
    pub current: Capture,
    /// Files that differ in content, mode, type or name, and nested repositories with another commit, sorted by path.
    pub changes: Vec<TreeChange>,
}

impl Repository {
    /// Compares the working tree with a snapshot whose objects are in the object store.
    ///
    /// Nothing is stored if the inspector rejects the tree. Changes are then known only by name and hash, so a rename is
    /// reported as a deletion and an addition.
    ///
    /// # Errors
    ///
    /// As [`Repository::capture`].
    pub fn verify(
        &self,
        object_store: &ObjectStore,
        expected: &Snapshot,
        inspector: &mut dyn Inspector,
    ) -> Result<Verification, GitError> {
        let current = self.capture_keeping(object_store, Keep::ObjectsUnless(expected.tree), inspector)?;
        let mut changes = BTreeMap::new();
        if expected.tree != current.snapshot.tree {
            let files = object_store
                .describe(differing(object_store, expected, &current)?, current.withheld.as_ref())?;
            changes.extend(files);
        }
        for (path, expected, actual) in differing_values(nested(expected), nested(&current.snapshot)) {
            changes.entry(path).or_insert_with_key(|path| nested_change(path, expected, actual));
        }
        Ok(Verification { current, changes: changes.into_values().collect() })
    }
}

/// Returns the files that differ from those of a snapshot, without nested repositories.
fn differing(
    object_store: &ObjectStore,
    expected: &Snapshot,
    current: &Capture,
) -> Result<Vec<DiffFile>, GitError> {
    let mut files = if current.withheld.is_none() {
        diff_trees(object_store, expected.tree, current.snapshot.tree, Detail::Paths)?.files
    } else {
        let side = |file: &TreeFile| StatusSide { mode: file.mode, id: file.id };
        let actual = current.files.iter().map(|file| (file.path.clone(), side(file))).collect();
        let file = |(path, before, after)| DiffFile { path, previous_path: None, before, after, lines: None };
        differing_values(object_store.listing(expected.tree)?, actual).map(file).collect()
    };
    files.retain(|file| [file.before, file.after].iter().flatten().any(|side| side.mode != FileMode::Nested));
    Ok(files)
}

fn nested(snapshot: &Snapshot) -> BTreeMap<RepoPath, NestedRepository> {
    snapshot.nested.iter().map(|nested| (nested.path.clone(), nested.clone())).collect()
}

fn nested_change(
    path: &RepoPath,
    expected: Option<NestedRepository>,
    actual: Option<NestedRepository>,
) -> TreeChange {
    let status = match (&expected, &actual) {
        (None, _) => ChangeStatus::Added,
        (_, None) => ChangeStatus::Deleted,
        (Some(_), Some(_)) => ChangeStatus::Modified,
    };
    let mode = |nested: &Option<_>| nested.as_ref().map(|_| FileMode::Nested.to_string());
    let (previous_mode, mode) = (mode(&expected), mode(&actual));
    let commit =
        |nested: Option<NestedRepository>| nested.and_then(|nested| nested.commit).map(|id| id.to_string());
    TreeChange {
        path: path.to_string(),
        previous_path: None,
        status,
        sha256: commit(actual),
        previous_sha256: commit(expected),
        mode,
        previous_mode,
        size_bytes: None,
    }
}

/// Returns the keys with different values in two maps.
fn differing_values<V: PartialEq>(
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
