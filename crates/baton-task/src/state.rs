//! State of a task, for the index of tasks in the store.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use baton_core::task::{Role, TaskId, TaskStatus};
use baton_core::{Fault, Timestamp};

use crate::archive::archived;
use crate::environment::{CONTEXT_FILE, TaskEnvironment};
use crate::folder::read_context;
use crate::rules::TaskContext;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    pub title: String,
    pub status: TaskStatus,
    /// Role that currently holds the task.
    pub holder: Option<Role>,
    pub open_drifts: u64,
    /// Time when the task files were last written.
    pub updated_at: Timestamp,
}

impl TaskState {
    fn of(context: &TaskContext) -> Self {
        Self {
            status: context.status(),
            holder: context.holder().cloned(),
            open_drifts: context.drift.open_count(),
            updated_at: context.audit.updated_at,
            title: context.immutable.task_snapshot.title.clone(),
        }
    }
}

/// State of a task as this process saved it. A context with a large scope takes milliseconds to parse, so the state is
/// not read again while the file is the one that was written.
#[derive(Debug, Clone)]
pub(crate) struct SavedState {
    id: TaskId,
    state: TaskState,
    file: FileIdentity,
}

/// Identity of a context file. Contexts are replaced by renaming, so another context has another inode or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        let file = std::fs::symlink_metadata(path).ok()?;
        let modified = (file.mtime(), file.mtime_nsec());
        Some(Self { device: file.dev(), inode: file.ino(), size: file.size(), modified })
    }
}

impl SavedState {
    /// Describes a context that was just written. The caller must hold the lock of the task.
    pub(crate) fn of(context: &TaskContext, folder: &Path) -> Option<Self> {
        let file = FileIdentity::of(&folder.join(CONTEXT_FILE))?;
        Some(Self { id: context.task_id.clone(), state: TaskState::of(context), file })
    }

    fn is_current(&self, environment: &TaskEnvironment, id: &TaskId) -> bool {
        self.id == *id && FileIdentity::of(&environment.folder(id).join(CONTEXT_FILE)) == Some(self.file)
    }
}

/// Returns the state of a task; `None` if it has neither a context nor an archive.
///
/// # Errors
///
/// If the context cannot be read.
pub fn task_state(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<TaskState>, Fault> {
    if let Some(saved) = environment.saved().filter(|saved| saved.is_current(environment, id)) {
        return Ok(Some(saved.state));
    }
    if let Some(context) = read_context(environment, id)? {
        return Ok(Some(TaskState::of(&context)));
    }
    let Some(last) = archived(environment).into_iter().rev().find(|archived| archived.task_id == *id) else {
        return Ok(None);
    };
    let completed = TaskState {
        status: TaskStatus::Completed,
        holder: None,
        open_drifts: 0,
        updated_at: last.archived_at,
        ..TaskState::of(&last.context()?)
    };
    Ok(Some(completed))
}
