//! Interface to the working tree of a checkout. The implementation runs git; the data types are in `baton-core`.

pub use baton_core::task::{Inspector, UncommittedFile};
use baton_core::{Fault, Repo};
use serde_json::Value;

use crate::rules::{Head, TreeChange, TreeDiff, TreeState, WorktreeSnapshot};

/// Which files are read when a tree is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Files whose status information changed.
    Changed,
    /// Every file.
    All,
}

/// Working tree of a checkout. No method changes the index, a ref, an object or a file of the user. Trees recorded by
/// [`snapshot`](Self::snapshot) are available until the task is purged. Paths are relative to the root and use `/`;
/// paths that are not UTF-8 are escaped so that they stay distinct. Baton's folder `.agent-output/` is excluded
/// everywhere.
pub trait WorkingTree {
    /// Starts to read HEAD and the configuration in the background, so that the first call that needs them waits less.
    /// HEAD is then as of this call.
    fn prepare(&self) {}

    /// Returns the name of the repository; `None` if it has none or cannot be read.
    fn repository_name(&self) -> Option<Repo> {
        None
    }

    /// Returns HEAD; its commit is `None` before the first commit.
    ///
    /// # Errors
    ///
    /// If there is no repository or git cannot be run.
    fn head(&self) -> Result<Head, Fault>;

    /// Resolves a revision to the full id of a commit.
    ///
    /// # Errors
    ///
    /// `invalid_request` if there is no such commit.
    fn resolve_commit(&self, revision: &str) -> Result<String, Fault>;

    /// Lists every file that differs from HEAD: modified, staged, deleted, in conflict, or new and not ignored. Sorted
    /// by path.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or git cannot be run.
    fn uncommitted(&self) -> Result<Vec<UncommittedFile>, Fault>;

    /// Lists every file that is tracked, or untracked and not ignored.
    ///
    /// # Errors
    ///
    /// If git cannot be run.
    fn files(&self) -> Result<Vec<String>, Fault>;

    /// Records the exact tree in Baton's own objects. The inspector sees every file that differs from HEAD first.
    ///
    /// # Errors
    ///
    /// The error of the inspector, and then nothing is stored; or if a file cannot be read or git cannot be run.
    fn snapshot(&self, inspector: &mut dyn Inspector) -> Result<TreeState, Fault>;

    /// Returns the changes from a commit, or from the empty tree, to a tree. The inspector sees the changed binary
    /// files, because the patch does not contain them.
    ///
    /// # Errors
    ///
    /// If the commit does not exist.
    fn changes_since(
        &self,
        commit: Option<&str>,
        to: &TreeState,
        inspector: &mut dyn Inspector,
    ) -> Result<TreeDiff, Fault>;

    /// Returns the changes from a recorded tree to another tree.
    ///
    /// # Errors
    ///
    /// If the recorded tree was removed.
    fn changes_between(&self, from: &Value, to: &TreeState) -> Result<TreeDiff, Fault>;

    /// Records the current tree and returns the changes from a snapshot. If the inspector rejects the tree, nothing is
    /// stored, but the changes are still returned.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or git cannot be run.
    fn verify(
        &self,
        expected: &WorktreeSnapshot,
        reading: Reading,
        inspector: &mut dyn Inspector,
    ) -> Result<(TreeState, Vec<TreeChange>), Fault>;

    /// Passes the content of a file of a recorded tree, or the target of a symbolic link, to `sink` in pieces.
    ///
    /// # Errors
    ///
    /// If the recorded tree was removed or does not have the file.
    fn snapshot_file(&self, record: &Value, path: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault>;

    /// Removes recorded trees except those of `snapshots` and those with the ids `trees`. The caller must hold the
    /// store lock.
    ///
    /// # Errors
    ///
    /// If the trees cannot be removed now. Needed objects are never removed.
    fn keep_only(&self, _snapshots: &[WorktreeSnapshot], _trees: &[String]) -> Result<(), Fault> {
        Ok(())
    }
}
