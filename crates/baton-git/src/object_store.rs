//! A folder of the caller that holds the objects of snapshots.
//!
//! For git it is a separate repository that borrows the objects of the user's repository, which does not know about it.
//! One object store serves all snapshots of a checkout; the more it contains, the less has to be read again.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::Sha256Hash;
use baton_files::{LockFile, sync_folder, write_durably};

use crate::error::GitError;
use crate::object::{ObjectFormat, ObjectId};
use crate::pack::{NewObject, PackError, packed_ids, write_pack};
use crate::path::{RepoPath, quoted};
use crate::program::{Git, Invocation};
use crate::repository::Repository;

/// A store for the objects of snapshots.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    git: Git,
    folder: PathBuf,
    /// Object folder of the user's repository, quoted for git.
    borrowed: OsString,
    object_format: ObjectFormat,
    excluded: Vec<RepoPath>,
    /// Shared lock that prevents a sweep while the object store is in use.
    in_use: Arc<LockFile>,
    reread: bool,
    digests: Arc<Mutex<Digests>>,
}

/// Size and SHA-256 of objects.
pub(crate) type Digests = HashMap<ObjectId, (u64, Sha256Hash)>;

impl ObjectStore {
    /// Opens or creates an object store. `excluded` lists top-level paths of the checkout that are never part of a
    /// snapshot, whether tracked, ignored or not.
    ///
    /// # Errors
    ///
    /// [`GitError::Folder`], or [`GitError::OtherObjectFormat`] for an object store with another object format.
    pub fn open(
        folder: impl Into<PathBuf>,
        repository: &Repository,
        excluded: impl IntoIterator<Item = RepoPath>,
    ) -> Result<Self, GitError> {
        let folder = folder.into();
        let object_format = repository.object_format();
        prepare(&folder, object_format)?;
        let borrowed = quoted(repository.common_dir().join("objects").as_os_str().as_bytes()).into();
        let excluded = excluded
            .into_iter()
            .map(|path| RepoPath::new(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes())))
            .collect();
        let in_use = Arc::new(mark_used(&folder)?);
        let git = repository.git().clone();
        let digests = Arc::default();
        Ok(Self { git, folder, borrowed, object_format, excluded, in_use, reread: false, digests })
    }

    /// Makes captures read every file again, even if its stat information is unchanged.
    #[must_use]
    pub fn rereading(mut self) -> Self {
        self.reread = true;
        self
    }

    pub(crate) const fn rereads(&self) -> bool {
        self.reread
    }

    /// Returns the digests that are already known.
    pub(crate) fn known_digests(&self) -> MutexGuard<'_, Digests> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_use(&self) -> &LockFile {
        &self.in_use
    }

    /// Returns the folder of the object store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the paths that are never part of a snapshot.
    pub fn excluded(&self) -> &[RepoPath] {
        &self.excluded
    }

    pub(crate) const fn object_format(&self) -> ObjectFormat {
        self.object_format
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    pub(crate) fn stat_cache(&self) -> PathBuf {
        self.folder.join("stat-cache")
    }

    /// Starts a git call on the objects of the object store and the objects that it borrows, without any
    /// configuration.
    pub(crate) fn call(&self, subcommand: &'static str) -> Invocation<'_> {
        self.git
            .call(&self.folder, subcommand)
            .without_user_settings()
            // Git reads larger files as a stream and does not compare them line by line.
            .setting("core.bigFileThreshold", self.git.limits().large_file_bytes.to_string())
            // Git maps packs into memory as a whole by default.
            .setting("core.packedGitWindowSize", "1m")
            .setting("core.packedGitLimit", "16m")
            .variable("GIT_DIR", &self.folder)
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.borrowed)
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .variable("GIT_CONFIG_GLOBAL", "/dev/null")
    }

    /// Stores missing objects and syncs them to disk.
    pub(crate) fn store(&self, mut objects: Vec<NewObject<'_>>) -> Result<(), PackError> {
        let failed = |error| PackError::Failed(GitError::folder(&self.folder)(error));
        let mut seen = HashSet::with_capacity(objects.len());
        objects.retain(|object| seen.insert(object.id));
        if !objects.is_empty() {
            let stored = packed_ids(&self.objects().join("pack"), self.object_format).map_err(failed)?;
            objects.retain(|object| !stored.contains(&object.id) && !self.has_loose(object.id));
        }
        if objects.is_empty() {
            return Ok(());
        }
        write_pack(&self.objects().join("pack"), self.object_format, &objects)
    }

    fn has_loose(&self, id: ObjectId) -> bool {
        let digits = id.to_string();
        let (folder, name) = digits.split_at(2);
        self.objects().join(folder).join(name).exists()
    }
}

