//! Removing temporary files of killed writers, and converting errors of files.

use std::fs::DirEntry;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_files::TEMPORARY_PREFIX;

use crate::error::StoreError;

/// A temporary file older than this cannot belong to a live writer.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Removes temporary files left by killed writers in a folder and the folders directly below it, and returns their
/// number. Files modified within the last hour are kept because they may belong to a live writer.
pub(crate) fn remove_stale_temporaries(folder: &Path) -> Result<u64, StoreError> {
    let mut removed = remove_stale_in(folder)?;
    for entry in entries_of(folder)? {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed += remove_stale_in(&entry.path())?;
        }
    }
    Ok(removed)
}

fn remove_stale_in(folder: &Path) -> Result<u64, StoreError> {
    let mut removed = 0;
    for entry in entries_of(folder)? {
        let path = entry.path();
        let is_temporary = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_temporary && is_file && is_older_than(&entry, STALE_AFTER) {
            removed += u64::from(existing(&path, std::fs::remove_file(&path))?.is_some());
        }
    }
    Ok(removed)
}

/// Lists a folder. A missing folder is empty.
pub(crate) fn entries_of(folder: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let entries = existing(folder, std::fs::read_dir(folder))?;
    Ok(entries.into_iter().flatten().flatten().collect())
}

/// Returns the result of an operation on a file; `None` if the file does not exist.
pub(crate) fn existing<T>(path: &Path, result: io::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

/// Returns true for a file that was last modified longer ago than `age`.
pub(crate) fn is_older_than(entry: &DirEntry, age: Duration) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|past| past > age))
}

/// Converts an I/O error.
pub(crate) fn file_error(path: &Path, source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Folder { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn removes_only_old_temporary_files() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("hooks");
        std::fs::create_dir(&below).unwrap();
        let age = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - STALE_AFTER - Duration::from_secs(60)).unwrap();
        };
        for folder in [home.path(), &below] {
            for name in [".tmp-old", ".tmp-young", "old.spooled"] {
                std::fs::write(folder.join(name), "x").unwrap();
            }
            age(&folder.join(".tmp-old"));
            age(&folder.join("old.spooled"));
        }
        assert_eq!(remove_stale_temporaries(home.path()).unwrap(), 2);
        assert_eq!(remove_stale_temporaries(home.path()).unwrap(), 0);
        for folder in [home.path(), &below] {
            assert!(!folder.join(".tmp-old").exists());
            assert!(folder.join(".tmp-young").exists() && folder.join("old.spooled").exists());
        }
        assert_eq!(remove_stale_temporaries(&home.path().join("missing")).unwrap(), 0);
    }
}
