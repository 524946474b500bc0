//! Locks on folders below `.agent-output/`: the store lock, and one for each task. The kernel releases a lock when its
//! holder ends; the file stays, so that two processes never lock two files.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use baton_core::{ErrorCode, Fault};

use crate::durable::failed;

pub(crate) const LOCK_FILE: &str = ".context_store.lock";

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Acquires the lock; fails after `timeout`.
    ///
    /// A waiting process holds the gate, which is a lock on the folder. The process that released the lock last cannot
    /// acquire it again before the waiting one, so a busy process cannot starve the others.
    pub(crate) fn take(folder: &Path, timeout: Duration) -> Result<Self, Fault> {
        let files = LockFiles::open(folder)?;
        match files.try_lock()? {
            true => Ok(Self { _file: files.file }),
            false => Self::wait(files, timeout),
        }
    }

    /// Acquires the lock; `None` if another process holds it or waits for it.
    pub(crate) fn try_take(folder: &Path) -> Result<Option<Self>, Fault> {
        let files = LockFiles::open(folder)?;
        Ok(files.try_lock()?.then_some(Self { _file: files.file }))
    }

    /// Waits for the lock in a thread, because a blocking lock has no timeout. A thread that gets the lock after the
    /// timeout releases it immediately.
    fn wait(LockFiles { gate, file, path }: LockFiles, timeout: Duration) -> Result<Self, Fault> {
        let (sender, receiver) = mpsc::sync_channel(0);
        let waiting = thread::Builder::new().name("task-lock".into()).spawn(move || {
            // Returns immediately if `try_lock` acquired the gate.
            let _ = gate.lock();
            let locked = file.lock().map(|()| file);
            drop(gate);
            // After the timeout the receiver is gone: `send` returns the file, and dropping it releases the lock.
            drop(sender.send(locked));
        });
        waiting.map_err(|error| failed("lock", &path, error))?;
        match receiver.recv_timeout(timeout) {
            Ok(Ok(file)) => Ok(Self { _file: file }),
            Ok(Err(error)) => Err(failed("lock", &path, error)),
            Err(_) => {
                let message = format!("another process held {} for {} s", path.display(), timeout.as_secs());
                Err(Fault::new(ErrorCode::Overloaded, message).hint("try again in a moment"))
            }
        }
    }
}

/// The open lock file and its gate.
struct LockFiles {
    gate: File,
    file: File,
    path: PathBuf,
}

impl LockFiles {
    fn open(folder: &Path) -> Result<Self, Fault> {
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("open", &path, error))?;
        let gate = File::open(folder).map_err(|error| failed("open", folder, error))?;
        Ok(Self { gate, file, path })
    }

    /// Returns false if another process holds the lock or waits for it.
    fn try_lock(&self) -> Result<bool, Fault> {
        // Other errors are ignored: a file system that cannot lock folders has no gate, and the lock still works.
        if matches!(self.gate.try_lock(), Err(TryLockError::WouldBlock)) {
            return Ok(false);
        }
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(failed("lock", &self.path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_waiting_process_gets_the_lock_before_its_last_holder() {
        let folder = tempfile::tempdir().unwrap();
        let take = || StoreLock::take(folder.path(), Duration::from_secs(60)).unwrap();
        let order = Mutex::new(Vec::new());
        let held = take();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = take();
                order.lock().unwrap().push("waiting");
            });
            let gate = || File::open(folder.path()).unwrap().try_lock();
            while gate().is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
            drop(held);
            let _lock = take();
            order.lock().unwrap().push("last holder");
        });
        assert_eq!(order.into_inner().unwrap(), ["waiting", "last holder"]);
    }

    #[test]
    fn a_held_lock_times_out_and_its_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let held = StoreLock::take(folder.path(), Duration::from_secs(1)).unwrap();
        let fault = StoreLock::take(folder.path(), Duration::from_millis(20)).unwrap_err();
        assert_eq!(fault.code, ErrorCode::Overloaded);
        drop(held);
        drop(StoreLock::take(folder.path(), Duration::from_secs(60)).unwrap());
        assert!(folder.path().join(LOCK_FILE).is_file());
    }
}
