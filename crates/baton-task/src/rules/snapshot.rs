//! Snapshots of the working tree, recorded when a role finishes its work.

use baton_core::task::{ChangeStatus, Role, Submodule, TreeChange};
use baton_core::{Sha256Hash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Size of a diff above which a warning is given.
pub const LARGE_DIFF_BYTES: u64 = 10 * 1024 * 1024;

/// Encoding of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Uncompressed.
    Plain,
    /// Compressed with gzip.
    Gzip,
}

/// A file stored for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Path relative to the root of the repository.
    pub path: String,
    /// SHA-256 hash of the uncompressed content.
    pub sha256: Sha256Hash,
    /// SHA-256 hash of the stored file.
    pub stored_sha256: Sha256Hash,
    /// Size of the uncompressed content in bytes.
    pub size_bytes: u64,
    /// Encoding of the stored file.
    pub encoding: Encoding,
}

/// A file that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChanged {
    /// Path relative to the root of the repository, for example `src/main.rs`.
    pub path: String,
    /// SHA-256 hash of the content; null if the file was deleted.
    pub sha256: Option<String>,
    /// What happened to the file, for example `modified`.
    pub status: ChangeStatus,
    /// SHA-256 hash of the content in the base; null if the file was added.
    pub previous_sha256: Option<String>,
    /// Path in the base if the file was renamed.
    pub previous_path: Option<String>,
}

/// Mode and size of a file that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMetadata {
    /// Path relative to the root of the repository, for example `src/main.rs`.
    pub path: String,
    /// File mode, for example `100644`.
    pub mode: String,
    /// Size in bytes; null for a submodule.
    pub size: Option<u64>,
}

/// Reason for a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// A role recorded its work.
    Work,
    /// A drift was resolved.
    Resolution,
}

/// Snapshot of the working tree of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSnapshot {
    /// Number of the snapshot in the task, from 1.
    pub sequence: u64,
    /// Reason for the snapshot.
    pub kind: SnapshotKind,
    /// Actor that recorded the snapshot.
    pub actor: String,
    /// Base commit of the task; null before the first commit.
    pub base_commit: Option<String>,
    /// HEAD at the time of the snapshot.
    pub head: Option<String>,
    /// Id of the tree.
    pub tree: String,
    /// Internal data for comparing the tree with another.
    pub record: Value,
    /// Newest stash at the time of the snapshot.
    pub stash: Option<String>,
    /// Time of the snapshot.
    pub snapshot_time: Timestamp,
    /// Path of the diff from the base.
    pub diff_from_base: String,
    /// SHA-256 hash of `diff_from_base` with LF line endings.
    pub diff_sha: Sha256Hash,
    /// Output of `git status --porcelain=v2 -z`.
    pub status_report: String,
    /// Mode and size of the files that differ from the base, sorted by path.
    pub file_metadata: Vec<FileMetadata>,
    /// Files that differ from the base, sorted by path.
    pub files_changed: Vec<FileChanged>,
    /// Size of the change from the base, for example `+145 -32`.
    pub diff_stat: String,
    /// Hash of the existing paths in scope.
    pub scope_hash: String,
    /// Paths in scope that do not exist.
    pub scope_missing: Vec<String>,
    /// Changed files that are out of scope.
    pub out_of_scope: Vec<String>,
    /// Repositories inside the working tree, with their commits.
    pub submodules: Vec<Submodule>,
    /// Role whose snapshot this role started from, or null.
    pub previous_agent: Option<Role>,
    /// Path of the diff from the snapshot of `previous_agent`: all changes of this role.
    pub diff_from_previous: Option<String>,
    /// Same path as `diff_from_previous` if `previous_agent` is the implementer and this role is another one; otherwise
    /// null.
    pub diff_from_implementer: Option<String>,
    /// SHA-256 hash of `diff_from_previous` with LF line endings.
    pub incremental_diff_sha: Option<Sha256Hash>,
    /// Reason why `diff_from_previous` is missing, or null.
    pub incremental_diff_error: Option<String>,
    /// Files that hold the diffs.
    pub artifacts: Vec<Artifact>,
}

impl WorktreeSnapshot {
    /// Returns the artifact at a path.
    pub fn artifact(&self, path: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.path == path)
    }
}

/// Lists the changed files of a snapshot.
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

/// Lists mode and size of the changed files that exist.
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
    /// Number of the snapshot, from 1.
    pub sequence: u64,
    /// Reason for the snapshot.
    pub kind: SnapshotKind,
    /// Role whose work the snapshot holds.
    pub agent: Role,
    /// Actor that recorded the snapshot.
    pub actor: String,
    /// Time of the snapshot.
    pub snapshot_time: Timestamp,
    /// Id of the tree.
    pub tree: String,
    /// HEAD at the time of the snapshot.
    pub head: Option<String>,
    /// Path of the diff from the base.
    pub diff_from_base: String,
    /// Path of the diff from the snapshot that the role started from, or null.
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
