//! Stored state of a working tree.

use serde::{Deserialize, Serialize};

use crate::head::Head;
use crate::nested::NestedRepository;
use crate::object::{FileMode, ObjectId};
use crate::path::RepoPath;
use crate::stash::Stash;
use crate::status::{StatusCode, StatusSide};

/// The state of a working tree: small and serializable, and exact because of the trees that it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// State of `HEAD`.
    pub head: Head,
    /// Tree with the raw bytes of every file. Equal trees mean equal working trees.
    pub tree: ObjectId,
    /// Tree with every file as git would store it, used for patches. Equal to `tree` if nothing is converted.
    pub patch_tree: ObjectId,
    /// Whether working tree, index and `HEAD` are equal.
    pub clean: bool,
    /// Staged changes, sorted by path.
    pub staged: Vec<StagedChange>,
    /// Repositories inside the checkout, sorted by path.
    pub nested: Vec<NestedRepository>,
    /// Blob in the object store that lists the files omitted by a sparse checkout, NUL-terminated.
    pub not_checked_out: Option<ObjectId>,
    /// The stash; `None` if it is empty.
    pub stash: Option<Stash>,
    /// Files that are too large for a patch, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<RepoPath>,
}

/// A path whose index entry differs from `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedChange {
    pub path: RepoPath,
    /// Kind of the difference.
    pub change: StatusCode,
    /// Staged content; `None` if the path is deleted, in conflict or was added with `git add -N`.
    pub index: Option<StatusSide>,
}

/// A file of a captured working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFile {
    pub path: RepoPath,
    /// Type and mode.
    pub mode: FileMode,
    /// Id of its raw bytes, or the commit of a nested repository.
    pub id: ObjectId,
    /// Size in bytes; zero for nested repositories and files that are not checked out.
    pub size_bytes: u64,
}
