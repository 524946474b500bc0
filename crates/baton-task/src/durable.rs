//! Durable file writes: write a temporary file, sync it, rename it, sync the folder. Readers see the old or the new
//! file, also after a power failure.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use baton_core::{ErrorCode, Fault};
use tempfile::{Builder, NamedTempFile};

/// Prefix of temporary files.
pub(crate) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Files that are renamed to their final names together.
pub(crate) struct Batch<'a> {
    folder: &'a Path,
    pending: Vec<(NamedTempFile, String)>,
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(folder: &'a Path) -> Self {
        Self { folder, pending: Vec::new() }
    }

    /// Writes and syncs a temporary file.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let written =
            Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(self.folder).and_then(|mut file| {
                file.write_all(bytes)?;
                file.as_file().sync_all()?;
                Ok(file)
            });
        let file = written.map_err(|error| failed("write", &self.folder.join(name), error))?;
        self.pending.push((file, name.to_owned()));
        Ok(())
    }

    /// Renames all files to their final names, then syncs the folder.
    pub(crate) fn commit(self) -> Result<(), Fault> {
        if self.pending.is_empty() {
            return Ok(());
        }
        for (file, name) in self.pending {
            let path = self.folder.join(name);
            file.persist(&path).map_err(|error| failed("write", &path, error.error))?;
        }
        sync_folder(self.folder)
    }
}

/// Syncs a folder, so that renames in it are durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Fault> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| failed("sync", folder, error))
}

/// Creates a folder with mode 0700 and syncs its parent. A folder that exists keeps its mode; a link is rejected.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Fault> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => require_folder(folder),
        Err(error) => Err(failed("create", folder, error)),
    }
}

/// Returns an error if the path is a link or a file instead of a folder.
pub(crate) fn require_folder(folder: &Path) -> Result<(), Fault> {
    let found = fs::symlink_metadata(folder).map_err(|error| failed("read", folder, error))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::TaskConflict, format!("{} is not a folder", folder.display()))
        .hint("move it away: Baton stores its files there and does not follow links"))
}

/// Removes temporary files of killed processes. The caller must hold the store lock.
pub(crate) fn remove_temporaries(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            // A leftover file has no effect; the next call tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates the fault of a failed file operation, with a hint. `verb` is an infinitive, for example `write`.
pub(crate) fn failed(verb: &str, path: &Path, error: io::Error) -> Fault {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, then try again",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable for you, then try again"
        }
        _ => "check the folder, then try again",
    };
    Fault::new(ErrorCode::StoreUnavailable, format!("cannot {verb} {}: {error}", path.display()))
        .hint(hint)
        .caused_by(error)
}
