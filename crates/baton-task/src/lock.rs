//! The one lock over everything below `.agent-output/`. The kernel frees it when its holder ends, however it ends; the
//! file stays, so that two processes never lock two files.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use baton_core::{ErrorCode, Fault};

use crate::durable::failed;

/// The file that is locked.
pub(crate) const LOCK_FILE: &str = ".context_store.lock";

const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Waits for the lock.
    pub(crate) fn take(folder: &Path, timeout: Duration) -> Result<Self, Fault> {
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| failed("opened", &path, error))?;
        let begun = Instant::now();
        let mut pause = PAUSE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed("locked", &path, error)),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= timeout => {
                    let message =
                        format!("another process held {} for {} s", path.display(), timeout.as_secs());
                    return Err(Fault::new(ErrorCode::Overloaded, message).hint("try again in a moment"));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
