//! The lock that allows one worker per data folder, and the files of that worker.
//!
//! A worker holds a lock on `worker.lock` until it exits, so the operating system releases the lock even after a crash.
//! The operating system also reports the process id of the holder, so no other process is mistaken for it. `worker.pid`
//! and `worker.sock` are for people and clients; neither decides whether a worker is running.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use baton_files::{open_or_create, write_durably};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};

use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// Maximum length of a socket path in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// The worker lock, held until this value is dropped.
#[derive(Debug)]
pub(crate) struct WorkerLock {
    _lock: File,
    pid: PathBuf,
    socket: PathBuf,
}

/// State of the worker lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockState {
    /// Not held.
    Free,
    /// Held by a process; its id is not known if it runs in another container that shares the folder.
    Held(Option<Pid>),
}

impl WorkerLock {
    /// Acquires the lock; `None` if another process holds it.
    pub(crate) fn try_acquire(data_dir: &Path) -> Result<Option<Self>, Failure> {
        let folder = DataDir::open(data_dir)?;
        let socket = socket_of(&folder)?;
        let Some(lock) =
            try_lock(&folder.worker_lock()).map_err(|error| failed(&folder.worker_lock(), &error))?
        else {
            return Ok(None);
        };
        let held = Self { _lock: lock, pid: folder.worker_pid(), socket };
        // A socket left by a previous worker is stale, because the lock was free.
        remove_socket(&held.socket).map_err(|error| failed(&held.socket, &error))?;
        let pid = format!("{}\n", std::process::id());
        write_durably(&held.pid, pid.as_bytes()).map_err(|error| failed(&held.pid, &error))?;
        Ok(Some(held))
    }

    /// Socket path of the worker.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the state of the lock without acquiring it.
    pub(crate) fn state(data_dir: &Path) -> LockState {
        let folder = DataDir::at(data_dir);
        let Ok(file) = File::open(folder.worker_lock()) else { return LockState::Free };
        match fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)) {
            Ok(Some(held)) => LockState::Held(held.pid),
            Ok(None) | Err(_) => LockState::Free,
        }
    }
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        for (path, removed) in [(&self.socket, remove_socket(&self.socket)), (&self.pid, remove(&self.pid))] {
            if let Err(error) = removed {
                tracing::warn!(%error, path = %path.display(), "cannot remove a file of the worker");
            }
        }
    }
}

/// Returns the socket path of the worker of a data folder.
pub(crate) fn socket_of(folder: &DataDir) -> Result<PathBuf, Failure> {
    let socket = folder.worker_socket();
    if socket.as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok(socket);
    }
    let message =
        format!("{} is too long for a socket path; the limit is {MAX_SOCKET_PATH} bytes", socket.display());
    Err(Failure::new(Exit::Usage, "invalid_config", message)
        .hint("choose a data folder with a shorter path: --data-dir, BATON_DATA_DIR"))
}

/// Locks a file; `None` if another process has it locked. Not with `LockFile`, because only locks of this kind report
/// their holder. The lock belongs to the process and is released when the
/// process closes any handle of the file, so the holder must not call [`WorkerLock::state`].
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_or_create(path)?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes a socket. Anything that is not a socket is kept and reported as an error.
fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => remove(path),
        Ok(_) => Err(io::Error::other("the socket path exists and is not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failure, "worker_failed", format!("cannot use {}: {error}", path.display()))
        .hint("check that you own the file, and run baton doctor")
}
