//! Locks on folders below `.agent-output/`: the store lock, and one for each task.

use std::path::Path;
use std::time::{Duration, Instant};

use baton_core::{ErrorCode, Fault};
use baton_files::LockFile;

use crate::durable::failed;

pub(crate) const LOCK_FILE: &str = ".context_store.lock";

/// The lock of a folder, held until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: LockFile,
}

impl FolderLock {
    /// Acquires the lock; fails after `timeout`.
    pub(crate) fn take(folder: &Path, timeout: Duration) -> Result<Self, Fault> {
        Self::take_within(folder, timeout)?.ok_or_else(|| {
            let path = folder.join(LOCK_FILE);
            let message = format!("another process held {} for {} s", path.display(), timeout.as_secs());
            Fault::new(ErrorCode::Overloaded, message).hint("try again in a moment")
        })
    }

    /// Acquires the lock; `None` if another process holds it or waits for it.
    pub(crate) fn try_take(folder: &Path) -> Result<Option<Self>, Fault> {
        Self::take_within(folder, Duration::ZERO)
    }

    /// A waiting process holds the gate, which is a lock on the folder. The process that released the lock last cannot
    /// acquire it again before the waiting one, so a busy process cannot starve the others.
    fn take_within(folder: &Path, timeout: Duration) -> Result<Option<Self>, Fault> {
        let deadline = Instant::now() + timeout;
        let path = folder.join(LOCK_FILE);
        let file = LockFile::create(&path).map_err(|error| failed("open", &path, error))?;
        let gate = LockFile::open(folder).map_err(|error| failed("open", folder, error))?;
        // A file system that cannot lock folders has no gate, and the lock still works.
        let is_locked = gate.lock_within(timeout).unwrap_or(true)
            && file
                .lock_within(deadline.saturating_duration_since(Instant::now()))
                .map_err(|error| failed("lock", &path, error))?;
        Ok(is_locked.then_some(Self { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn a_waiting_process_gets_the_lock_before_its_last_holder() {
        let folder = tempfile::tempdir().unwrap();
        let take = || FolderLock::take(folder.path(), Duration::from_secs(60)).unwrap();
        let order = Mutex::new(Vec::new());
        let held = take();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = take();
                order.lock().unwrap().push("waiting");
            });
            let gate = || LockFile::open(folder.path()).unwrap().try_lock().unwrap();
            while gate() {
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
        let held = FolderLock::take(folder.path(), Duration::from_secs(1)).unwrap();
        let fault = FolderLock::take(folder.path(), Duration::from_millis(20)).unwrap_err();
        assert_eq!(fault.code, ErrorCode::Overloaded);
        drop(held);
        drop(FolderLock::take(folder.path(), Duration::from_secs(60)).unwrap());
        assert!(folder.path().join(LOCK_FILE).is_file());
    }
}
