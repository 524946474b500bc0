//! Fields of a task file (`tasks/**/TASK-XXXX*.task.yaml`) and their validation. YAML is parsed elsewhere.

use std::fmt;

use baton_core::task::{Area, Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a task that is in progress.
pub const IN_PROGRESS: &str = "in_progress";

/// Priority of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Priority {
    /// Highest priority.
    P0,
    /// Normal priority.
    P1,
    /// Low priority.
    P2,
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A task file. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskFile {
    /// Task id, if the file contains it.
    pub id: Option<TaskId>,
    /// Title of the task.
    pub title: String,
    /// Status: `in_progress` while the task is active.
    pub status: String,
    /// Priority.
    pub priority: Priority,
    /// Area of the code base.
    pub area: Area,
    /// Description of the work and its reason.
    pub description: String,
    /// Scope of the task.
    #[serde(default)]
    pub scope: Scope,
    /// Alternative spelling of `scope.in`.
    #[serde(default)]
    pub scope_in: Vec<String>,
    /// Alternative spelling of `scope.out`.
    #[serde(default)]
    pub scope_out: Vec<String>,
    /// Acceptance criteria.
    #[serde(default)]
    pub acceptance_criteria: Vec<String>,
    /// Standards that apply in addition to those of the area.
    #[serde(default)]
    pub standards: Vec<StandardRef>,
    /// QA commands.
    #[serde(default)]
    pub qa: QaPlan,
    /// Roles, in order. Defaults to the configured roles.
    pub pipeline: Option<Vec<Role>>,
}

/// Scope of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Scope {
    /// What is in scope.
    #[serde(default, rename = "in")]
    pub inside: Vec<String>,
    /// What is out of scope.
    #[serde(default, rename = "out")]
    pub outside: Vec<String>,
}

/// QA of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct QaPlan {
    /// Commands to run.
    #[serde(default)]
    pub commands: Vec<String>,
}

/// Section of a standard: `standards/typescript.md#strict-config`, or its parts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum StandardRef {
    /// `file#section`.
    Text(String),
    /// File, section and requirement.
    Parts {
        /// Path of the file.
        file: String,
        /// Heading or its slug.
        section: String,
        /// Requirement, at most 140 characters. Defaults to the first sentence of the section.
        #[serde(default)]
        requirement: Option<String>,
    },
}

impl TaskFile {
    /// Returns what is in scope.
    pub fn scope_in(&self) -> impl Iterator<Item = &str> {
        self.scope.inside.iter().chain(&self.scope_in).map(String::as_str)
    }

    /// Returns what is out of scope.
    pub fn scope_out(&self) -> impl Iterator<Item = &str> {
        self.scope.outside.iter().chain(&self.scope_out).map(String::as_str)
    }

    /// Checks the required fields.
    ///
    /// # Errors
    ///
    /// `invalid_request` that lists every field that is empty or invalid.
    pub fn check(&self, path: &str) -> Result<(), Fault> {
        let mut problems: Vec<(&str, String)> = Vec::new();
        for (field, text) in [("title", &self.title), ("description", &self.description)] {
            if text.trim().is_empty() {
                problems.push((field, "is empty".into()));
            }
        }
        if let Some(pipeline) = &self.pipeline
            && let Err(problem) = check_pipeline(pipeline)
        {
            problems.push(("pipeline", problem));
        }
        if problems.is_empty() { Ok(()) } else { Err(refused(path, &problems)) }
    }

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

fn refused(path: &str, problems: &[(&str, String)]) -> Fault {
    let list: Vec<String> = problems.iter().map(|(field, problem)| format!("{field} {problem}")).collect();
    let fields: Vec<_> = problems
        .iter()
        .map(|(field, problem)| serde_json::json!({ "field": field, "problem": problem }))
        .collect();
    Fault::new(ErrorCode::InvalidRequest, format!("{path}: {}", list.join("; ")))
        .hint(format!("fix {path} and try again"))
        .details(serde_json::json!({ "fields": fields, "path": path }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(change: serde_json::Value) -> TaskFile {
        let mut value = json!({ "title": "t", "status": "in_progress", "priority": "P1", "area": "backend",
            "description": "d", "scope": { "in": ["a"], "out": ["b"] }, "scope_in": ["c"], "owner": "someone" });
        baton_core::merge_patch(value.as_object_mut().unwrap(), change.as_object().unwrap());
        serde_json::from_value(value).unwrap()
    }

    fn id() -> TaskId {
        "TASK-1".parse().unwrap()
    }

    #[test]
    fn both_notations_of_scope_are_read() {
        let file = file(json!({ "standards": ["a.md#b", { "file": "c.md", "section": "D" }] }));
        assert_eq!(file.scope_in().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(file.scope_out().collect::<Vec<_>>(), ["b"]);
        assert_eq!(file.standards.len(), 2);
        assert!(file.check("x").is_ok() && file.check_in_progress(&id(), "x").is_ok());
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let bad =
            file(json!({ "id": "TASK-2", "title": " ", "description": "\n", "pipeline": ["a", "b", "a"] }));
        let fault = bad.check("tasks/x").unwrap_err();
        for part in ["title is empty", "description is empty", "names a twice"] {
            assert!(fault.message.contains(part), "{}", fault.message);
        }
        assert_eq!(fault.details.unwrap()["fields"].as_array().unwrap().len(), 3);
        let done = file(json!({ "status": "completed" })).check_in_progress(&id(), "x").unwrap_err();
        assert_eq!(done.code, ErrorCode::TaskConflict);
    }
}
