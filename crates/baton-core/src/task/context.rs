//! The context document of a task: `context.json`. Owns its shape, its one spelling, and that what is read is what was
//! written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::citation::Citation;
use super::coordination::RoleState;
use super::drift::DriftLog;
use super::file::Priority;
use super::name::{Area, EvidenceKind, Role, TaskId};
use super::qa::{QaRun, QaStatus};
use super::snapshot::{Artifact, SnapshotRef, WorktreeSnapshot};
use crate::canonical::{Canonical, Sha256Hash};
use crate::error::{ErrorCode, Fault};
use crate::time::Timestamp;

/// The version of the document that this code reads and writes.
pub const CONTEXT_VERSION: u32 = 1;

/// Everything that is known of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskContext {
    /// The version of this document.
    pub version: u32,
    /// The task.
    pub task_id: TaskId,
    /// The task file, from the root of the repository.
    pub task_file: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// Where the repository stood.
    pub git: GitBase,
    /// The roles, in order.
    pub pipeline: Vec<Role>,
    /// The frozen part.
    pub immutable: Immutable,
    /// Which revision of the frozen part this is.
    pub immutable_revision: Revision,
    /// The revisions before, oldest first.
    pub past_revisions: Vec<PastRevision>,
    /// The files that the frozen part was made from.
    pub sources: Vec<Source>,
    /// Where each role stands.
    pub coordination: BTreeMap<Role, RoleState>,
    /// The role that worked last.
    pub last_holder: Option<Role>,
    /// Every snapshot, oldest first; only ever added to.
    pub snapshots: Vec<SnapshotRef>,
    /// Every drift, oldest first.
    pub drift: DriftLog,
    /// What was attached, oldest first.
    pub evidence: Vec<Evidence>,
    /// Notes of the roles, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<RoleNote>,
    /// The tree that the newest resolution of a drift recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<WorktreeSnapshot>,
    /// How many files Baton has written for this task; numbers their names.
    pub artifact_count: u64,
    /// Who wrote last, and what else must be known later.
    pub audit: Audit,
}

/// Where the repository stood when the context was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitBase {
    /// HEAD; `null` before the first commit.
    pub head: Option<String>,
    /// The branch; `null` when HEAD was detached.
    pub branch: Option<String>,
    /// The commit that differences are counted from.
    pub base_commit: Option<String>,
    /// The SHA-256 of the task file.
    pub task_file_sha: Sha256Hash,
    /// Whether tracked files had changes that were not staged when the task began.
    pub dirty_at_init: bool,
    /// Hash of HEAD and of the files that differed from it when the task began: modified, staged, deleted, or new and not
    /// ignored. A baseline is refused in any other state. `null` in contexts of earlier versions.
    #[serde(default)]
    pub state_at_init: Option<Sha256Hash>,
}

/// The frozen part: the same for everybody, whatever happens to the files it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Immutable {
    /// What the task file said.
    pub task_snapshot: TaskSnapshot,
    /// The sections of standards that bind the task, sorted by file and section.
    pub standards_citations: Vec<Citation>,
    /// How its quality is checked, and how that went at first.
    pub validation_baseline: ValidationBaseline,
    /// The paths of its scope, sorted.
    pub repo_paths: Vec<String>,
    /// The patterns those paths came from, sorted.
    pub scope_patterns: Vec<String>,
}

/// What the task file said, normalised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSnapshot {
    /// What it is called.
    pub title: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Which part of the code base it belongs to.
    pub area: Area,
    /// What is to be done, and why.
    pub description: String,
    /// What belongs to it.
    pub scope_in: Vec<String>,
    /// What does not.
    pub scope_out: Vec<String>,
    /// What can be checked when it is done.
    pub acceptance_criteria: Vec<String>,
}

/// How the quality of a task is checked, and how that went at first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationBaseline {
    /// The commands to run.
    pub commands: Vec<String>,
    /// Where those commands came from: `task`, `area` or `repository`; `none` when there are none.
    pub commands_from: String,
    /// How they went at first.
    pub initial_results: QaResults,
}

/// Recorded result of the quality checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaResults {
    /// Result; `pending` until one is recorded.
    pub status: QaStatus,
    /// When it was recorded.
    pub recorded_at: Option<Timestamp>,
    /// Role that recorded it.
    pub recorded_by: Option<Role>,
    /// Log; of several commands, the log of the last one.
    pub log: Option<Artifact>,
    /// Results of each tool.
    pub runs: Vec<QaRun>,
    /// Exit code that was given with a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Commands that `run-qa` ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<QaCommand>,
    /// Why the status is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Actor who recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// One command that `run-qa` ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaCommand {
    /// Command line.
    pub command: String,
    /// Exit code; 128 and the number of the signal for a command that a signal ended.
    pub exit_code: i32,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Result of this command.
    pub status: QaStatus,
    /// Standard output and standard error.
    pub log: Artifact,
}

