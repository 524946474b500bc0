//! The context document of a task: the types of `context.json` and their canonical form.

use std::collections::BTreeMap;

use baton_core::task::{Area, EvidenceKind, Role, TaskId};
use baton_core::{Canonical, ErrorCode, Fault, Sha256Hash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::citation::Citation;
use super::drift::DriftLog;
use super::role_state::{QaResults, RoleState};
use super::snapshot::{Artifact, SnapshotRef, WorktreeSnapshot};
use super::task_file::Priority;

/// Document version that this code reads and writes.
pub const CONTEXT_VERSION: u32 = 1;

/// The full context of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskContext {
    /// Version of this document.
    pub version: u32,
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Path of the task file, relative to the root of the repository.
    pub task_file: String,
    /// Time when the context was created.
    pub created_at: Timestamp,
    /// Actor that created the context.
    pub created_by: String,
    /// State of the repository when the context was created.
    pub git: GitBase,
    /// Roles in the order in which they work, for example `implementer`, `reviewer`.
    pub pipeline: Vec<Role>,
    /// Frozen part: description, standards, QA plan and scope.
    pub immutable: Immutable,
    /// Revision of the frozen part.
    pub immutable_revision: Revision,
    /// Earlier revisions, oldest first.
    pub past_revisions: Vec<PastRevision>,
    /// Files that the frozen part was created from.
    pub sources: Vec<Source>,
    /// State of each role.
    pub coordination: BTreeMap<Role, RoleState>,
    /// Role that worked last.
    pub last_holder: Option<Role>,
    /// All snapshots, oldest first; append-only.
    pub snapshots: Vec<SnapshotRef>,
    /// All drifts, oldest first.
    pub drift: DriftLog,
    /// Attached evidence, oldest first.
    pub evidence: Vec<Evidence>,
    /// Notes of the roles, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<RoleNote>,
    /// Tree recorded by the newest drift resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<WorktreeSnapshot>,
    /// Number of files written for this task; used in their names.
    pub artifact_count: u64,
    /// Last write and accepted secret findings.
    pub audit: Audit,
}

/// State of the repository when the context was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitBase {
    /// HEAD; null before the first commit.
    pub head: Option<String>,
    /// Branch; null for a detached HEAD.
    pub branch: Option<String>,
    /// Commit that changes are compared with.
    pub base_commit: Option<String>,
    /// SHA-256 hash of the task file.
    pub task_file_sha: Sha256Hash,
    /// True if tracked files had unstaged changes when the task was created.
    pub dirty_at_init: bool,
    /// Hash of HEAD and of the files that differed from it when the task began: modified, staged, deleted, or new and not
    /// ignored. A baseline is rejected in any other state. `null` in contexts of earlier versions.
    #[serde(default)]
    pub state_at_init: Option<Sha256Hash>,
}

/// The frozen part of a context. It does not change when its source files change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Immutable {
    /// Content of the task file.
    pub task_snapshot: TaskSnapshot,
    /// Standards that apply to the task, sorted by file and section.
    pub standards_citations: Vec<Citation>,
    /// QA commands and baseline.
    pub validation_baseline: ValidationBaseline,
    /// Paths in scope, sorted.
    pub repo_paths: Vec<String>,
    /// Patterns that define the scope, sorted.
    pub scope_patterns: Vec<String>,
}

/// Normalized content of the task file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSnapshot {
    /// Title of the task.
    pub title: String,
    /// Priority of the task, `P0` (highest) to `P2`.
    pub priority: Priority,
    /// Area of the code base.
    pub area: Area,
    /// Description of the work and its reason.
    pub description: String,
    /// What is in scope.
    pub scope_in: Vec<String>,
    /// What is out of scope.
    pub scope_out: Vec<String>,
    /// Conditions that the finished work must satisfy, one sentence each.
    pub acceptance_criteria: Vec<String>,
}

/// QA commands and baseline of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationBaseline {
    /// Commands to run.
    pub commands: Vec<String>,
    /// Source of the commands: `task`, `area`, `repository` or `none`.
    pub commands_from: String,
    /// Result of the commands before the work on the task started.
    pub initial_results: QaResults,
}

/// A note of a role for later roles. It never blocks them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleNote {
    /// Role that wrote the note.
    pub agent: Role,
    /// `handover` for the next role, `review` for a remark that does not block.
    pub kind: RoleNoteKind,
    /// What the note says, for example `The parser is done; tests of dates are missing.`
    pub text: String,
    /// Time when the note was written.
    pub written_at: Timestamp,
    /// Actor that wrote the note.
    pub written_by: String,
}

/// Kind of role note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RoleNoteKind {
    /// Information the next role needs. One per role; a new one replaces it.
    #[default]
    Handover,
    /// Remark about the work that does not block it.
    Review,
}

/// Revision of the frozen part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// Revision number, from 1.
    pub number: u64,
    /// SHA-256 hash of the canonical text.
    pub sha256: Sha256Hash,
    /// Time when the revision was created.
    pub created_at: Timestamp,
    /// Actor that created the revision.
    pub created_by: String,
    /// Reason: `init`, `record_qa` or `rebuild`.
    pub reason: String,
}

/// A replaced revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastRevision {
    /// Number, hash, time and reason of the replaced revision.
    pub revision: Revision,
    /// Location of its text.
    pub artifact: Artifact,
}

