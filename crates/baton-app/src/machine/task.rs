//! What the files of a task contain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Content of the files of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TaskFiles {
    /// Context of the task, as `baton task get-context` returns it: roles, drifts, QA results, notes and snapshots.
    pub context: Map<String, Value>,
    /// Problems to resolve first: a moved HEAD, changed files or an open drift.
    pub warnings: Vec<String>,
    /// Command that continues the task.
    pub next: String,
    /// Diff of the open or last drift, and the diff of each role.
    pub diffs: Vec<TaskDiff>,
}

/// One diff of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TaskDiff {
    /// `drift` for changes made outside the roles, `incremental` for the changes of a role.
    #[serde(rename = "type")]
    pub kind: String,
    /// Role that made the changes; for a drift, the role whose snapshot was expected.
    pub agent: String,
    /// Size of the change, for example `+145 -32`.
    pub diff_stat: String,
    /// The diff, up to a limit for all diffs of a task.
    pub content: String,
    /// True if the diff is longer than `content`.
    pub is_truncated: bool,
}
