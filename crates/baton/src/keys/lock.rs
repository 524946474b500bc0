//! Lock between processes, held while keys are replaced.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Acquires the lock at `path`, which is held until the file is dropped or the process ends. Creates the file if it is
/// missing. The file is never removed, because two processes could then lock two different files of that name.
///
/// Fails with [`io::ErrorKind::TimedOut`] if another process holds the lock for longer than `timeout`.
pub(super) fn acquire_lock(path: &Path, timeout: Duration) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        baton_store::make_folder(folder)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    if baton_store::lock_within(&file, timeout)? {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"))
    }
}
