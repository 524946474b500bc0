//! What is remembered of a working tree.

use serde::{Deserialize, Serialize};

use crate::head::Head;
use crate::nested::NestedRepository;
use crate::object::{FileMode, ObjectId};
use crate::path::RepoPath;
use crate::stash::Stash;
use crate::status::{StatusCode, StatusSide};

/// The state of a working tree: small, to be stored, and exact by the trees that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where the checkout stood.
    pub head: Head,
    /// Every file with its raw bytes. Equal trees are equal working trees.
    pub tree: ObjectId,
    /// Every file as git would store it; what patches are made from. The same tree where nothing is converted.
    pub patch_tree: ObjectId,
    /// Whether the working tree, the index and `HEAD` are the same.
    pub clean: bool,
    /// What was staged, in the order of paths.
    pub staged: Vec<StagedChange>,
    /// The repositories inside the checkout, in the order of paths.
    pub nested: Vec<NestedRepository>,
    /// A blob in the vault that lists the files which a sparse checkout leaves out, each ended by NUL.
    pub not_checked_out: Option<ObjectId>,
    /// What was set aside.
    pub stash: Option<Stash>,
    /// Files that are too large for a patch, in the order of paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<RepoPath>,
}

/// A path whose entry in the index differs from `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedChange {
    /// The path.
    pub path: RepoPath,
    /// How it differs.
    pub change: StatusCode,
    /// What is staged; none if it is to be deleted, is in conflict or was only announced (`git add -N`).
    pub index: Option<StatusSide>,
}

/// A file of a captured working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFile {
    /// The path.
    pub path: RepoPath,
    /// What it is.
    pub mode: FileMode,
    /// The id of its raw bytes, or the commit of a nested repository.
    pub id: ObjectId,
    /// How large it is; zero for a nested repository and for what is not checked out.
    pub size_bytes: u64,
    /// Whether the index has it.
    pub tracked: bool,
}
