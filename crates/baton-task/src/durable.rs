//! Durable writes of several files, folders that are not links, and faults of file operations.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use baton_core::{ErrorCode, Fault};
use baton_files::{DurableFile, TEMPORARY_PREFIX};

/// Files that are renamed to their final names together.
pub(crate) struct Batch<'a> {
    folder: &'a Path,
    pending: Vec<(DurableFile, PathBuf)>,
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(folder: &'a Path) -> Self {
        Self { folder, pending: Vec::new() }
    }

    /// Writes and syncs a temporary file.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.folder.join(name);
        let written = DurableFile::create(&path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync()?;
            Ok(file)
        });
        self.pending.push((written.map_err(|error| failed("write", &path, error))?, path));
        Ok(())
    }

    /// Renames all files to their final names, then syncs the folder.
    pub(crate) fn commit(self) -> Result<(), Fault> {
        if self.pending.is_empty() {
            return Ok(());
        }
        for (file, path) in self.pending {
            file.rename().map_err(|error| failed("write", &path, error))?;
        }
        sync_folder(self.folder)
    }
}

/// Syncs a folder, so that renames in it are durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Fault> {
    baton_files::sync_folder(folder).map_err(|error| failed("sync", folder, error))
}

/// Creates a folder with mode 0700 and syncs its parent. A folder that exists keeps its mode; a link is rejected.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Fault> {
    if folder.symlink_metadata().is_ok() {
        return require_folder(folder);
    }
    baton_files::make_folder(folder).map_err(|error| failed("create", folder, error))
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
