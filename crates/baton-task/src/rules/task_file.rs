//! Fields of a task file (`tasks/**/TASK-XXXX*.task.yaml`). YAML is parsed elsewhere.

use baton_core::task::{Area, Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a task that is in progress.
pub const IN_PROGRESS: &str = "in_progress";

/// Priority of a task.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
)]
pub enum Priority {
    /// Highest priority.
    P0,
    /// Normal priority.
    P1,
    /// Low priority.
    P2,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskFile {
    /// Task id, if the file contains it.
    pub id: Option<TaskId>,
    /// Title of the task.
    pub title: String,
    /// Status: `in_progress` while the task is active.
    pub status: String,
    pub priority: Priority,
    /// Area of the code base.
    pub area: Area,
    /// Description of the work and its reason.
    pub description: String,
    /// What is in scope.
    #[serde(default)]
    pub scope_in: Vec<String>,
    /// What is out of scope.
    #[serde(default)]
    pub scope_out: Vec<String>,
    #[serde(default)]
    pub acceptance_criteria: Vec<String>,
    /// Standards that apply in addition to those of the area.
    #[serde(default)]
    pub standards: Vec<StandardRef>,
    #[serde(default)]
    pub qa_commands: Vec<String>,
    /// Roles, in order. Defaults to the configured roles.
    pub pipeline: Option<Vec<Role>>,
}

/// Section of a standard, for example `strict-config` of `standards/typescript.md`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StandardRef {
    /// Path of the file.
    pub file: String,
    /// Heading or its slug.
    pub section: String,
    /// Requirement, at most 140 characters. Defaults to the first sentence of the section.
    pub requirement: Option<String>,
}

impl TaskFile {
    /// Checks that the status of the task is `in_progress`.
    ///
    /// # Errors
    ///
    /// `task_conflict` for any other status.
    pub fn check_in_progress(&self, id: &TaskId, path: &str) -> Result<(), Fault> {
        if self.status == IN_PROGRESS {
            return Ok(());
        }
        let message = format!("{id} is {:?} in {path}, not {IN_PROGRESS:?}", self.status);
        Err(Fault::new(ErrorCode::TaskConflict, message)
            .hint(format!("set `status: {IN_PROGRESS}` in {path}, then run baton task init-context {id}")))
    }
}

/// Checks that a pipeline has at least one role and no duplicates.
pub fn check_pipeline(pipeline: &[Role]) -> Result<(), String> {
    if pipeline.is_empty() || pipeline.len() > 16 {
        return Err("must name 1 to 16 roles".into());
    }
    let twice = pipeline.iter().enumerate().find(|(at, role)| pipeline[..*at].contains(role));
    twice.map_or(Ok(()), |(_, role)| Err(format!("names {role} twice")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(change: serde_json::Value) -> TaskFile {
        let mut value = json!({ "title": "t", "status": "in_progress", "priority": "P1", "area": "backend",
            "description": "d" });
        baton_core::merge_patch(value.as_object_mut().unwrap(), change.as_object().unwrap());
        serde_json::from_value(value).unwrap()
    }

    fn id() -> TaskId {
        "TASK-1".parse().unwrap()
    }

    #[test]
    fn only_a_task_in_progress_is_accepted() {
        assert!(file(json!({})).check_in_progress(&id(), "x").is_ok());
        let done = file(json!({ "status": "completed" })).check_in_progress(&id(), "x").unwrap_err();
        assert_eq!(done.code, ErrorCode::TaskConflict);
    }
}