/// A file that the frozen part was created from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Path relative to the root of the repository.
    pub path: String,
    /// Use of the file: `task`, `standard`, `configuration` or `scope_globs`.
    pub kind: String,
    /// SHA-256 hash of the file.
    pub sha256: Sha256Hash,
}

/// An attached file or excerpt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Evidence id: `ev_` and 12 hex digits of the SHA-256 hash.
    pub id: String,
    /// Type of evidence, for example `plan` or `excerpt`.
    #[serde(rename = "type")]
    pub kind: EvidenceKind,
    /// Path relative to the root of the repository.
    pub path: String,
    /// Lines, for example `L3-L9`; null for the whole file.
    pub lines: Option<String>,
    /// SHA-256 hash of the file or lines.
    pub sha256: Sha256Hash,
    /// Stored text of the lines; null for a whole file.
    pub excerpt: Option<Artifact>,
    /// Time when the evidence was attached.
    pub attached_at: Timestamp,
    /// Actor that attached the evidence.
    pub attached_by: String,
}

/// Last write and accepted secret findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// Time of the last write.
    pub updated_at: Timestamp,
    /// Actor of the last write.
    pub updated_by: String,
    /// Command of the last write.
    pub updated_with: String,
    /// HEAD at that time.
    pub git_head: Option<String>,
    /// Number of writes.
    pub update_count: u64,
    /// Every use of `force_secrets`.
    pub forced_secrets: Vec<ForcedSecret>,
    /// Accepted secret findings, each listed once. They are not reported again.
    #[serde(default)]
    pub accepted_secrets: Vec<AcceptedSecret>,
}

/// Fingerprint of an accepted secret finding. It does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedSecret {
    /// Rule of the secret scan.
    pub rule: String,
    /// File or field of the finding.
    pub path: String,
    /// First 16 hex digits of the SHA-256 hash of rule, path and finding.
    pub fingerprint: String,
}

/// A secret finding that was accepted with `force_secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForcedSecret {
    /// Time of the acceptance.
    pub forced_at: Timestamp,
    /// Actor that accepted the finding.
    pub forced_by: String,
    /// Command that stored the text.
    pub verb: String,
    /// Rules and locations, without the secrets.
    pub findings: Vec<String>,
}

impl TaskContext {
    /// Replaces the frozen part; the previous one becomes a past revision.
    ///
    /// # Errors
    ///
    /// Fails like [`Immutable::hash`].
    pub fn revise(
        &mut self,
        immutable: Immutable,
        past: Artifact,
        reason: &str,
        now: Timestamp,
        by: &str,
    ) -> Result<(), Fault> {
        let revision = Revision {
            number: self.immutable_revision.number + 1,
            sha256: immutable.hash()?,
            created_at: now,
            created_by: by.to_owned(),
            reason: reason.to_owned(),
        };
        let before = std::mem::replace(&mut self.immutable_revision, revision);
        self.past_revisions.push(PastRevision { revision: before, artifact: past });
        self.immutable = immutable;
        Ok(())
    }

    /// Records a write in the audit data.
    pub fn stamp(&mut self, verb: &str, now: Timestamp, by: &str, head: Option<String>) {
        self.audit.updated_at = now;
        by.clone_into(&mut self.audit.updated_by);
        verb.clone_into(&mut self.audit.updated_with);
        self.audit.git_head = head;
        self.audit.update_count += 1;
    }

    /// Lists every file that the document refers to.
    pub fn artifacts(&self) -> Vec<&Artifact> {
        let roles = self.coordination.values();
        let snapshots =
            roles.clone().filter_map(|role| role.worktree_snapshot.as_ref()).flat_map(|s| &s.artifacts);
        let baseline = &self.immutable.validation_baseline.initial_results;
        let results = roles.filter_map(|role| role.qa_results.as_ref()).chain([baseline]);
        let logs = results.flat_map(|results| {
            results.log.iter().chain(results.commands.iter().map(|command| &command.log))
        });
        let past = self.past_revisions.iter().map(|past| &past.artifact);
        let excerpts = self.evidence.iter().filter_map(|evidence| evidence.excerpt.as_ref());
        let drifts = self.drift.events.iter().flat_map(|event| {
            let kept = event.resolution.iter().flat_map(|resolution| &resolution.set_aside);
            event.diff.iter().chain(kept.map(|kept| &kept.artifact))
        });
        let resolution = self.resolution.iter().flat_map(|snapshot| &snapshot.artifacts);
        snapshots.chain(logs).chain(past).chain(excerpts).chain(drifts).chain(resolution).collect()
    }
}

impl Immutable {
    /// Hashes the frozen part.
    ///
    /// # Errors
    ///
    /// `internal` if a value has no canonical text, which does not happen for this type.
    pub fn hash(&self) -> Result<Sha256Hash, Fault> {
        let value = serde_json::to_value(self).map_err(unwritable)?;
        Canonical::of(&value).map(|canonical| canonical.hash()).map_err(unwritable)
    }
}

/// Formats a value like every file of a task: canonical JSON and a line end.
///
/// # Errors
///
/// `internal` if the value has no canonical text.
pub fn canonical_line(value: &Value) -> Result<String, Fault> {
    let mut text = baton_core::canonicalize(value).map_err(unwritable)?;
    text.push('\n');
    Ok(text)
}

pub(crate) fn unwritable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Fault {
    Fault::new(ErrorCode::Internal, "cannot write the context").caused_by(error)
}

#[cfg(test)]
#[path = "context_tests.rs"]
pub(crate) mod tests;
