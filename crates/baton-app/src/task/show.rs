//! `task.show`: shows one task with its files, if they are on the server's machine.

use std::path::Path;

use baton_core::task::{TaskId, TaskRecord};
use baton_core::{ErrorCode, Venture};

use crate::machine::TaskFiles;
use crate::prelude::*;

/// The task to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowTask {
    /// Task id with venture, host and checkout, as search returns it, for example
    /// `local/TASK-0824@build-3:/srv/webshop`.
    pub id: String,
}

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowTaskOutput {
    /// State of the task in the index.
    pub task: TaskRecord,
    /// Content of the task's files, or null if the server cannot read them.
    pub files: Option<TaskFiles>,
    /// Why `files` is null.
    pub problem: Option<String>,
}

/// Address of a task, and its files or the reason why they are not shown.
#[derive(Debug)]
pub struct TaskToShow {
    venture: Venture,
    host: String,
    checkout: String,
    task_id: TaskId,
    files: Result<TaskFiles, String>,
}

impl Operation<OnStore> for ShowTask {
    const NAME: &'static str = "task.show";
    const SUMMARY: &'static str = "Show a task of any checkout. If the checkout is on the server's machine, \
        the roles, drifts, QA results and diffs are included.";
    const EFFECT: Effect = Effect::Read;
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Input = TaskToShow;
    type Output = ShowTaskOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let (venture, host, checkout, task_id) = TaskRecord::parse_item_id(&params.id).ok_or_else(|| {
            Fault::invalid("id", "must have the form venture/TASK@host:checkout, as search returns it")
        })?;
        context.actor.require_venture(&venture)?;
        let files = files(context, host, checkout, &task_id);
        Ok(TaskToShow { venture, host: host.to_owned(), checkout: checkout.to_owned(), task_id, files })
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let TaskToShow { venture, host, checkout, task_id, files } = input;
        context.actor.require_venture(venture)?;
        let task = tx.task(venture, host, checkout, task_id)?.ok_or_else(|| {
            let message = format!("there is no task {task_id} of {checkout} on {host} in venture {venture}");
            Fault::new(ErrorCode::NotFound, message)
                .hint("list tasks with tasks_everywhere (GET /api/tasks, baton task list --everywhere)")
        })?;
        Ok(ShowTaskOutput {
            task,
            files: files.as_ref().ok().cloned(),
            problem: files.as_ref().err().cloned(),
        })
    }
}

/// Reads the files of a task.
///
/// A token that is limited to ventures could add an index entry with any path, so it does not get files.
fn files(context: &Context<'_>, host: &str, checkout: &str, id: &TaskId) -> Result<TaskFiles, String> {
    let elsewhere =
        || format!("The files are on {host}. Run baton task get-context {id} there, in {checkout}.");
    let machine = context.settings.machine.as_ref().filter(|machine| machine.host() == host);
    let machine = machine.ok_or_else(elsewhere)?;
    context
        .actor
        .require_every_venture()
        .map_err(|_| "The files are shown only with access to all ventures.".to_owned())?;
    machine.task_files(Path::new(checkout), id).map_err(|fault| fault.message)
}
