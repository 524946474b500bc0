//! State of a task, for the index of tasks in the store.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use baton_core::Timestamp;
use baton_core::task::{Role, TaskId, TaskStatus};

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
    pub(crate) fn of(context: &TaskContext) -> Self {
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
#[derive(Debug)]
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
    /// Describes a context that was just written to `path`. The caller must hold the lock of the task.
    pub(crate) fn of(context: &TaskContext, path: &Path) -> Option<Self> {
        let file = FileIdentity::of(path)?;
        Some(Self { id: context.task_id.clone(), state: TaskState::of(context), file })
    }

    /// Returns the state if it is that of the task and the file at `path` is still the one that was written.
    pub(crate) fn current(&self, id: &TaskId, path: &Path) -> Option<TaskState> {
        (self.id == *id && FileIdentity::of(path) == Some(self.file)).then(|| self.state.clone())
    }
}
