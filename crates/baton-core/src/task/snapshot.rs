//! What is recorded of a working tree when a role leaves it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::Role;
use super::tree::{ChangeStatus, Submodule, TreeChange};
use crate::canonical::Sha256Hash;
use crate::time::Timestamp;

/// Diffs above this size are worth a warning.
pub const LARGE_DIFF_BYTES: u64 = 10 * 1024 * 1024;

/// How a file that Baton keeps is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As it is.
    Plain,
    /// Compressed with gzip.
    Gzip,
}

/// A file that Baton keeps for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Where it is, from the root of the repository.
    pub path: String,
    /// The SHA-256 of its plain text.
    pub sha256: Sha256Hash,
    /// The SHA-256 of the file as it is stored.
    pub stored_sha256: Sha256Hash,
    /// The length of its plain text.
    pub size_bytes: u64,
    /// How it is stored.
    pub encoding: Encoding,
}

/// A file that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChanged {
    /// Its path.
    pub path: String,
    /// The SHA-256 of its content; `null` when it went.
    pub sha256: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// The SHA-256 of its content in the base; `null` when it came.
    pub previous_sha256: Option<String>,
    /// Its path in the base, when it was renamed.
    pub previous_path: Option<String>,
}

/// Mode and size of a file that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMetadata {
    /// Its path.
    pub path: String,
    /// Its mode: `100644`.
    pub mode: String,
    /// Its size in bytes; `null` for a submodule.
    pub size: Option<u64>,
}

/// Why a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// A role left its work.
    Work,
    /// A drift was settled: this is the state to go on from.
    Resolution,
}

/// A working tree as a role left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSnapshot {
    /// Its number in the task, from 1.
    pub sequence: u64,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// Who took it.
    pub actor: String,
    /// The commit that the task began from; `null` before the first commit.
    pub base_commit: Option<String>,
    /// HEAD when it was taken.
    pub head: Option<String>,
    /// The exact tree.
    pub tree: String,
    /// What whoever took it needs to compare it with another later.
    pub record: Value,
    /// The newest stash when it was taken.
    pub stash: Option<String>,
    /// When it was taken.
    pub snapshot_time: Timestamp,
    /// Where the diff from the base is.
    pub diff_from_base: String,
    /// The SHA-256 of that diff with LF line ends.
    pub diff_sha: Sha256Hash,
    /// `git status --porcelain=v2 -z`.
    pub status_report: String,
    /// Mode and size of every file that differs from the base, sorted by path.
    pub file_metadata: Vec<FileMetadata>,
    /// Every file that differs from the base, sorted by path.
    pub files_changed: Vec<FileChanged>,
    /// How much differs from the base: `+145 -32`.
    pub diff_stat: String,
    /// A hash over the paths of the scope that were there.
    pub scope_hash: String,
    /// Paths of the scope that were not there.
    pub scope_missing: Vec<String>,
    /// Files that differ from the base and do not belong to the scope.
    pub out_of_scope: Vec<String>,
    /// Repositories inside the repository.
    pub submodules: Vec<Submodule>,
    /// The role whose snapshot this one took over; `null` when there was none.
    pub previous_agent: Option<Role>,
    /// Where the diff from that snapshot is: what the role did, however often it took one.
    pub diff_from_previous: Option<String>,
    /// The same, when that snapshot was the implementer's and this is another's.
    pub diff_from_implementer: Option<String>,
    /// The SHA-256 of the diff from that snapshot, with LF line ends.
    pub incremental_diff_sha: Option<Sha256Hash>,
    /// Why there is no diff from that snapshot, when there should be one.
    pub incremental_diff_error: Option<String>,
    /// The files that hold the diffs.
    pub artifacts: Vec<Artifact>,
}

impl WorktreeSnapshot {
    /// Gives the artifact at a path.
    pub fn artifact(&self, path: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.path == path)
    }
}

/// Lists the changed files as a snapshot records them.
pub fn files_changed(changes: &[TreeChange]) -> Vec<FileChanged> {
    let mut list: Vec<FileChanged> = changes
        .iter()
        .map(|change| FileChanged {
            path: change.path.clone(),
            sha256: change.sha256.clone(),
            status: change.status,
            previous_sha256: change.previous_sha256.clone(),
            previous_path: change.previous_path.clone(),
        })
        .collect();
    list.sort_by(|one, other| one.path.cmp(&other.path));
    list
}

/// Lists mode and size of the changed files that are there.
pub fn file_metadata(changes: &[TreeChange]) -> Vec<FileMetadata> {
    let mut list: Vec<FileMetadata> = changes
        .iter()
        .filter_map(|change| {
            let mode = change.mode.clone()?;
            Some(FileMetadata { path: change.path.clone(), mode, size: change.size_bytes })
        })
        .collect();
    list.sort_by(|one, other| one.path.cmp(&other.path));
    list
}

/// One snapshot in the sequence of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotRef {
    /// Its number, from 1.
    pub sequence: u64,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// The role whose work it holds.
    pub agent: Role,
    /// Who took it.
    pub actor: String,
    /// When.
    pub snapshot_time: Timestamp,
    /// The exact tree.
    pub tree: String,
    /// HEAD.
    pub head: Option<String>,
    /// Where the diff from the base is.
    pub diff_from_base: String,
    /// Where the diff from the snapshot that the role took over is; `null` when there was none.
    pub diff_from_previous: Option<String>,
}

#[cfg(test)]
pub(crate) fn sample() -> WorktreeSnapshot {
    WorktreeSnapshot {
        sequence: 1,
        kind: SnapshotKind::Work,
        actor: "me".into(),
        base_commit: Some("c1".into()),
        head: Some("c1".into()),
        tree: "t1".into(),
        record: Value::Null,
        stash: None,
        snapshot_time: Timestamp::EPOCH,
        diff_from_base: "d".into(),
        diff_sha: Sha256Hash::of(b""),
        status_report: "1 .M N... 100644 100644 100644 a a src/x\0".into(),
        file_metadata: Vec::new(),
        files_changed: Vec::new(),
        diff_stat: "+1 -0".into(),
        scope_hash: "x".into(),
        scope_missing: vec!["src/never-there.rs".into()],
        out_of_scope: Vec::new(),
        submodules: Vec::new(),
        previous_agent: None,
        diff_from_previous: None,
        diff_from_implementer: None,
        incremental_diff_sha: None,
        incremental_diff_error: None,
        artifacts: Vec::new(),
    }
}
