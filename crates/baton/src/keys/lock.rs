//! A lock between processes, for as long as keys are being replaced.
//!
//! Owns waiting for it. Does not own what is done under it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Holds the lock until it is dropped or the process ends.
#[derive(Debug)]
#[must_use]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`, making the file when it is missing. The file stays: removing it would let two
    /// processes lock two different files of that name.
    ///
    /// Fails with [`io::ErrorKind::TimedOut`] when others hold it for longer than `patience`.
    pub(super) fn acquire(path: &Path, patience: Duration) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            baton_store::make_folder(folder)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if started.elapsed() < patience => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}
