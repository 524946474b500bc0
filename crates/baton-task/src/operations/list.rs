//! `task.list`

use std::collections::BTreeMap;

use baton_core::task::{Area, Priority, Role, RoleStatus, TaskContext, TaskId};
use baton_core::{Fault, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::folder::{derived_problems, read_context};
use crate::operation::{Effect, TaskOperation};
use crate::place::{CONTEXT_FILE, TaskPlace};
use crate::shelf::{archived, live};

/// Lists the tasks of a checkout.
#[derive(Debug)]
pub struct ListTasks;

/// What [`ListTasks`] is told.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksParams {
    /// Also those that were completed in the last thirty days.
    #[serde(default)]
    pub archived: bool,
}

/// What [`ListTasks`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksOutput {
    /// The tasks, sorted by id; completed ones last, oldest first.
    pub tasks: Vec<TaskLine>,
}

/// One task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskLine {
    /// The task.
    pub task_id: TaskId,
    /// What it is called; `null` when its context cannot be read.
    pub title: Option<String>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// Which part of the code base it belongs to.
    pub area: Option<Area>,
    /// The role that holds it.
    pub holder: Option<Role>,
    /// Where each role stands.
    pub statuses: BTreeMap<Role, RoleStatus>,
    /// The roles, in order.
    pub pipeline: Vec<Role>,
    /// How many findings must be dealt with.
    pub blocking_findings: u64,
    /// How many drifts are open.
    pub drift_budget: u64,
    /// When it was written last.
    pub updated_at: Option<Timestamp>,
    /// When it was completed; `null` for one that is not.
    pub archived_at: Option<Timestamp>,
    /// Why its context cannot be read.
    pub problem: Option<String>,
    /// Command that continues the task; `null` for one that is completed.
    pub next: Option<String>,
    /// What a person should know: files beside the context that are not as it says.
    pub warnings: Vec<String>,
}

impl TaskOperation for ListTasks {
    const NAME: &'static str = "task.list";
    const SUMMARY: &'static str =
        "List the tasks with a context in this checkout and where each of them stands";
    const EFFECT: Effect = Effect::Read;
    const IDEMPOTENT: bool = true;
    type Params = ListTasksParams;
    type Output = ListTasksOutput;

    fn run(place: &TaskPlace, params: &ListTasksParams) -> Result<ListTasksOutput, Fault> {
        let mut tasks: Vec<TaskLine> = live(place)
            .into_iter()
            .filter_map(|id| match read_context(place, &id) {
                Ok(context) => {
                    let context = context?;
                    let warnings =
                        derived_problems(place, &context).unwrap_or_else(|fault| vec![fault.message]);
                    Some(TaskLine { warnings, ..line(id, Ok(context), None) })
                }
                Err(fault) => Some(line(id, Err(fault), None)),
            })
            .collect();
        if params.archived {
            tasks.extend(archived(place).into_iter().map(|archived| {
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
