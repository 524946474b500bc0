//! Index entry of a task in the store. The files in the checkout are authoritative.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::{Role, TaskId};
use crate::name::{Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TaskStatus {
    /// No role has started.
    Pending,
    /// A role holds the task.
    InProgress,
    /// The next role can start.
    Waiting,
    /// A role reported a blocking finding.
    Blocked,
    /// All roles are done.
    Done,
    /// The task is completed and archived.
    Completed,
}

wire_names!(TaskStatus);

impl TaskStatus {
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::InProgress, Self::Waiting, Self::Blocked, Self::Done, Self::Completed];
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRecord {
    /// Venture, for example `acme`.
    pub venture: Venture,
    /// Host name of the machine with the checkout, for example `build-3`.
    pub host: String,
    /// Path of the root of the checkout, for example `/home/ada/webshop`.
    pub checkout: String,
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Repository as owner/name, or null.
    pub repo: Option<Repo>,
    /// Title of the task, for example "Add passkey login".
    pub title: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Role that currently holds the task, for example `reviewer`; null if no role holds it.
    pub holder: Option<Role>,
    /// Number of open drifts.
    pub open_drifts: u64,
    /// Time when the task files were last written.
    pub updated_at: Timestamp,
}

impl TaskRecord {
    /// Returns the id by which search names the task: a task id alone is unique in one checkout only.
    pub fn item_id(&self) -> String {
        Self::item_id_of(&self.venture, &self.host, &self.checkout, &self.task_id)
    }

    /// Returns the id by which search names a task.
    pub fn item_id_of(venture: &Venture, host: &str, checkout: &str, id: &TaskId) -> String {
        format!("{venture}/{id}@{host}:{checkout}")
    }

    /// Parses the id by which search names a task: venture, host, checkout and task id.
    pub fn parse_item_id(text: &str) -> Option<(Venture, &str, &str, TaskId)> {
        let (venture, rest) = text.split_once('/')?;
        let (id, rest) = rest.split_once('@')?;
        let (host, checkout) = rest.split_once(':')?;
        Some((venture.parse().ok()?, host, checkout, id.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_round_trips() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::from_wire(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(TaskStatus::from_wire("nowhere"), None);
    }
}