/// A note of a role to the roles after it. It never blocks them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleNote {
    /// Role that wrote it.
    pub agent: Role,
    /// Kind of note.
    pub kind: NoteKind,
    /// Text.
    pub text: String,
    /// When it was written.
    pub written_at: Timestamp,
    /// Actor who wrote it.
    pub written_by: String,
}

/// Kind of a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// What the next role must know. Each role has one; a new one replaces it.
    #[default]
    Handover,
    /// An observation about the work that does not block it.
    Review,
}

impl std::fmt::Display for NoteKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Handover => "handover",
            Self::Review => "review",
        })
    }
}

/// Which revision of the frozen part a document holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// Its number, from 1.
    pub number: u64,
    /// The SHA-256 of its canonical text.
    pub sha256: Sha256Hash,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// Why: `init`, `record_qa`, `rebuild`.
    pub reason: String,
}

/// A revision that another took the place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastRevision {
    /// Which it was.
    pub revision: Revision,
    /// Where its text is.
    pub artifact: Artifact,
}

/// A file that the frozen part was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Where it is, from the root of the repository.
    pub path: String,
    /// What it gave: `task`, `standard`, `configuration`, `scope_globs`.
    pub kind: String,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hash,
}

/// A file, or lines of one, that somebody attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What to call it by: `ev_` and twelve digits of its SHA-256.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: EvidenceKind,
    /// The file, from the root of the repository.
    pub path: String,
    /// The lines: `L3-L9`; `null` for the whole file.
    pub lines: Option<String>,
    /// The SHA-256 of the file, or of the lines.
    pub sha256: Sha256Hash,
    /// The kept text of the lines; `null` for a whole file.
    pub excerpt: Option<Artifact>,
    /// When.
    pub attached_at: Timestamp,
    /// By whom.
    pub attached_by: String,
}

/// Who wrote last, and what else must be known later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// When the document was written last.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: String,
    /// By which verb.
    pub updated_with: String,
    /// HEAD at that time.
    pub git_head: Option<String>,
    /// How often it was written.
    pub update_count: u64,
    /// Every time somebody had a finding of the secret scan overruled.
    pub forced_secrets: Vec<ForcedSecret>,
    /// The findings that somebody overruled, each once: those are not asked about again.
    #[serde(default)]
    pub accepted_secrets: Vec<AcceptedSecret>,
}

/// A finding of the secret scan that was overruled, so that it can be told from others; never what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedSecret {
    /// The rule.
    pub rule: String,
    /// The file or field that it was found in.
    pub path: String,
    /// Sixteen digits of a SHA-256 over rule, path and what was found.
    pub fingerprint: String,
}

/// A finding of the secret scan that somebody overruled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForcedSecret {
    /// When.
    pub forced_at: Timestamp,
    /// By whom.
    pub forced_by: String,
    /// In which verb.
    pub verb: String,
    /// Which rule, and where; never what.
    pub findings: Vec<String>,
}

impl TaskContext {
    /// Puts another frozen part in the place of this one, which becomes a past revision.
    ///
    /// # Errors
    ///
    /// As [`Immutable::hash`].
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

    /// Stamps a write.
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
            event.diff.iter().chain(event.resolution.iter().flat_map(|resolution| &resolution.set_aside))
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
    /// `internal` when a value has no canonical text, which none of ours has.
    pub fn hash(&self) -> Result<Sha256Hash, Fault> {
        let value = serde_json::to_value(self).map_err(unwritable)?;
        Canonical::of(&value).map(|canonical| canonical.hash()).map_err(unwritable)
    }
}

/// Writes a value as every file of a task is written: canonical JSON and a line end.
///
/// # Errors
///
/// `internal` when the value has no canonical text.
pub fn canonical_line(value: &Value) -> Result<String, Fault> {
    let mut text = crate::canonicalize(value).map_err(unwritable)?;
    text.push('\n');
    Ok(text)
}

pub(super) fn unwritable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Fault {
    Fault::new(ErrorCode::Internal, "the context cannot be written").caused_by(error)
}

#[cfg(test)]
#[path = "context_tests.rs"]
pub(crate) mod tests;
