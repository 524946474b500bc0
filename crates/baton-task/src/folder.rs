//! The folder of one task: its context, its derived files and its locks.
//!
//! Two locks: a verb holds the lock of its task from beginning to end, and the store lock over everything below
//! `.agent-output/` only while it writes. Reading a large working tree therefore does not block other tasks. The order
//! is always task, then store.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault, Sha256Hash};

use crate::durable::{Batch, failed, make_folder, remove_temporaries};
use crate::environment::{CONTEXT_FILE, OUTPUT_FOLDER, TaskEnvironment};
use crate::lock::FolderLock;
use crate::rules::{MANIFEST_FILE, Manifest, TaskContext, derive, export_edges, export_file};

const IGNORE_FILE: &str = ".gitignore";

/// Folder of the task locks.
const LOCKS_FOLDER: &str = ".locks";

/// Reads the context of a task; `None` if the task has no context.
pub(crate) fn read_context(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<TaskContext>, Fault> {
    let path = environment.context_file(id);
    match fs::read(&path) {
        Ok(bytes) => {
            let context =
                TaskContext::from_document(&bytes, &format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE}"))?;
            if context.task_id == *id {
                return Ok(Some(context));
            }
            let message =
                format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE} is the context of {}", context.task_id);
            Err(Fault::new(ErrorCode::TaskCorrupt, message)
                .hint("move the folder back to its original place"))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(failed("read", &path, error)),
    }
}

/// Acquires the store lock and creates the folder if it is missing.
pub(crate) fn lock_store(environment: &TaskEnvironment) -> Result<FolderLock, Fault> {
    let folder = environment.output();
    make_folder(&folder)?;
    let lock = FolderLock::take(&folder, environment.lock_timeout)?;
    remove_temporaries(&folder);
    write_gitignore(&folder)?;
    Ok(lock)
}

/// Acquires the store lock; `None` if the folder does not exist.
pub(crate) fn lock_existing_store(environment: &TaskEnvironment) -> Result<Option<FolderLock>, Fault> {
    match fs::symlink_metadata(environment.output()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => lock_store(environment).map(Some),
    }
}

/// Acquires the lock of a task; the task need not exist. Lock files are never deleted, because two processes could then
/// lock two different files.
pub(crate) fn lock_task(environment: &TaskEnvironment, id: &TaskId) -> Result<FolderLock, Fault> {
    let folder = task_lock_folder(environment, id)?;
    FolderLock::take(&folder, environment.lock_timeout)
}

/// Acquires the lock of a task; `None` if another verb holds it.
pub(crate) fn try_lock_task(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<FolderLock>, Fault> {
    let folder = task_lock_folder(environment, id)?;
    FolderLock::try_take(&folder)
}

fn task_lock_folder(environment: &TaskEnvironment, id: &TaskId) -> Result<PathBuf, Fault> {
    if environment.output().join(IGNORE_FILE).symlink_metadata().is_err() {
        drop(lock_store(environment)?);
    }
    let locks = environment.output().join(LOCKS_FOLDER);
    let folder = locks.join(id.as_str());
    make_folder(&locks)?;
    make_folder(&folder)?;
    Ok(folder)
}

/// Writes a `.gitignore` unless the folder has one, because diffs and logs must not be committed.
fn write_gitignore(folder: &Path) -> Result<(), Fault> {
    if folder.join(IGNORE_FILE).symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut batch = Batch::new(folder);
    batch.add(IGNORE_FILE, b"*\n")?;
    batch.commit()
}

/// Returns the highest number of an artifact in a folder.
pub(crate) fn last_number(folder: &Path) -> u64 {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number =
        |name: std::ffi::OsString| name.to_str()?.split_once('-')?.0.parse::<u32>().ok().map(u64::from);
    names.filter_map(number).max().unwrap_or(0)
}

/// Lists exports and manifests that do not match the context, with the problem. A crash can leave the files of a
/// context that was never written, and users can edit or remove them.
pub(crate) fn derived_problems(
    environment: &TaskEnvironment,
    context: &TaskContext,
) -> Result<Vec<String>, Fault> {
    if exports_are_current(&environment.folder(&context.task_id), context) {
        return Ok(Vec::new());
    }
    let folder = format!("{OUTPUT_FOLDER}/{}", context.task_id);
    let derived = derive(context)?;
    let stale = stale_files(&environment.folder(&context.task_id), &derived);
    Ok(stale.into_iter().map(|(name, problem)| format!("{folder}/{name} {problem}")).collect())
}

/// Returns true if the manifest matches the context, and every export has the hash of the manifest and the beginning
/// and end derived from the context. The frozen part in between is covered by the hash.
pub(crate) fn exports_are_current(folder: &Path, context: &TaskContext) -> bool {
    let manifest = fs::read(folder.join(MANIFEST_FILE)).ok();
    let Some(manifest) = manifest.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok()) else {
        return false;
    };
    let is_current = |role: &Role| {
        let name = export_file(role);
        let (Ok(bytes), Ok((before, after))) = (fs::read(folder.join(&name)), export_edges(context, role))
        else {
            return false;
        };
        manifest.derived.get(&name) == Some(&Sha256Hash::of(&bytes))
            && bytes.starts_with(before.as_bytes())
            && bytes.ends_with(after.as_bytes())
    };
    manifest.immutable_sha256 == context.immutable_revision.sha256
        && manifest.immutable_revision == context.immutable_revision.number
        && manifest.sources == context.sources
        && manifest.derived.len() == context.pipeline.len()
        && context.pipeline.iter().all(is_current)
}

fn stale_files<'a>(folder: &Path, derived: &'a [(String, String)]) -> Vec<(&'a str, &'static str)> {
    let problem = |(name, text): &'a (String, String)| match fs::read(folder.join(name)) {
        Ok(bytes) if bytes == text.as_bytes() => None,
        Ok(_) => Some((name.as_str(), "was modified")),
        Err(_) => Some((name.as_str(), "is missing")),
    };
    derived.iter().filter_map(problem).collect()
}
