//! Starts a worker from a hook if none is running.
//!
//! If a worker is running, the check costs a hook three system calls. If several hooks find none, only one starts it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_files::LockFile;

use super::process::spawn_detached;
use super::server_lock::has_server_with_worker;
use super::worker_lock::{LockState, WorkerLock, socket_of};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::output::Failure;

/// Minimum time between two starts, so that a worker that fails immediately is not started by every hook.
const START_INTERVAL: Duration = Duration::from_secs(10);

/// Starts a worker in the background unless one is running, a server uses the same data folder, or one was started less
/// than `START_INTERVAL` ago. Does not wait for it.
pub(crate) fn start_if_absent(config: &Config) {
    if !config.worker_autostart || config.server.is_some() {
        return;
    }
    let folder = DataDir::at(&config.data_dir);
    if WorkerLock::state(&config.data_dir) != LockState::Free || has_server_with_worker(&folder) {
        return;
    }
    // The report is already stored or in the outbox, and `baton doctor` reports the cause; the next hook
    // tries again.
    if let Err(failure) = start(config) {
        tracing::debug!(error = failure.message, "cannot start a worker");
    }
}

fn start(config: &Config) -> Result<(), Failure> {
    let folder = DataDir::open(&config.data_dir)?;
    socket_of(&folder)?;
    // Held until the worker was started.
    let Some(_start_lock) = acquire_start_lock(&folder.worker_start()).unwrap_or_default() else {
        return Ok(());
    };
    spawn_detached(config, &folder).map(|_| ())
}

/// Acquires the start lock; `None` if another process holds it or held it less than `START_INTERVAL` ago.
fn acquire_start_lock(path: &Path) -> io::Result<Option<LockFile>> {
    let is_new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).is_ok();
    let lock = LockFile::create(path)?;
    if matches!(lock.try_lock(), Ok(false)) {
        return Ok(None);
    }
    let (file, now) = (lock.as_file(), SystemTime::now());
    // A modification time in the future is ignored.
    let is_recent = now.duration_since(file.metadata()?.modified()?).is_ok_and(|age| age < START_INTERVAL);
    if is_recent && !is_new {
        return Ok(None);
    }
    file.set_modified(now)?;
    Ok(Some(lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_lock_is_refused_while_held_and_for_the_start_interval() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("worker.start");
        let first = acquire_start_lock(&path).unwrap();
        assert!(first.is_some());
        assert!(acquire_start_lock(&path).unwrap().is_none(), "another process holds the lock");
        drop(first);
        assert!(
            acquire_start_lock(&path).unwrap().is_none(),
            "the lock was held less than START_INTERVAL ago"
        );
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for at in [SystemTime::now() - START_INTERVAL, SystemTime::now() + 10 * START_INTERVAL] {
            file.set_modified(at).unwrap();
            assert!(acquire_start_lock(&path).unwrap().is_some());
        }
    }
}
