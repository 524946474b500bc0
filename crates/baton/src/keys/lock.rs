//! Lock between processes, held while keys are replaced.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Holds the lock until it is dropped or the process ends.
#[derive(Debug)]
#[must_use]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Acquires the lock at `path` and creates the file if it is missing. The file is never removed, because two
    /// processes could then lock two different files of that name.
    ///
    /// Fails with [`io::ErrorKind::TimedOut`] if another process holds the lock for longer than `timeout`.
    pub(super) fn acquire(path: &Path, timeout: Duration) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            baton_store::make_folder(folder)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        if baton_store::lock_within(&file, timeout)? {
            Ok(Self { _file: file })
        } else {
            Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"))
        }
    }
}
