//! The archive of completed tasks, contexts that are live or archived, and the trash for folders that are being deleted.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::task::{TaskId, TaskStatus};
use baton_core::{ErrorCode, Fault, Timestamp};

use crate::durable::{failed, make_folder, sync_folder};
use crate::environment::{CONTEXT_FILE, OBJECTS_FOLDER, TaskEnvironment};
use crate::folder::read_context;
use crate::rules::TaskContext;
use crate::task_state::TaskState;

/// Folder of completed tasks.
pub(crate) const ARCHIVE: &str = ".archive";

/// Folder of files that are being deleted.
const TRASH: &str = ".trash";

/// Retention of completed tasks.
pub(crate) const RETENTION: Duration = Duration::from_secs(30 * 86_400);

/// A completed task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archived {
    pub(crate) task_id: TaskId,
    /// Time when the task was archived.
    pub(crate) archived_at: Timestamp,
    /// Folder in the archive.
    pub(crate) folder: PathBuf,
}

impl Archived {
    /// Reads the context of the task.
    pub(crate) fn context(&self) -> Result<TaskContext, Fault> {
        let path = self.folder.join(CONTEXT_FILE);
        let bytes = fs::read(&path).map_err(|error| failed("read", &path, error))?;
        TaskContext::from_document(&bytes, &path.to_string_lossy())
    }
}

/// Moves the folder of a task to the archive with one atomic rename.
pub(crate) fn archive(environment: &TaskEnvironment, id: &TaskId, now: Timestamp) -> Result<PathBuf, Fault> {
    let folder = environment.output().join(ARCHIVE);
    make_folder(&folder)?;
    let mut millis = now.as_millis();
    let mut target = folder.join(format!("{id}@{millis}"));
    while target.symlink_metadata().is_ok() {
        millis += 1;
        target = folder.join(format!("{id}@{millis}"));
    }
    move_folder(&environment.folder(id), &target)?;
    sync_folder(&environment.output())?;
    Ok(target)
}

/// Deletes a folder; returns false if it does not exist. It is moved to the trash first, so that it disappears
/// atomically.
pub(crate) fn remove(environment: &TaskEnvironment, folder: &Path, now: Timestamp) -> Result<bool, Fault> {
    if folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(false);
    }
    let trash = environment.output().join(TRASH);
    make_folder(&trash)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let target = trash.join(format!("{name}.{}.{}", now.as_millis(), std::process::id()));
    move_folder(folder, &target)?;
    if let Some(parent) = folder.parent() {
        sync_folder(parent)?;
    }
    empty_trash(environment);
    Ok(true)
}

/// Removes snapshot objects that no context refers to. The caller must hold the store lock.
pub(crate) fn drop_objects(environment: &TaskEnvironment, now: Timestamp) {
    let folder = environment.output().join(OBJECTS_FOLDER);
    let ids = live(environment);
    if ids.is_empty() {
        if let Err(fault) = remove(environment, &folder, now) {
            tracing::warn!(error = %fault.message, "cannot remove objects of snapshots; the next sweep retries");
        }
    } else if folder.is_dir()
        && let Err(fault) = keep_objects_of(environment, &ids)
    {
        // For example without git. Unused objects have no effect.
        tracing::info!(error = %fault.message, "cannot search objects of snapshots; the next sweep retries");
    }
}

/// Keeps the objects of these contexts. An unreadable context may refer to any object, so then all are kept.
fn keep_objects_of(environment: &TaskEnvironment, ids: &[TaskId]) -> Result<(), Fault> {
    let (mut snapshots, mut trees) = (Vec::new(), Vec::new());
    for id in ids {
        let Some(context) = read_context(environment, id)? else { continue };
        trees.extend(context.snapshots.into_iter().map(|snapshot| snapshot.tree));
        trees.extend(context.drift.events.into_iter().map(|event| event.actual.tree));
        let of_roles = context.coordination.into_values().filter_map(|state| state.worktree_snapshot);
        snapshots.extend(of_roles.chain(context.resolution));
    }
    environment.tree().keep_only(&snapshots, &trees)
}