/// Creates the folders and files that make the folder a git repository.
fn prepare(folder: &Path, format: ObjectFormat) -> Result<(), GitError> {
    let settings = match format {
        ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n".to_owned(),
        ObjectFormat::Sha256 => "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\
                                 [extensions]\n\tobjectformat = sha256\n"
            .to_owned(),
    };
    // The configuration is written last: if it exists, everything else exists.
    let config = folder.join("config");
    match fs::read_to_string(&config) {
        Ok(found) if found == settings => return Ok(()),
        // Left empty by a crash.
        Ok(found) if found.is_empty() => {}
        Ok(_) => return Err(GitError::OtherObjectFormat { path: folder.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(GitError::folder(config)(error)),
    }
    for part in ["objects/pack", "objects/info", "refs"] {
        let part = folder.join(part);
        DirBuilder::new().recursive(true).mode(0o700).create(&part).map_err(GitError::folder(part))?;
    }
    let sync = |folder: &Path| sync_folder(folder).map_err(GitError::folder(folder));
    sync(&folder.join("objects"))?;
    for (name, content) in [("HEAD", "ref: refs/heads/none\n"), ("config", settings.as_str())] {
        let path = folder.join(name);
        write_durably(&path, content.as_bytes()).map_err(GitError::folder(&path))?;
    }
    // Without this, a synced pack could be lost together with the name of a parent folder.
    folder.parent().map_or(Ok(()), sync)
}

/// Takes a shared lock on an object store until the result is dropped. A sweep does not wait for users, but users wait for a
/// sweep. The first user removes what killed processes left.
fn mark_used(folder: &Path) -> Result<LockFile, GitError> {
    let lock = LockFile::open(&folder.join("HEAD")).map_err(GitError::folder(folder))?;
    if lock.try_lock().unwrap_or(false) {
        // What cannot be removed now is removed by a later user.
        let _ = remove_temporaries(folder);
    }
    // Where files cannot be locked, a sweep is not possible either.
    let _ = lock.share();
    Ok(lock)
}

/// Removes indexes, caches and packs that a killed process did not complete.
pub(crate) fn remove_temporaries(folder: &Path) -> Result<u64, GitError> {
    let is_temporary = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".tmp"))
    };
    let packs = entries(&folder.join("objects/pack"))?;
    let mut freed = 0;
    for path in entries(folder)?.into_iter().chain(packs).filter(is_temporary) {
        if path.is_dir() {
            for file in entries(&path)? {
                freed += remove(&file)?;
            }
            fs::remove_dir(&path).map_err(GitError::folder(&path))?;
        } else {
            freed += remove(&path)?;
        }
    }
    Ok(freed)
}

pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, GitError> {
    let read = || fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let found: io::Result<Vec<PathBuf>> = read();
    found.map_err(GitError::folder(folder))
}

/// Removes a file if it exists and returns its size.
pub(crate) fn remove(path: &Path) -> Result<u64, GitError> {
    let remove = || {
        let size = fs::symlink_metadata(path)?.len();
        fs::remove_file(path).map(|()| size)
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        result => result.map_err(GitError::folder(path)),
    }
}
