//! The lock of servers that run a worker of their own, so that no other worker is started.

use baton_files::LockFile;

use crate::data_dir::DataDir;

/// Locks `server.lock` to announce a server with a worker, until the result is dropped. The lock is shared, because
/// several servers may use a data folder.
pub(crate) fn announce_server(folder: &DataDir) -> Option<LockFile> {
    let lock = LockFile::create(&folder.server_lock()).ok()?;
    lock.share().ok()?;
    Some(lock)
}

/// Returns true if a server that runs a worker of its own uses the data folder.
pub(crate) fn has_server_with_worker(folder: &DataDir) -> bool {
    LockFile::open(&folder.server_lock()).is_ok_and(|lock| matches!(lock.try_lock(), Ok(false)))
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
