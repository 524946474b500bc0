//! A task as the index of a store knows it: enough to find it from anywhere. The files in its checkout are the truth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::TaskContext;
use super::coordination::RoleStatus;
use super::name::{Role, TaskId};
use crate::name::{Repo, Venture};
use crate::time::Timestamp;

/// Where a task stands as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Nobody has begun.
    Pending,
    /// A role holds it.
    InProgress,
    /// It is the turn of the next role.
    Waiting,
    /// A role found something that must be dealt with first.
    Blocked,
    /// Every role is done.
    Done,
    /// It was completed, and its files are archived.
    Completed,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::InProgress, Self::Waiting, Self::Blocked, Self::Done, Self::Completed];

    /// Gives the spelling used on every wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Completed => "completed",
        }
    }

    /// Reads the spelling used on every wire and in the store.
    pub fn from_wire(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task in the index of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRecord {
    /// The undertaking.
    pub venture: Venture,
    /// The machine that the checkout is on.
    pub host: String,
    /// The root of the checkout.
    pub checkout: String,
    /// The task.
    pub task_id: TaskId,
    /// The repository; `null` when it has no name.
    pub repo: Option<Repo>,
    /// What it is called.
    pub title: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// The role that holds it.
    pub holder: Option<Role>,
    /// How many drifts are open.
    pub open_drifts: u64,
    /// When its files were written last.
    pub updated_at: Timestamp,
}

impl TaskContext {
    /// Says where the task stands as a whole.
    pub fn status(&self) -> TaskStatus {
        let is = |wanted: RoleStatus| {
            move |role: &Role| self.coordination.get(role).is_some_and(|state| state.status == wanted)
        };
        if self.holder().is_some() {
            TaskStatus::InProgress
        } else if self.pipeline.iter().any(is(RoleStatus::Blocked)) {
            TaskStatus::Blocked
        } else if self.pipeline.iter().all(is(RoleStatus::Done)) {
            TaskStatus::Done
        } else if self.pipeline.iter().all(is(RoleStatus::Pending)) {
            TaskStatus::Pending
        } else {
            TaskStatus::Waiting
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::context::tests::sample;

    #[test]
    fn the_roles_say_where_a_task_stands() {
        let mut context = sample();
        let [implementer, reviewer, validator] =
            ["implementer", "reviewer", "validator"].map(|name| name.parse::<Role>().unwrap());
        let now = Timestamp::EPOCH;
        assert_eq!(context.status(), TaskStatus::Pending);
        context.acquire(&implementer, now).unwrap();
        assert_eq!(context.status(), TaskStatus::InProgress);
        context.finish(&implementer, now).unwrap();
        assert_eq!(context.status(), TaskStatus::Waiting);
        context.block(&reviewer, Some("x")).unwrap();
        assert_eq!(context.status(), TaskStatus::Blocked);
        for role in [&reviewer, &validator] {
            context.acquire(role, now).unwrap();
            context.finish(role, now).unwrap();
        }
        assert_eq!(context.status(), TaskStatus::Done);
    }

    #[test]
    fn every_status_is_read_as_it_is_written() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::from_wire(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(TaskStatus::from_wire("nowhere"), None);
    }
}
