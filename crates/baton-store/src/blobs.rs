//! The folder of blobs: files for frames and raw output that are too large for a row.
//!
//! A blob is written before the row that refers to it is committed, and removed after the deletion of its row is
//! committed. A crash can leave a file without a row, but never a row without its file; [`BlobFolder::old_names`] finds
//! such files.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use baton_files::{DurableFile, LockFile, TEMPORARY_PREFIX, make_folder, write_durably};

use crate::error::StoreError;
use crate::files::{STALE_AFTER, entries_of, existing, file_error, is_older_than};

/// Content larger than this is stored as a blob if the store has a blob folder.
pub const MAX_ROW_BYTES: usize = 256 * 1024;

/// Number and total size of the files in a blob folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobUsage {
    /// Number of files.
    pub count: u64,
    /// Sum of the file sizes.
    pub size_bytes: u64,
}

#[derive(Debug, Clone)]
pub struct BlobFolder {
    path: PathBuf,
}

impl BlobFolder {
    /// Uses a folder, which is created with the first blob.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Writes a blob and syncs it to disk. The name must be a plain file name.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.new_file(name)?;
        write_durably(&path, bytes).map_err(|source| file_error(&path, source))
    }

    /// Checks that a small file can be written here. The file is removed immediately and never synced, so the check
    /// causes almost no disk I/O.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let mut file = self.create("probe")?;
        file.write_all(&[b'x'; 4096]).map_err(|source| file_error(&self.path, source))
    }

    /// Starts a blob that is written incrementally. The name must be a plain file name.
    pub fn create(&self, name: &str) -> Result<DurableFile, StoreError> {
        let path = self.new_file(name)?;
        DurableFile::create(&path).map_err(|source| file_error(&path, source))
    }

    /// Opens a blob; `None` if it is missing.
    pub fn open(&self, name: &str) -> Result<Option<File>, StoreError> {
        let Some(path) = self.file(name) else { return Ok(None) };
        existing(&path, File::open(&path))
    }

    /// Reads a blob; `None` if it is missing.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(path) = self.file(name) else { return Ok(None) };
        existing(&path, std::fs::read(&path))
    }

    /// Lists blobs, and temporary files of killed writers, that are older than an hour. The transaction that refers to
    /// a younger blob may not be committed yet.
    pub fn old_names(&self) -> Result<Vec<String>, StoreError> {
        let mut names: Vec<String> = entries_of(&self.path)?
            .iter()
            .filter(|entry| is_older_than(entry, STALE_AFTER))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Counts the files of the folder and sums their sizes. Reads the metadata of each file.
    pub fn usage(&self) -> Result<BlobUsage, StoreError> {
        let entries = entries_of(&self.path)?;
        // Files that are removed meanwhile are not counted.
        let files = entries.iter().filter_map(|entry| entry.metadata().ok()).filter(Metadata::is_file);
        Ok(files.fold(BlobUsage::default(), |usage, file| BlobUsage {
            count: usage.count + 1,
            size_bytes: usage.size_bytes + file.len(),
        }))
    }

    /// Removes a blob whose row was deleted and committed. A missing blob is not an error. While an archive is written,
    /// the blob is kept for a later cleanup.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let Some(path) = self.file(name) else { return Ok(()) };
        let lock = self.lock_path();
        // Without a lock file no archive is being written, and an archive that starts now does not see the deleted row.
        let file = existing(&lock, LockFile::open(&lock))?;
        match file.as_ref().map_or(Ok(true), LockFile::try_lock) {
            Ok(true) => existing(&path, std::fs::remove_file(&path)).map(drop),
            Ok(false) => Ok(()),
            Err(error) => Err(file_error(&lock, error)),
        }
    }

    /// Takes a shared lock that prevents every process from removing blobs, so that the blobs of a database snapshot
    /// stay available. `None` if there is no folder yet.
    pub(crate) fn lock_removal(&self) -> Result<Option<LockFile>, StoreError> {
        let path = self.lock_path();
        let lock = LockFile::create(&path).and_then(|lock| lock.share().map(|()| lock));
        existing(&path, lock)
    }

    fn lock_path(&self) -> PathBuf {
        self.path.with_extension("lock")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a new blob, and creates the folder.
    fn new_file(&self, name: &str) -> Result<PathBuf, StoreError> {
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not a valid blob name"));
        let path = self.file(name).ok_or_else(|| file_error(&self.path, invalid()))?;
        make_folder(&self.path).map_err(|source| file_error(&self.path, source))?;
        Ok(path)
    }

    /// Returns the path of a blob; `None` for a name that no blob can have, because it is not a plain file name.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_hidden = name.starts_with('.') && !name.starts_with(TEMPORARY_PREFIX);
        let is_valid = !name.is_empty() && !is_hidden && name.bytes().all(is_plain);
        is_valid.then(|| self.path.join(name))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn blobs_can_be_read_back_and_are_private_to_their_owner() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path().join("blobs"));
        assert_eq!(blobs.get("a-1").unwrap(), None);
        blobs.put("a-1", b"one").unwrap();
        blobs.put("a-1", b"two").unwrap();
        assert_eq!(blobs.get("a-1").unwrap().as_deref(), Some(b"two".as_slice()));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&blobs.path), mode(&blobs.path.join("a-1"))), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&blobs.path).unwrap().count(), 1, "nothing temporary is left");
        blobs.remove("a-1").unwrap();
        blobs.remove("a-1").unwrap();
        assert_eq!(blobs.get("a-1").unwrap(), None);
    }

    #[test]
    fn blobs_are_not_removed_while_an_archive_is_written() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path().join("blobs"));
        blobs.put("a", b"1").unwrap();
        let (one, two) = (blobs.lock_removal().unwrap(), blobs.lock_removal().unwrap());
        blobs.remove("a").unwrap();
        drop(one);
        blobs.remove("a").unwrap();
        assert!(blobs.get("a").unwrap().is_some(), "a second archive still holds the lock");
        drop(two);
        blobs.remove("a").unwrap();
        assert_eq!(blobs.get("a").unwrap(), None);
    }

    #[test]
    fn other_names_than_plain_ones_name_no_blob() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path().join("blobs"));
        blobs.put("a", b"1").unwrap();
        std::fs::write(home.path().join("x"), "outside").unwrap();
        std::fs::write(home.path().join("blobs/.a"), "hidden").unwrap();
        for name in ["", "..", ".a", "a/b", "../x", "a\0"] {
            assert_eq!(blobs.get(name).unwrap(), None, "{name:?}");
            assert!(blobs.open(name).unwrap().is_none(), "{name:?}");
            blobs.remove(name).unwrap();
            let refused = blobs.put(name, b"2").unwrap_err().to_string();
            assert!(refused.contains("is not a valid blob name"), "{refused}");
        }
        assert_eq!(std::fs::read(home.path().join("x")).unwrap(), b"outside");
        assert_eq!(std::fs::read(home.path().join("blobs/.a")).unwrap(), b"hidden");
    }

    #[test]
    fn old_names_omits_recent_files() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path());
        blobs.put("young", b"1").unwrap();
        blobs.put("old", b"2").unwrap();
        let file = File::options().write(true).open(home.path().join("old")).unwrap();
        file.set_modified(SystemTime::now() - STALE_AFTER - Duration::from_secs(60)).unwrap();
        assert_eq!(blobs.old_names().unwrap(), ["old"]);
    }
}
