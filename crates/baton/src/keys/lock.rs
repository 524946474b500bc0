//! Lock between processes, held while keys are replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

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
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if started.elapsed() < timeout => thread::sleep(POLL_INTERVAL),
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}
