//! Locks between processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::durable::open_or_create;

/// Interval between two attempts to acquire a lock.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A file or folder that processes lock. Closing it, also by the end of the process, releases the lock.
///
/// Every opened `LockFile` is a holder of its own, also within a process. Lock files are never removed, because two
/// processes could then lock two different files of that name.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Opens an existing file or folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Opens a file and creates it (0600) if it is missing.
    pub fn create(path: &Path) -> io::Result<Self> {
        open_or_create(path).map(Self)
    }

    /// Acquires the exclusive lock. Returns false if another holder keeps a lock for longer than `timeout`; a shared lock of
    /// this holder is lost then.
    pub fn lock_within(&self, timeout: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.0.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(false),
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Acquires the exclusive lock unless another holder has a lock; see [`Self::lock_within`].
    pub fn try_lock(&self) -> io::Result<bool> {
        self.lock_within(Duration::ZERO)
    }

    /// Waits for a shared lock. An exclusive lock of this holder becomes a shared one.
    pub fn share(&self) -> io::Result<()> {
        self.0.lock_shared()
    }

    /// Returns the open file.
    pub const fn as_file(&self) -> &File {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusive_lock_excludes_every_other_holder_until_it_is_closed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let (one, other) = (LockFile::create(&path).unwrap(), LockFile::create(&path).unwrap());
        assert!(one.try_lock().unwrap());
        assert!(!other.try_lock().unwrap());
        assert!(!other.lock_within(Duration::from_millis(20)).unwrap());
        drop(one);
        assert!(other.try_lock().unwrap() && path.exists());
    }

    #[test]
    fn a_waiting_holder_gets_the_lock_when_it_is_released() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (LockFile::open(home.path()).unwrap(), LockFile::open(home.path()).unwrap());
        assert!(one.try_lock().unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| other.lock_within(Duration::from_secs(60)).unwrap());
            drop(one);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn shared_locks_exclude_only_exclusive_ones() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let [one, two, three] = std::array::from_fn(|_| LockFile::create(&path).unwrap());
        one.share().unwrap();
        two.share().unwrap();
        assert!(!three.try_lock().unwrap());
        drop(two);
        assert!(one.try_lock().unwrap());
        assert!(!three.try_lock().unwrap());
        one.share().unwrap();
        three.share().unwrap();
    }
}
