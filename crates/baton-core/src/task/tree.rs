//! State of a working tree and its changes. `baton-git` determines them; `baton-task` evaluates them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::Sha256Hash;
use crate::error::Fault;

/// Target of HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// Commit; null before the first commit.
    pub commit: Option<String>,
    /// Branch; null for a detached HEAD.
    pub branch: Option<String>,
}

/// A working tree at one point in time, without Baton's own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// Target of HEAD.
    pub head: Head,
    /// Id of the tree: all files that are not ignored, including untracked files.
    pub tree: String,
    /// Internal data for comparing the tree with another.
    pub record: Value,
    /// True if tree, index and HEAD are identical.
    pub clean: bool,
    /// Newest stash, or null.
    pub stash: Option<String>,
    /// Output of `git status --porcelain=v2 -z`, with invalid UTF-8 escaped unambiguously.
    pub status_report: String,
    /// Submodules and nested repositories.
    pub submodules: Vec<Submodule>,
    /// Paths of all files in the tree.
    pub paths: Vec<String>,
}

/// A nested repository. Its content is not inspected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submodule {
    /// Path of the nested repository.
    pub path: String,
    /// Checked-out commit, or null.
    pub commit: Option<String>,
    /// True if it is a registered submodule.
    pub registered: bool,
}

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// The file was added.
    Added,
    /// The file was deleted.
    Deleted,
    /// The content changed.
    Modified,
    /// The file was renamed; its content may have changed too.
    Renamed,
    /// Only the mode changed.
    ModeChanged,
    /// The file type changed: regular file, symbolic link or submodule.
    TypeChanged,
}

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeChange {
    /// Path in the later tree, or in the earlier tree if the file was deleted.
    pub path: String,
    /// Path in the earlier tree if the file was renamed.
    pub previous_path: Option<String>,
    /// What happened to the file, for example `modified`.
    pub status: ChangeStatus,
    /// SHA-256 hash of the content; null if the file was deleted.
    pub sha256: Option<String>,
    /// SHA-256 hash of the earlier content; null if the file was added.
    pub previous_sha256: Option<String>,
    /// File mode, for example `100644`; null if the file was deleted.
    pub mode: Option<String>,
    /// Earlier file mode; null if the file was added.
    pub previous_mode: Option<String>,
    /// Size in bytes; null if the file was deleted or is a submodule.
    pub size_bytes: Option<u64>,
}

/// Size of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffStat {
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub insertions: u64,
    /// Number of removed lines.
    pub deletions: u64,
}

impl std::fmt::Display for DiffStat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} -{}", self.insertions, self.deletions)
    }
}

/// All differences between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeDiff {
    /// Changed files, sorted by path.
    pub changes: Vec<TreeChange>,
    /// Size of the change.
    pub stat: DiffStat,
    /// Patch in git format.
    pub patch: Vec<u8>,
}

/// A file that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    pub path: String,
    /// True if it is tracked and has changes that are not staged, or is in conflict.
    pub modified: bool,
    /// SHA-256 of its content or of the target of a symbolic link; for a large file, of its size and modification time.
    /// `None` if it was deleted or is a folder.
    pub sha256: Option<Sha256Hash>,
}

/// Inspects files of a checkout before their content is stored.
pub trait Inspector {
    /// Discards everything inspected so far: the checkout changed while it was read, and the read starts again.
    fn restart(&mut self);

    /// Inspects the next piece of a file. The pieces of a file are consecutive, and the first one is empty.
    fn inspect(&mut self, path: &str, piece: &[u8]);

    /// Returns an error if the inspected content must not be stored.
    ///
    /// # Errors
    ///
    /// `secret_found` if the content contains a secret that is not accepted.
    fn check(&self) -> Result<(), Fault>;
}
