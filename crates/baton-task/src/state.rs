//! State of a task, for the index of tasks in the store.

use baton_core::task::{Role, TaskContext, TaskId, TaskStatus};
use baton_core::{Fault, Timestamp};

use crate::archive::archived;
use crate::environment::{CONTEXT_FILE, TaskEnvironment};
use crate::folder::read_context;

/// State of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// Title of the task.
    pub title: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Role that currently holds the task.
    pub holder: Option<Role>,
    /// Number of open drifts.
    pub open_drifts: u64,
    /// Time when the task files were last written.
    pub updated_at: Timestamp,
}

/// Returns the state of a task; `None` if it has neither a context nor an archive.
///
/// # Errors
///
/// If the context cannot be read.
pub fn task_state(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<TaskState>, Fault> {
    let state = |context: TaskContext| TaskState {
        status: context.status(),
        holder: context.holder().cloned(),
        open_drifts: context.drift.open(),
        updated_at: context.audit.updated_at,
        title: context.immutable.task_snapshot.title,
    };
    if let Some(context) = read_context(environment, id)? {
        return Ok(Some(state(context)));
    }
    let Some(last) = archived(environment).into_iter().rev().find(|archived| archived.task_id == *id) else {
        return Ok(None);
    };
    let path = last.folder.join(CONTEXT_FILE);
    let read = std::fs::read(&path).map_err(|error| crate::durable::failed("read", &path, error))?;
    let context = TaskContext::from_document(&read, &path.to_string_lossy())?;
    let completed = TaskState {
        status: TaskStatus::Completed,
        holder: None,
        open_drifts: 0,
        updated_at: last.archived_at,
        ..state(context)
    };
    Ok(Some(completed))
}
