//! Files that differ from `HEAD`, with hashes of their current content. Nothing is stored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use baton_core::Sha256Hash;
use baton_core::task::UncommittedFile;

use crate::error::GitError;
use crate::index::Index;
use crate::path::RepoPath;
use crate::repository::Repository;
use crate::status::{Status, StatusCode, StatusEntry};

/// Files of at least this size are not read; their size and modification time are hashed instead.
const LARGE_FILE_BYTES: u64 = 64 << 20;

impl Repository {
    /// Lists modified, staged, deleted, conflicting and untracked (but not ignored) files, sorted by path. Files marked
    /// assume-unchanged are examined too. Paths within `excluded` are omitted.
    ///
    /// # Errors
    ///
    /// [`GitError::Unreadable`] with the name of the file, or an error of git.
    pub fn uncommitted(&self, excluded: &[RepoPath]) -> Result<Vec<UncommittedFile>, GitError> {
        let scratch = tempfile::tempdir().map_err(GitError::folder(std::env::temp_dir()))?;
        let index = Index::read(self, scratch.path())?.examined_copy(scratch.path())?;
        let status = Status::read(self, excluded, index.as_ref().map(|index| index.path()))?;
        let mut paths: BTreeMap<&RepoPath, bool> = BTreeMap::new();
        for entry in &status.entries {
            let modified = match entry {
                StatusEntry::Changed { unstaged, .. } => *unstaged != StatusCode::Unmodified,
                StatusEntry::Unmerged { .. } => true,
                StatusEntry::Untracked { .. } => false,
            };
            paths.insert(entry.path(), modified);
            if let StatusEntry::Changed { previous_path: Some(previous), .. } = entry {
                paths.entry(previous).or_insert(false);
            }
        }
        let hash = |(path, modified): (&RepoPath, bool)| {
            let sha256 = content_hash(&self.root().join(path.as_path()))
                .map_err(|source| GitError::Unreadable { path: path.clone(), source })?;
            Ok(UncommittedFile { path: path.to_string(), modified, sha256 })
        };
        paths.into_iter().map(hash).collect()
    }
}

fn content_hash(path: &Path) -> io::Result<Option<Sha256Hash>> {
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if kind.is_symlink() {
        return fs::read_link(path).map(|target| Some(Sha256Hash::of(target.as_os_str().as_bytes())));
    }
    if !kind.is_file() {
        return Ok(None);
    }
    let file = File::open(path)?;
    let found = file.metadata()?;
    if found.len() >= LARGE_FILE_BYTES {
        let identity = (found.len(), found.mtime(), found.mtime_nsec());
        return Ok(Some(Sha256Hash::of(format!("{identity:?}").as_bytes())));
    }
    Sha256Hash::of_all(file).map(Some)
}
