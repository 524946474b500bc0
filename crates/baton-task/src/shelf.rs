//! Where tasks go when they are done with: the archive, kept for a while, and the bin.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::task::TaskId;
use baton_core::{Fault, Timestamp};

use crate::durable::{failed, make_folder, sync_folder};
use crate::folder::read_context;
use crate::place::{OBJECTS_FOLDER, TaskPlace};

/// The folder of completed tasks.
pub(crate) const ARCHIVE: &str = ".archive";

/// The folder of what is being removed.
const BIN: &str = ".trash";

/// How long completed tasks are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// A completed task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archived {
    /// The task.
    pub(crate) task_id: TaskId,
    /// When it was put there.
    pub(crate) archived_at: Timestamp,
    /// Its folder.
    pub(crate) folder: PathBuf,
}

/// Moves a task's folder into the archive: one rename, so it is here or there.
pub(crate) fn archive(place: &TaskPlace, id: &TaskId, now: Timestamp) -> Result<PathBuf, Fault> {
    let shelf = place.output().join(ARCHIVE);
    make_folder(&shelf)?;
    let mut millis = now.as_millis();
    let mut target = shelf.join(format!("{id}@{millis}"));
    while target.symlink_metadata().is_ok() {
        millis += 1;
        target = shelf.join(format!("{id}@{millis}"));
    }
    move_folder(&place.folder(id), &target)?;
    sync_folder(&place.output())?;
    Ok(target)
}

/// Removes a folder; says whether it was there. It is moved away first, so that nobody sees half of it.
pub(crate) fn remove(place: &TaskPlace, folder: &Path, now: Timestamp) -> Result<bool, Fault> {
    if folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(false);
    }
    let bin = place.output().join(BIN);
    make_folder(&bin)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let target = bin.join(format!("{name}.{}.{}", now.as_millis(), std::process::id()));
    move_folder(folder, &target)?;
    if let Some(parent) = folder.parent() {
        sync_folder(parent)?;
    }
    empty_bin(place);
    Ok(true)
}

/// Removes the objects of snapshots that no context needs any more. Only whoever holds the lock may.
pub(crate) fn drop_objects(place: &TaskPlace, now: Timestamp) {
    let folder = place.output().join(OBJECTS_FOLDER);
    let ids = live(place);
    if ids.is_empty() {
        if let Err(fault) = remove(place, &folder, now) {
            tracing::warn!(error = %fault.message, "objects of snapshots could not be removed; the next sweep tries again");
        }
    } else if folder.is_dir()
        && let Err(fault) = keep_objects_of(place, &ids)
    {
        // Without git, as an example: that they stay harms nobody.
        tracing::info!(error = %fault.message, "objects of snapshots were not looked through; the next sweep tries again");
    }
}

/// A context that cannot be read may need any object, so then all of them stay.
fn keep_objects_of(place: &TaskPlace, ids: &[TaskId]) -> Result<(), Fault> {
    let (mut snapshots, mut trees) = (Vec::new(), Vec::new());
    for id in ids {
        let Some(context) = read_context(place, id)? else { continue };
        trees.extend(context.snapshots.into_iter().map(|snapshot| snapshot.tree));
        trees.extend(context.drift.events.into_iter().map(|event| event.actual.tree));
        let of_roles = context.coordination.into_values().filter_map(|state| state.worktree_snapshot);
        snapshots.extend(of_roles.chain(context.resolution));
    }
    place.tree().keep_only(&snapshots, &trees)
}

/// Removes what a killed process left in the bin. Only whoever holds the lock may.
pub(crate) fn empty_bin(place: &TaskPlace) {
    let bin = place.output().join(BIN);
    if let Err(error) = fs::remove_dir_all(&bin)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(folder = %bin.display(), %error, "what was removed could not be deleted; the next sweep tries again");
    }
}

fn move_folder(from: &Path, to: &Path) -> Result<(), Fault> {
    fs::rename(from, to).map_err(|error| failed("moved", from, error))?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// Lists completed tasks, oldest first.
pub(crate) fn archived(place: &TaskPlace) -> Vec<Archived> {
    let mut list: Vec<Archived> = fs::read_dir(place.output().join(ARCHIVE))
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

/// Removes completed tasks that were kept long enough. What cannot be removed is tried again by the next sweep.
pub(crate) fn drop_expired(place: &TaskPlace, now: Timestamp) -> Vec<Archived> {
    let expired = archived(place).into_iter().filter(|archived| archived.archived_at.plus(KEPT) <= now);
    expired.filter(|archived| remove(place, &archived.folder, now).unwrap_or(false)).collect()
}

/// Lists the ids of tasks that have a folder, sorted.
pub(crate) fn live(place: &TaskPlace) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = fs::read_dir(place.output())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort();
    ids
}
