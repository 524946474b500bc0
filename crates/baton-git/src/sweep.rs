//! Garbage collection of an object store.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::error::GitError;
use crate::object::ObjectId;
use crate::object_store::{ObjectStore, entries, remove, remove_temporaries};
use crate::pack::index_ids;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the objects that the snapshot refers to directly.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        [Some(self.tree), Some(self.patch_tree), self.not_checked_out].into_iter().flatten()
    }
}

impl ObjectStore {
    /// Removes packs and loose objects that are not reachable from `kept`, and incomplete files left by crashes.
    /// Returns the number of freed bytes; `None`, without removing anything, if the object store is in use.
    ///
    /// A pack is removed only if none of its objects is needed.
    ///
    /// # Errors
    ///
    /// Fails if git fails or a file cannot be removed. Files removed before that were not needed.
    pub fn sweep(&self, kept: &[ObjectId]) -> Result<Option<u64>, GitError> {
        if !self.in_use().try_lock().unwrap_or(false) {
            // The attempt gave up the shared lock.
            let _ = self.in_use().share();
            return Ok(None);
        }
        let swept = self.sweep_alone(kept);
        // Waiting users may continue, and this handle counts as a user again.
        self.in_use().share().map_err(GitError::folder(self.folder()))?;
        swept.map(Some)
    }

    fn sweep_alone(&self, kept: &[ObjectId]) -> Result<u64, GitError> {
        let needed = self.reachable(kept)?;
        let mut freed = 0;
        let packs = self.objects().join("pack");
        for path in entries(&packs)? {
            let needless = match path.extension().and_then(|ending| ending.to_str()) {
                Some("idx") => {
                    let bytes = fs::read(&path).map_err(GitError::folder(&path))?;
                    let ids = index_ids(&bytes, self.object_format()).unwrap_or_default();
                    !ids.iter().any(|id| needed.contains(id))
                }
                // A pack is removed together with its index.
                Some("pack") => !path.with_extension("idx").exists(),
                // A temporary file: the exclusive lock guarantees that it is not being written.
                _ => true,
            };
            if needless {
                // Git finds a pack by its index, so the index is removed first.
                freed += remove(&path)?;
                freed += remove(&path.with_extension("pack"))?;
            }
        }
        for folder in entries(&self.objects())?.into_iter().filter(|folder| loose_prefix(folder).is_some()) {
            for path in entries(&folder)? {
                let id = loose_prefix(&folder)
                    .zip(path.file_name().and_then(|name| name.to_str()))
                    .and_then(|(prefix, rest)| ObjectId::from_hex(format!("{prefix}{rest}").as_bytes()));
                if id.is_none_or(|id| !needed.contains(&id)) {
                    freed += remove(&path)?;
                }
            }
        }
        freed += remove_temporaries(self.folder())?;
        Ok(freed)
    }

    /// Returns all objects reachable from some objects, in the object store or in the repository it borrows from.
    fn reachable(&self, from: &[ObjectId]) -> Result<HashSet<ObjectId>, GitError> {
        if from.is_empty() {
            return Ok(HashSet::new());
        }
        let input: String = from.iter().map(|id| format!("{id}\n")).collect();
        // Missing objects are ignored: they were removed here or in the user's repository.
        let arguments =
            ["--objects", "--no-object-names", "--ignore-missing", "--missing=allow-any", "--stdin"];
        let output = self.call("rev-list").arguments(arguments).input(input.into_bytes()).output()?;
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let ids: Option<HashSet<ObjectId>> = lines.map(ObjectId::from_hex).collect();
        ids.ok_or_else(|| GitError::unexpected("rev-list", "a line is not an object id"))
    }
}

/// Returns the two-digit name of a folder of loose objects.
fn loose_prefix(folder: &Path) -> Option<&str> {
    let name = folder.file_name()?.to_str()?;
    (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(name)
}
