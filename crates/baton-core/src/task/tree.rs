//! What is known of a working tree, as facts. Who finds them out runs git; what they mean is decided in `drift`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where HEAD points.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// The commit; `null` before the first one.
    pub commit: Option<String>,
    /// The branch; `null` when HEAD is detached.
    pub branch: Option<String>,
}

/// A working tree at one moment. Baton's own folder is never part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// Where HEAD points.
    pub head: Head,
    /// The id of the exact tree: every file that is not ignored, untracked ones too.
    pub tree: String,
    /// What whoever took it needs to compare it with another later.
    pub record: Value,
    /// Whether tree, index and HEAD are the same.
    pub clean: bool,
    /// The newest stash, if there is one.
    pub stash: Option<String>,
    /// `git status --porcelain=v2 -z`, with what is no UTF-8 written so that no two reports look the same.
    pub status_report: String,
    /// Submodules and repositories inside this one.
    pub submodules: Vec<Submodule>,
    /// Paths of every file of the tree.
    pub paths: Vec<String>,
}

/// A repository inside the repository: reported, not looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submodule {
    /// Where it is.
    pub path: String,
    /// The commit that is checked out there, if there is one.
    pub commit: Option<String>,
    /// Whether the repository knows it as a submodule.
    pub registered: bool,
}

/// What happened to a file between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It came.
    Added,
    /// It went.
    Deleted,
    /// Its content is another.
    Modified,
    /// It has another name, and perhaps another content.
    Renamed,
    /// Only its mode is another.
    ModeChanged,
    /// It became a link, a file or a submodule.
    TypeChanged,
}

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeChange {
    /// Its path in the later tree, or in the earlier when it went.
    pub path: String,
    /// Its path in the earlier tree, when it was renamed.
    pub previous_path: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// The SHA-256 of its content; `null` when it went.
    pub sha256: Option<String>,
    /// The SHA-256 of its content before; `null` when it came.
    pub previous_sha256: Option<String>,
    /// Its mode: `100644`; `null` when it went.
    pub mode: Option<String>,
    /// Its mode before; `null` when it came.
    pub previous_mode: Option<String>,
    /// Its size; `null` when it went or is a submodule.
    pub size_bytes: Option<u64>,
}

/// How much changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffStat {
    /// Files that differ.
    pub files: u64,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
}

impl std::fmt::Display for DiffStat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} -{}", self.insertions, self.deletions)
    }
}

/// Everything that differs between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeDiff {
    /// The files, sorted by path.
    pub changes: Vec<TreeChange>,
    /// How much.
    pub stat: DiffStat,
    /// The patch, as git writes it.
    pub patch: Vec<u8>,
}
