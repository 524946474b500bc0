//! Restores files of the working tree to the content of a snapshot. The previous content is kept first.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use baton_core::task::{Artifact, TreeChange};
use baton_core::{ErrorCode, Fault};

use crate::artifact::Compress;
use crate::durable::{TEMPORARY_PREFIX, failed};
use crate::folder::Draft;
use crate::tree::SnapshotFile;
use crate::worktree::Verified;

/// Git mode of a nested repository.
const NESTED: &str = "160000";

/// Result of a restore.
pub(crate) struct Restored {
    /// Paths of the restored files.
    pub(crate) paths: Vec<String>,
    /// Previous content of the restored files that existed.
    pub(crate) set_aside: Vec<Artifact>,
}

/// Restores the given files that differ from a snapshot; all of them if `paths` is `None`.
pub(crate) fn restore(
    draft: &mut Draft<'_>,
    verified: &Verified,
    paths: Option<&[String]>,
) -> Result<Restored, Fault> {
    let chosen = choose(&verified.changes, paths)?;
    let root = draft.environment().root().to_owned();
    let mut files = Vec::new();
    let mut set_aside = Vec::new();
    for path in chosen {
        let expected = draft.environment().tree().snapshot_file(&verified.snapshot.record, &path)?;
        let full = root.join(&path);
        if let Some(bytes) = current(&full)? {
            set_aside.push(draft.keep("set-aside", "bin", &bytes, Compress::WhenLarge)?);
        }
        files.push((path, expected));
    }
    draft.write_kept()?;
    for (path, expected) in &files {
        let full = root.join(path);
        put(&full, expected.as_ref()).map_err(|error| failed("restored", &full, error))?;
    }
    Ok(Restored { paths: files.into_iter().map(|(path, _)| path).collect(), set_aside })
}

/// Returns the paths to restore. A renamed file has two.
fn choose(changes: &[TreeChange], paths: Option<&[String]>) -> Result<Vec<String>, Fault> {
    let mut all = Vec::new();
    for change in changes {
        if change.mode.as_deref() == Some(NESTED) || change.previous_mode.as_deref() == Some(NESTED) {
            let message = format!("cannot restore {}: it is a nested repository", change.path);
            return Err(Fault::new(ErrorCode::TaskConflict, message).hint("check out its commit with git"));
        }
        all.extend(change.previous_path.clone());
        all.push(change.path.clone());
    }
    let Some(paths) = paths else { return Ok(all) };
    let unknown: Vec<&str> = paths.iter().filter(|path| !all.contains(path)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let problem =
            format!("{} did not change; the changed files are {}", unknown.join(", "), all.join(", "));
        return Err(Fault::invalid("restore", problem));
    }
    Ok(paths.to_vec())
}

/// Returns the content of a file or the target of a link; `None` if the path does not exist.
fn current(path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    let read = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            fs::read_link(path).map(|target| target.into_os_string().into_encoded_bytes())
        }
        Ok(_) => fs::read(path),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => Err(error),
    };
    read.map(Some).map_err(|error| failed("read", path, error))
}

/// Writes a file of the snapshot, or removes the path if the snapshot does not have it.
fn put(path: &Path, file: Option<&SnapshotFile>) -> std::io::Result<()> {
    let Some(file) = file else { return fs::remove_file(path) };
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    if file.mode == "120000" {
        if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path)?;
        }
        return symlink(std::str::from_utf8(&file.bytes).map_err(|_| ErrorKind::InvalidData)?, path);
    }
    let mode = if file.mode == "100755" { 0o777 } else { 0o666 };
    let permissions = Permissions::from_mode(mode);
    let mut temporary =
        tempfile::Builder::new().prefix(TEMPORARY_PREFIX).permissions(permissions).tempfile_in(folder)?;
    temporary.write_all(&file.bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}
