//! `task.list`

use std::collections::BTreeMap;

use baton_core::task::{Area, Role, TaskId};
use baton_core::{Fault, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{archived, live};
use crate::environment::{CONTEXT_FILE, TaskEnvironment};
use crate::folder::{derived_problems, read_context};
use crate::operation::{Effect, TaskOperation};
use crate::rules::{Priority, RoleStatus, TaskContext};

/// Lists the tasks of a checkout.
#[derive(Debug)]
pub struct ListTasks;

/// Parameters of `task.list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksParams {
    /// Include tasks completed in the last 30 days. Defaults to false.
    #[serde(default)]
    pub archived: bool,
}

/// Output of `task.list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksOutput {
    /// Tasks, sorted by id; completed tasks last, oldest first.
    pub tasks: Vec<TaskLine>,
}

/// One task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskLine {
    /// Task id.
    pub task_id: TaskId,
    /// Title; null if the context cannot be read.
    pub title: Option<String>,
    /// Priority.
    pub priority: Option<Priority>,
    /// Area of the code base.
    pub area: Option<Area>,
    /// Role that currently holds the task.
    pub holder: Option<Role>,
    /// Status of each role.
    pub statuses: BTreeMap<Role, RoleStatus>,
    /// Roles, in order.
    pub pipeline: Vec<Role>,
    /// Number of open blocking findings.
    pub blocking_findings: u64,
    /// Number of open drifts.
    pub drift_budget: u64,
    /// Time of the last change.
    pub updated_at: Option<Timestamp>,
    /// Time when the task was completed; null for an open task.
    pub archived_at: Option<Timestamp>,
    /// Reason why the context cannot be read.
    pub problem: Option<String>,
    /// Command that continues the task; null for a completed task.
    pub next: Option<String>,
    /// Warnings, for example files that do not match the context.
    pub warnings: Vec<String>,
}

impl TaskOperation for ListTasks {
    const NAME: &'static str = "task.list";
    const SUMMARY: &'static str = "List the tasks of this checkout with the status of each role.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListTasksParams;
    type Output = ListTasksOutput;

    fn run(environment: &TaskEnvironment, params: &ListTasksParams) -> Result<ListTasksOutput, Fault> {
        let mut tasks: Vec<TaskLine> = live(environment)
            .into_iter()
            .filter_map(|id| match read_context(environment, &id) {
                Ok(context) => {
                    let context = context?;
                    let warnings =
                        derived_problems(environment, &context).unwrap_or_else(|fault| vec![fault.message]);
                    Some(TaskLine { warnings, ..line(id, Ok(context), None) })
                }
                Err(fault) => Some(line(id, Err(fault), None)),
            })
            .collect();
        if params.archived {
            tasks.extend(archived(environment).into_iter().map(|archived| {
                let path = archived.folder.join(CONTEXT_FILE);
                let read = std::fs::read(&path).map_err(|error| crate::durable::failed("read", &path, error));
                let context =
                    read.and_then(|bytes| TaskContext::from_document(&bytes, &path.to_string_lossy()));
                line(archived.task_id, context, Some(archived.archived_at))
            }));
        }
        Ok(ListTasksOutput { tasks })
    }
}

fn line(task_id: TaskId, context: Result<TaskContext, Fault>, archived_at: Option<Timestamp>) -> TaskLine {
    let (context, problem) = match context {
        Ok(context) => (Some(context), None),
        Err(fault) => (None, Some(fault.message)),
    };
    let mut line = TaskLine {
        task_id,
        title: None,
        priority: None,
        area: None,
        holder: None,
        statuses: BTreeMap::new(),
        pipeline: Vec::new(),
        blocking_findings: 0,
        drift_budget: 0,
        updated_at: None,
        archived_at,
        problem,
        next: None,
        warnings: Vec::new(),
    };
    if let Some(context) = context {
        line.next = archived_at.is_none().then(|| context.next_command());
        line.holder = context.holder().cloned();
        line.statuses =
            context.coordination.iter().map(|(role, state)| (role.clone(), state.status)).collect();
        line.blocking_findings =
            context.coordination.values().map(|state| state.blocking_findings.len() as u64).sum();
        line.drift_budget = context.drift.open();
        line.updated_at = Some(context.audit.updated_at);
        line.pipeline = context.pipeline;
        let task = context.immutable.task_snapshot;
        line.title = Some(task.title);
        line.priority = Some(task.priority);
        line.area = Some(task.area);
    }
    line
}
