//! Stored state of a role, and results of QA commands.

use baton_core::Timestamp;
use baton_core::task::Role;
use baton_qa::{QaRun, QaStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::snapshot::{Artifact, WorktreeSnapshot};

/// Status of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RoleStatus {
    /// The role has not started or must run again.
    #[default]
    Pending,
    /// The role holds the task.
    InProgress,
    /// The role is done.
    Done,
    /// The role reported a blocking finding.
    Blocked,
}

/// State of one role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleState {
    /// `pending`, `in_progress`, `done` or `blocked`.
    pub status: RoleStatus,
    /// Time when the role last acquired the task.
    pub started_at: Option<Timestamp>,
    /// Time when the role finished, or null.
    pub completed_at: Option<Timestamp>,
    /// Number of times the role acquired the task.
    pub rounds: u64,
    /// Number of snapshots when the role acquired the task.
    pub snapshots_before: u64,
    /// Snapshot that the role started from, or null.
    #[serde(default)]
    pub taken_over: Option<StartSnapshot>,
    /// Path of the log of the last QA result, or null.
    pub qa_log_path: Option<String>,
    /// Last QA result.
    pub qa_results: Option<QaResults>,
    /// Session that worked in this role.
    pub session_id: Option<String>,
    /// Open blocking findings.
    pub blocking_findings: Vec<String>,
    /// Resolved blocking findings.
    pub resolved_findings: Vec<String>,
    /// Last snapshot of the role.
    pub worktree_snapshot: Option<WorktreeSnapshot>,
    /// Number of open drifts. An open drift blocks all roles.
    pub drift_budget: u64,
    /// Actor that last worked in this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Snapshot that a role started from. Its incremental diff starts there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartSnapshot {
    /// Number of the snapshot.
    pub sequence: u64,
    /// Role that recorded the snapshot.
    pub agent: Role,
    /// Internal data for comparing the tree with another.
    pub record: Value,
}

/// Recorded result of the quality checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaResults {
    /// Result; `pending` until one is recorded.
    pub status: QaStatus,
    /// Time when the result was recorded.
    pub recorded_at: Option<Timestamp>,
    /// Role that recorded the result.
    pub recorded_by: Option<Role>,
    /// Log; with several commands, the log of the last one.
    pub log: Option<Artifact>,
    /// Results of each tool.
    pub runs: Vec<QaRun>,
    /// Exit code that was passed with a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Commands that `run-qa` ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<QaCommand>,
    /// Reason for the status `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Actor that recorded the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// One command that `run-qa` ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaCommand {
    /// Command line, for example `cargo test`.
    pub command: String,
    /// Exit code; 128 plus the signal number if a signal ended the command.
    pub exit_code: i32,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Result of this command.
    pub status: QaStatus,
    /// Standard output and standard error.
    pub log: Artifact,
}
