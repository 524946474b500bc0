//! Atomic, durable file writes: after a crash a file has its old or its new content, never a part of it.

use std::fs::{DirBuilder, DirEntry, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::error::StoreError;

/// A temporary file older than this cannot belong to a live writer.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Interval between two attempts to lock a file.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Locks a file or folder until it is closed. Returns false if another process holds the lock for longer than `timeout`.
///
/// # Errors
///
/// Fails if the file system cannot lock it.
pub fn lock_within(file: &File, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL_INTERVAL),
        }
    }
}

/// Returns the folder of a file. A relative path without a folder is in the current folder.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a folder (0700) and its missing parents, and returns after the new names are synced to disk.
///
/// # Errors
///
/// Fails if a folder cannot be created or synced, or if a file has its name.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = folder_of(path);
    // The working folder is its own parent after it was removed.
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

/// Writes a file (0600) and returns after its content and name are synced to disk.
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = DurableFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Creates a file (0600) or truncates an existing one.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Syncs a folder, so that the names of its files are on disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A file (0600) that is written incrementally and gets its name when it is complete: temporary file, fsync, rename,
/// fsync of the folder. Dropping an unfinished file removes it; a file left by a killed process is removed by the next
/// cleanup.
#[derive(Debug)]
pub struct DurableFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    is_named: bool,
}

impl DurableFile {
    /// Creates the temporary file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("the file has no name"))?;
        let mut temporary = name.to_owned();
        // The process id distinguishes two writers of the same name.
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        let file = private_file(&temporary)?;
        Ok(Self { file, temporary, path: path.to_owned(), is_named: false })
    }

    /// Creates a large file whose temporary name, `<name>.partial`, does not depend on the process, so that the next
    /// attempt overwrites the file of a killed one. Fails with [`io::ErrorKind::WouldBlock`] while another process
    /// writes it.
    pub fn create_exclusively(path: &Path) -> io::Result<Self> {
        let mut temporary =
            path.file_name().ok_or_else(|| io::Error::other("the file has no name"))?.to_owned();
        temporary.push(".partial");
        let temporary = path.with_file_name(temporary);
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&temporary)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        // Another process may have renamed the file between opening and locking it.
        let (locked, named) = (file.metadata()?, std::fs::metadata(&temporary));
        if !named.is_ok_and(|named| named.ino() == locked.ino() && named.dev() == locked.dev()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        file.set_len(0)?;
        Ok(Self { file, temporary, path: path.to_owned(), is_named: false })
    }

    /// Syncs to disk what was written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Returns the path of the temporary file.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file and renames it to its final name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.is_named = true;
        sync_folder(folder_of(&self.path))
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
            // The original error matters more. A leftover file is removed by the next cleanup.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Removes temporary files left by killed writers in a folder and the folders directly below it, and returns their
/// number. Files modified within the last hour are kept because they may belong to a live writer.
pub(crate) fn remove_stale_temporaries(folder: &Path) -> Result<u64, StoreError> {
    let mut removed = remove_stale_in(folder)?;
    for entry in entries_of(folder)? {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed += remove_stale_in(&entry.path())?;
        }
    }
    Ok(removed)
}

fn remove_stale_in(folder: &Path) -> Result<u64, StoreError> {
    let mut removed = 0;
    for entry in entries_of(folder)? {
        let path = entry.path();
        let is_temporary = path.extension().is_some_and(|ending| ending == "tmp");
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_temporary && is_file && is_older_than(&entry, STALE_AFTER) {
            removed += u64::from(existing(&path, std::fs::remove_file(&path))?.is_some());
        }
    }
    Ok(removed)
}

/// Lists a folder. A missing folder is empty.
pub(crate) fn entries_of(folder: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let entries = existing(folder, std::fs::read_dir(folder))?;
    Ok(entries.into_iter().flatten().flatten().collect())
}

/// Returns the result of an operation on a file; `None` if the file does not exist.
pub(crate) fn existing<T>(path: &Path, result: io::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

/// Returns true for a file that was last modified longer ago than `age`.
pub(crate) fn is_older_than(entry: &DirEntry, age: Duration) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|past| past > age))
}

/// Converts an I/O error.
pub(crate) fn file_error(path: &Path, source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Folder { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_old_temporary_files() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("hooks");
        std::fs::create_dir(&below).unwrap();
        let age = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - STALE_AFTER - Duration::from_secs(60)).unwrap();
        };
        for folder in [home.path(), &below] {
            for name in ["old.7.tmp", "young.7.tmp", "old.spooled"] {
                std::fs::write(folder.join(name), "x").unwrap();
            }
            age(&folder.join("old.7.tmp"));
            age(&folder.join("old.spooled"));
        }
        assert_eq!(remove_stale_temporaries(home.path()).unwrap(), 2);
        assert_eq!(remove_stale_temporaries(home.path()).unwrap(), 0);
        for folder in [home.path(), &below] {
            assert!(!folder.join("old.7.tmp").exists());
            assert!(folder.join("young.7.tmp").exists() && folder.join("old.spooled").exists());
        }
        assert_eq!(remove_stale_temporaries(&home.path().join("missing")).unwrap(), 0);
    }
}
