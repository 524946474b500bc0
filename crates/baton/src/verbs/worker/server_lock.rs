//! The lock of servers that run a worker of their own, so that no other worker is started.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;

use crate::data_dir::DataDir;

/// Locks `server.lock` to announce a server with a worker, until the file is dropped. The lock is shared, because
/// several servers may use a data folder.
pub(crate) fn announce_server(folder: &DataDir) -> Option<File> {
    let path = folder.server_lock();
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).ok()?;
    file.lock_shared().ok()?;
    Some(file)
}

/// Returns true if a server that runs a worker of its own uses the data folder.
pub(crate) fn has_server_with_worker(folder: &DataDir) -> bool {
    File::open(folder.server_lock())
        .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_lock_is_detected_while_a_server_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataDir::at(home.path());
        assert!(!has_server_with_worker(&folder));
        let servers = [announce_server(&folder).unwrap(), announce_server(&folder).unwrap()];
        assert!(has_server_with_worker(&folder));
        drop(servers);
        assert!(!has_server_with_worker(&folder));
    }
}