/// Deletes the trash, including files left by a killed process. The caller must hold the store lock.
pub(crate) fn empty_trash(environment: &TaskEnvironment) {
    let trash = environment.output().join(TRASH);
    if let Err(error) = fs::remove_dir_all(&trash)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(folder = %trash.display(), %error, "cannot delete a removed folder; the next sweep retries");
    }
}

fn move_folder(from: &Path, to: &Path) -> Result<(), Fault> {
    fs::rename(from, to).map_err(|error| failed("move", from, error))?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// Lists completed tasks, oldest first.
pub(crate) fn archived(environment: &TaskEnvironment) -> Vec<Archived> {
    let mut list: Vec<Archived> = fs::read_dir(environment.output().join(ARCHIVE))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let (id, millis) = name.to_str()?.split_once('@')?;
            let archived_at = Timestamp::from_millis(millis.parse().ok()?);
            Some(Archived { task_id: id.parse().ok()?, archived_at, folder: entry.path() })
        })
        .collect();
    list.sort_by(|one, other| (one.archived_at, &one.task_id).cmp(&(other.archived_at, &other.task_id)));
    list
}

/// Returns the newest archived context of a task.
fn last_archived(environment: &TaskEnvironment, id: &TaskId) -> Option<Archived> {
    archived(environment).into_iter().rev().find(|archived| archived.task_id == *id)
}

/// Deletes archived tasks after their retention. If that fails, the next sweep tries again.
pub(crate) fn drop_expired(environment: &TaskEnvironment, now: Timestamp) -> Vec<Archived> {
    let expired =
        archived(environment).into_iter().filter(|archived| archived.archived_at.plus(RETENTION) <= now);
    expired.filter(|archived| remove(environment, &archived.folder, now).unwrap_or(false)).collect()
}

/// Lists the ids of tasks that have a folder, sorted.
pub(crate) fn live(environment: &TaskEnvironment) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = fs::read_dir(environment.output())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort();
    ids
}

/// Reads the context of a task; a missing context is an error.
pub(crate) fn require_context(environment: &TaskEnvironment, id: &TaskId) -> Result<TaskContext, Fault> {
    read_context(environment, id)?.ok_or_else(|| no_context(environment, id))
}

pub(crate) fn no_context(environment: &TaskEnvironment, id: &TaskId) -> Fault {
    if let Some(archived) = last_archived(environment, id) {
        let folder = archived.folder.strip_prefix(environment.root()).unwrap_or(&archived.folder).to_owned();
        let (at, until) = (archived.archived_at, archived.archived_at.plus(RETENTION));
        let message =
            format!("{id} was archived at {at}; its files are in {} until {until}", folder.display());
        return Fault::new(ErrorCode::TaskNotFound, message)
            .hint(format!("read them there, or start again with baton task init-context {id}"));
    }
    Fault::new(ErrorCode::TaskNotFound, format!("{id} has no context here")).hint(format!(
        "create one with baton task init-context {id}; baton task list shows the existing tasks"
    ))
}

/// Returns the state of a task; `None` if it has neither a context nor an archive.
///
/// # Errors
///
/// If the context cannot be read.
pub fn task_state(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<TaskState>, Fault> {
    if let Some(state) = environment.saved(id) {
        return Ok(Some(state));
    }
    if let Some(context) = read_context(environment, id)? {
        return Ok(Some(TaskState::of(&context)));
    }
    let Some(last) = last_archived(environment, id) else { return Ok(None) };
    let completed = TaskState {
        status: TaskStatus::Completed,
        holder: None,
        open_drifts: 0,
        updated_at: last.archived_at,
        ..TaskState::of(&last.context()?)
    };
    Ok(Some(completed))
}
