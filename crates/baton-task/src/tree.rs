//! What this crate needs to know of a checkout. Who answers runs git; the data is `baton-core`'s.

use baton_core::task::{Head, TreeChange, TreeDiff, TreeState, WorktreeSnapshot};
use baton_core::{Fault, Sha256Hash};
use serde_json::Value;

/// Looks at files of a checkout before anything of them is kept.
pub trait Inspector {
    /// Begins anew: the checkout changed, and what was seen before is not what will be kept.
    fn begin(&mut self);

    /// Takes the next piece of a file. All pieces of one come in a row, the first of them empty.
    fn look(&mut self, path: &str, piece: &[u8]);

    /// Says whether all that was seen may be kept.
    ///
    /// # Errors
    ///
    /// `secret_found` when it may not.
    fn verdict(&self) -> Result<(), Fault>;
}

/// Which files are read when a tree is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Files whose status information changed.
    Changed,
    /// Every file.
    All,
}

/// A file as a snapshot has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Mode: `100644`, `100755`, or `120000` for a symbolic link.
    pub mode: String,
    /// Content, or the target of a symbolic link.
    pub bytes: Vec<u8>,
}

/// A file that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    /// Path.
    pub path: String,
    /// True if it is tracked and has changes that are not staged, or is in conflict.
    pub modified: bool,
    /// SHA-256 of its content, or of the target of a symbolic link; `None` if it is gone or is a repository.
    pub sha256: Option<Sha256Hash>,
}

/// A checkout that can be asked. No method changes the index, a ref, an object or a file of the user; trees that
/// [`snapshot`](Self::snapshot) made can be asked about until the task is purged. Paths are relative to the root with
/// `/`, those that are no UTF-8 written so that no two are the same. Baton's own `.agent-output/` is in no tree, list or
/// report.
pub trait WorkingTree {
    /// Says where HEAD points; a commit of `None` before the first one.
    ///
    /// # Errors
    ///
    /// When there is no repository or git cannot be run.
    fn head(&self) -> Result<Head, Fault>;

    /// Finds the full id of the commit that a person named.
    ///
    /// # Errors
    ///
    /// `invalid_request` when there is none.
    fn resolve_commit(&self, revision: &str) -> Result<String, Fault>;

    /// Lists every file that differs from HEAD: modified, staged, deleted, in conflict, or new and not ignored. Sorted by path.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or git cannot be run.
    fn uncommitted(&self) -> Result<Vec<UncommittedFile>, Fault>;

    /// Lists every file that is tracked, or untracked and not ignored.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    fn files(&self) -> Result<Vec<String>, Fault>;

    /// Takes the exact tree, into objects of Baton's own. The inspector sees every file that differs from HEAD first.
    ///
    /// # Errors
    ///
    /// What the inspector says, and then nothing is kept; when a file cannot be read or git cannot be run.
    fn snapshot(&self, inspector: &mut dyn Inspector) -> Result<TreeState, Fault>;

    /// Says everything that differs between a commit, or nothing at all, and a tree. The inspector sees every file in it
    /// that is no text, since the patch does not say what is in those.
    ///
    /// # Errors
    ///
    /// When the commit is not there any more.
    fn changes_since(
        &self,
        commit: Option<&str>,
        to: &TreeState,
        inspector: &mut dyn Inspector,
    ) -> Result<TreeDiff, Fault>;

    /// Says everything that differs between a tree that was taken earlier, by its record, and another.
    ///
    /// # Errors
    ///
    /// When the earlier tree is not there any more.
    fn changes_between(&self, from: &Value, to: &TreeState) -> Result<TreeDiff, Fault>;

    /// Takes the present tree and says what differs from an earlier one. Of a tree that the inspector does not permit
    /// nothing is kept; what differs is named all the same.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or git cannot be run.
    fn verify(
        &self,
        expected: &WorktreeSnapshot,
        reading: Reading,
        inspector: &mut dyn Inspector,
    ) -> Result<(TreeState, Vec<TreeChange>), Fault>;

    /// Reads a file of a tree that was taken earlier, by its record; `None` if that tree does not have it.
    ///
    /// # Errors
    ///
    /// When the earlier tree is not there any more, or the path is that of a nested repository.
    fn snapshot_file(&self, record: &Value, path: &str) -> Result<Option<SnapshotFile>, Fault>;

    /// Forgets the trees that were taken, but those of `snapshots` and those with the ids `trees`. Only whoever holds the
    /// lock may ask for it.
    ///
    /// # Errors
    ///
    /// When that cannot be done now; nothing that is needed is gone.
    fn keep_only(&self, _snapshots: &[WorktreeSnapshot], _trees: &[String]) -> Result<(), Fault> {
        Ok(())
    }
}
