//! Index of tasks in the store, used to list the tasks of all checkouts. The files of a task are authoritative: a verb
//! that wrote them succeeds even if the index cannot be updated.

use std::path::Path;

use baton_app::task::{ListTasks, ListTasksOutput, RecordTask};
use baton_core::task::{TaskId, TaskRecord, TaskStatus};
use baton_core::{ErrorCode, Fault, Operation, Venture, counted};
use baton_task::{
    AnyTaskOperation, OUTPUT_FOLDER, PurgeContext, PurgeContextOutput, SweepContexts, SweepContextsOutput,
    TaskEnvironment, VerifyWorktree, task_state,
};
use serde::Deserialize;
use serde_json::Value;

use super::args::ListArgs;
use crate::backend::Backend;
use crate::config::Config;
use crate::host::host;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, when};

/// Records the tasks that an operation changed in the index.
pub(super) fn record(
    config: &Config,
    environment: &TaskEnvironment,
    operation: &AnyTaskOperation,
    params: &Value,
    result: &Result<Value, Fault>,
) -> Result<(), Failure> {
    let changed = changed(operation, params, result);
    if changed.is_empty() {
        return Ok(());
    }
    let backend = Backend::open_briefly(config)?;
    let repo = environment.repository_name();
    for id in changed {
        let state = task_state(environment, &id)?;
        let checkout = environment.root().to_string_lossy().into_owned();
        let removed = removal(id, host(), checkout, config.configured_venture().cloned());
        // An archive left after a purge is older than the indexed state, so the entry is deleted first.
        if state.is_none() || operation.name == PurgeContext::NAME {
            backend.call::<RecordTask>(&removed, None)?;
        }
        if let Some(state) = state {
            let recorded = RecordTask {
                repo: repo.clone(),
                title: state.title,
                status: Some(state.status),
                holder: state.holder,
                open_drifts: state.open_drifts,
                updated_at: Some(state.updated_at),
                ..removed
            };
            backend.call::<RecordTask>(&recorded, None)?;
        }
    }
    Ok(())
}

/// Returns the parameters that remove a task from the index.
fn removal(task_id: TaskId, host: String, checkout: String, venture: Option<Venture>) -> RecordTask {
    RecordTask {
        task_id,
        host,
        checkout,
        venture,
        repo: None,
        title: String::new(),
        status: None,
        holder: None,
        open_drifts: 0,
        updated_at: None,
    }
}

/// Returns the tasks that an operation changed: none for a read or a failure, except that a detected drift is recorded.
fn changed(operation: &AnyTaskOperation, params: &Value, result: &Result<Value, Fault>) -> Vec<TaskId> {
    let one = || TaskId::deserialize(&params["task_id"]).into_iter().collect();
    match (operation.name, result) {
        _ if !operation.effect.is_write() => Vec::new(),
        (_, Err(fault)) => {
            let recorded = fault.details.as_ref().is_some_and(|details| details["recorded"] == true);
            if fault.code == ErrorCode::DriftDetected && recorded { one() } else { Vec::new() }
        }
        (VerifyWorktree::NAME, Ok(_)) => Vec::new(),
        (PurgeContext::NAME, Ok(answer)) => {
            let done = PurgeContextOutput::deserialize(answer).ok().filter(|done| done.purged);
            done.map(|done| done.task_id).into_iter().collect()
        }
        (SweepContexts::NAME, Ok(answer)) => match SweepContextsOutput::deserialize(answer) {
            Ok(done) if !done.dry_run => [done.swept, done.expired].concat(),
            _ => Vec::new(),
        },
        (_, Ok(_)) => one(),
    }
}

/// Lists the tasks of all checkouts. Entries of this machine whose files are gone are deleted.
pub(super) fn everywhere(mut args: ListArgs, config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::open(config)?;
    args.venture = config.chosen_venture(None);
    let mut output = backend.call::<ListTasks>(&args, None)?;
    let host = host();
    let (gone, there): (Vec<TaskRecord>, Vec<TaskRecord>) =
        output.tasks.into_iter().partition(|task| task.host == host && is_gone(task));
    output.tasks = there;
    for task in gone {
        let removed = removal(task.task_id, task.host, task.checkout, Some(task.venture));
        // On failure the next listing tries again.
        let _ = backend.call::<RecordTask>(&removed, None);
    }
    Answer::new(&output, describe(&output))
}

fn is_gone(task: &TaskRecord) -> bool {
    let output = Path::new(&task.checkout).join(OUTPUT_FOLDER);
    match task.status {
        TaskStatus::Completed => !output.exists(),
        _ => !output.join(task.task_id.as_str()).exists(),
    }
}

fn describe(output: &ListTasksOutput) -> String {
    let line = |task: &TaskRecord| {
        let holder = task.holder.as_ref().map(|role| format!(" by {role}")).unwrap_or_default();
        let drift = match task.open_drifts {
            0 => String::new(),
            open => format!("  {} open", counted(open, "drift")),
        };
        let repo = task.repo.as_ref().map(|repo| format!("  {repo}")).unwrap_or_default();
        format!(
            "{}  {}  {}{holder}{drift}{repo}  {}:{}  {}",
            task.task_id,
            task.title,
            task.status,
            task.host,
            task.checkout,
            when(task.updated_at)
        )
    };
    let next = output.tasks.iter().find(|task| task.status != TaskStatus::Completed).map(|task| {
        let folder = task.checkout.replace('\'', r"'\''");
        format!("next: cd '{folder}' && baton task get-context {}", task.task_id)
    });
    let columns: [Column<TaskRecord>; _] = [
        (Whole("TASK"), |task| task.task_id.to_string()),
        (Text("TITLE"), |task| task.title.clone()),
        (Whole("STATUS"), |task| task.status.to_string()),
        (Text("HOLDER"), |task| task.holder.as_ref().map(ToString::to_string).unwrap_or_default()),
        (Text("CHECKOUT"), |task| format!("{}:{}", task.host, task.checkout)),
        (Whole("UPDATED"), |task| when(task.updated_at)),
    ];
    let empty = "no tasks in the store\nnext: baton task init-context TASK, in a checkout";
    let mut lines = list_items(&output.tasks, empty, line, columns);
    lines.extend(next);
    lines.join("\n")
}
