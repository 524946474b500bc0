//! The disk reserve: a file beside the database that only occupies space. On a full disk it is removed for a short
//! time, so that work that frees space has room for SQLite's log and for the blob that it stores.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_files::{folder_of, open_or_create};

/// Size of the reserve: enough for SQLite's log and for the blob of most contexts.
const RESERVE_BYTES: u64 = 4 * 1024 * 1024;
/// A smaller reserve is not created.
const MIN_RESERVE_BYTES: u64 = 64 * 1024;

/// The reserve of one database. Clones share the user count.
#[derive(Debug, Clone)]
pub(crate) struct Reserve {
    path: PathBuf,
    /// Number of live [`ReleasedReserve`]s in this process.
    users: Arc<Mutex<usize>>,
}

/// Permission to use the space of the reserve. Dropping the last one allocates the reserve again, as far as the disk
/// has room.
#[derive(Debug)]
pub struct ReleasedReserve(Reserve);

impl Reserve {
    pub(crate) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-reserve");
        Self { path: path.into(), users: Arc::default() }
    }

    /// Allocates the reserve if it is missing or too small, unless the disk is nearly full.
    pub(crate) fn ensure(&self) {
        let users = self.users();
        let is_complete = std::fs::metadata(&self.path).is_ok_and(|file| file.len() >= RESERVE_BYTES);
        if *users == 0 && !is_complete && self.free_bytes() >= 2 * RESERVE_BYTES {
            self.allocate();
        }
    }

    /// Returns the space of the reserve to the file system until the result is dropped.
    pub(crate) fn release(&self) -> ReleasedReserve {
        let mut users = self.users();
        if *users == 0 {
            match std::fs::remove_file(&self.path) {
                Ok(()) => tracing::warn!("the disk is full; using the disk reserve"),
                Err(error) => tracing::debug!(%error, "there is no disk reserve to release"),
            }
        }
        *users += 1;
        ReleasedReserve(self.clone())
    }

    fn allocate(&self) {
        let present = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        let bytes = (self.free_bytes() + present).min(RESERVE_BYTES);
        if bytes < MIN_RESERVE_BYTES {
            return;
        }
        if let Err(error) = open_or_create(&self.path).and_then(|file| occupy(file, bytes)) {
            tracing::debug!(%error, "cannot allocate the whole disk reserve");
        }
    }

    fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(folder_of(&self.path))
            .map_or(0, |stats| stats.f_bavail.saturating_mul(stats.f_frsize))
    }

    fn users(&self) -> MutexGuard<'_, usize> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allocates the reserve again when it is dropped.
pub(crate) struct RefillOnDrop(pub(crate) Reserve);

impl Drop for RefillOnDrop {
    fn drop(&mut self) {
        let users = self.0.users();
        if *users == 0 {
            self.0.allocate();
        }
    }
}

impl Drop for ReleasedReserve {
    fn drop(&mut self) {
        let mut users = self.0.users();
        *users = users.saturating_sub(1);
        if *users == 0 {
            self.0.allocate();
        }
    }
}

/// Makes a file occupy space on disk.
fn occupy(mut file: File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        allocated => return Ok(allocated?),
    }
    // Not zeros, because a compressing file system would store almost nothing.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut block = Vec::with_capacity(64 * 1024);
    let mut left = bytes;
    while left > 0 {
        block.clear();
        while block.len() < 64 * 1024 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block.extend_from_slice(&state.to_le_bytes());
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(block.get(..length).unwrap_or_default())?;
        left -= length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_removed_while_in_use_and_reallocated_afterwards() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(&folder.path().join("baton.db"));
        let path = folder.path().join("baton.db-reserve");
        reserve.ensure();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), RESERVE_BYTES);
        assert!(metadata.blocks() * 512 >= RESERVE_BYTES, "{} blocks", metadata.blocks());
        let (first, second) = (reserve.release(), reserve.clone().release());
        assert!(!path.exists());
        drop(first);
        assert!(!path.exists());
        reserve.ensure();
        assert!(!path.exists(), "the reserve is in use");
        drop(second);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), RESERVE_BYTES);
    }
}
