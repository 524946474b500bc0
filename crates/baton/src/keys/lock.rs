//! Lock between processes, held while keys are replaced.

use std::io;
use std::path::Path;
use std::time::Duration;

use baton_files::{LockFile, folder_of, make_folder};

/// Acquires the lock at `path`, which is held until the result is dropped or the process ends. Creates the file if it is
/// missing.
///
/// Fails with [`io::ErrorKind::TimedOut`] if another process holds the lock for longer than `timeout`.
pub(super) fn acquire_lock(path: &Path, timeout: Duration) -> io::Result<LockFile> {
    make_folder(folder_of(path))?;
    let lock = LockFile::create(path)?;
    if lock.lock_within(timeout)? {
        Ok(lock)
    } else {
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"))
    }
}
