//! The one way in which files come to be: written beside their place, synced, renamed into it, the folder synced. Who
//! looks sees the old file or the new one; who loses power too.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use baton_core::{ErrorCode, Fault};
use tempfile::{Builder, NamedTempFile};

/// What temporary files begin with.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Files that wait to be put in their place together.
pub(crate) struct Batch<'a> {
    folder: &'a Path,
    waiting: Vec<(NamedTempFile, String)>,
}

impl<'a> Batch<'a> {
    pub(crate) const fn new(folder: &'a Path) -> Self {
        Self { folder, waiting: Vec::new() }
    }

    /// Writes and syncs a file beside its place.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let written = Builder::new().prefix(TEMPORARY).tempfile_in(self.folder).and_then(|mut file| {
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            Ok(file)
        });
        let file = written.map_err(|error| failed("written", &self.folder.join(name), error))?;
        self.waiting.push((file, name.to_owned()));
        Ok(())
    }

    /// Puts every file in its place, then syncs the folder.
    pub(crate) fn commit(self) -> Result<(), Fault> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        for (file, name) in self.waiting {
            let path = self.folder.join(name);
            file.persist(&path).map_err(|error| failed("written", &path, error.error))?;
        }
        sync_folder(self.folder)
    }
}

/// Makes sure that what was renamed in a folder stays so.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Fault> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| failed("synced", folder, error))
}

/// Creates a folder with mode 0700 and syncs its parent. A folder that exists keeps its mode; a link is rejected.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Fault> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => require_folder(folder),
        Err(error) => Err(failed("made", folder, error)),
    }
}

/// Refuses a link or file where a folder of Baton's own should be.
pub(crate) fn require_folder(folder: &Path) -> Result<(), Fault> {
    let found = fs::symlink_metadata(folder).map_err(|error| failed("read", folder, error))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::TaskConflict, format!("{} is no folder", folder.display()))
        .hint("move it away: Baton keeps its files there and follows no link"))
}

/// Removes what a killed process left half written. Only whoever holds the lock may.
pub(crate) fn remove_temporaries(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            // One that cannot be removed harms nobody.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Says which file could not be handled, and why.
pub(crate) fn failed(what: &str, path: &Path, error: io::Error) -> Fault {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, then try again",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable for you, then try again"
        }
        _ => "check the folder, then try again",
    };
    Fault::new(ErrorCode::StoreUnavailable, format!("{} could not be {what}: {error}", path.display()))
        .hint(hint)
        .caused_by(error)
}
