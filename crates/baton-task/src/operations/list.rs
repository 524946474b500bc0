//! `task.list`

use std::collections::BTreeMap;

use baton_core::task::{Area, Role, TaskId};
use baton_core::{Fault, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{archived, live};
use crate::environment::TaskEnvironment;
use crate::folder::{derived_problems, read_context};
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{Priority, RoleStatus, TaskContext};

/// Lists the tasks of a checkout.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
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
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Title; null if the context cannot be read.
    pub title: Option<String>,
    /// Priority of the task, `P0` (highest) to `P2`.
    pub priority: Option<Priority>,
    /// Area of the code base.
    pub area: Option<Area>,
    /// Role that currently holds the task.
    pub holder: Option<Role>,
    /// Status of each role.
    pub statuses: BTreeMap<Role, RoleStatus>,
    /// Roles in the order in which they work, for example `implementer`, `reviewer`.
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

impl Operation<OnCheckout> for ListTasks {
    const NAME: &'static str = "task.list";
    const SUMMARY: &'static str = "List the tasks of this checkout with the status of each role.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListTasksOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
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
                let context = archived.context();
                line(archived.task_id, context, Some(archived.archived_at))
            }));
        }
        Ok(ListTasksOutput { tasks })
    }
}

fn line(task_id: TaskId, context: Result<TaskContext, Fault>, archived_at: Option<Timestamp>) -> TaskLine {
    let (context, problem) = match &context {
        Ok(context) => (Some(context), None),
        Err(fault) => (None, Some(fault.message.clone())),
    };
    let task = context.map(|context| &context.immutable.task_snapshot);
    let findings = |context: &TaskContext| -> u64 {
        context.coordination.values().map(|state| state.blocking_findings.len() as u64).sum()
    };
    TaskLine {
        task_id,
        title: task.map(|task| task.title.clone()),
        priority: task.map(|task| task.priority),
        area: task.map(|task| task.area.clone()),
        holder: context.and_then(TaskContext::holder).cloned(),
        statuses: context.map(TaskContext::statuses).unwrap_or_default(),
        pipeline: context.map(|context| context.pipeline.clone()).unwrap_or_default(),
        blocking_findings: context.map_or(0, findings),
        drift_budget: context.map_or(0, |context| context.drift.open_count()),
        updated_at: context.map(|context| context.audit.updated_at),
        archived_at,
        problem,
        next: context.filter(|_| archived_at.is_none()).map(TaskContext::next_command),
        warnings: Vec::new(),
    }
}
