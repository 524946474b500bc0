//! Writing files so that a crash leaves the old one or the new one, and never a part.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// Creates a folder (0700) and its missing parents, and returns when their names are on disk.
///
/// # Errors
///
/// When a folder cannot be created or synced, or something else has its name.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A working folder that was removed is its own parent.
    if parent != path {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        // Another process created it first and may not have synced its name yet.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(ErrorKind::NotADirectory.into()),
        created => created?,
    }
    match File::open(parent) {
        Ok(parent) => parent.sync_all(),
        // A folder can be writable without being readable, and then it cannot be synced.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a file (0600) and returns when it is on disk under its name.
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = DurableFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// A file (0600) that is written little by little and gets its name when it is complete: temporary file, fsync, rename, fsync
/// of the folder. One that is dropped before that is gone; one of a process that was killed is swept with the orphans.
#[derive(Debug)]
pub struct DurableFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    is_named: bool,
}

impl DurableFile {
    /// Begins a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("the file has no name"))?;
        let mut temporary = name.to_owned();
        // The process id keeps two writers of the same name apart.
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        Ok(Self { file, temporary, path: path.to_owned(), is_named: false })
    }

    /// Gives the file its name, once everything is on disk.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.is_named = true;
        let folder = self.path.parent().ok_or_else(|| io::Error::other("the file has no folder"))?;
        File::open(folder)?.sync_all()
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DurableFile {
    fn drop(&mut self) {
        if !self.is_named {
            // What went wrong is what counts; a leftover is swept with the orphans.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Says what a failure with a file or folder means to a caller.
pub(crate) fn file_error(path: &Path, source: io::Error) -> StoreError {
    if source.kind() == io::ErrorKind::StorageFull {
        return StoreError::Full;
    }
    StoreError::Folder { path: path.to_owned(), source }
}
