//! A folder of the caller's that holds the objects of snapshots.
//!
//! To git it is a repository of its own that borrows the objects of the user's; to the user's repository it does not
//! exist. One vault serves all snapshots of a checkout, and the more it serves the less has to be read twice.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GitError;
use crate::object::{ObjectFormat, ObjectId};
use crate::pack::{NewObject, PackError, packed_ids, write_pack};
use crate::path::{RepoPath, quoted};
use crate::program::{Git, Invocation};
use crate::repository::Repository;
use crate::sweep::mark_used;

/// Where objects of snapshots are kept.
#[derive(Debug, Clone)]
pub struct Vault {
    git: Git,
    folder: PathBuf,
    /// The objects of the user's repository, quoted for git.
    borrowed: OsString,
    object_format: ObjectFormat,
    excluded: Vec<RepoPath>,
    /// Held as long as the vault is used, so that nobody sweeps it.
    in_use: Arc<File>,
    reread: bool,
}

impl Vault {
    /// Opens a vault, or makes one. `excluded` names what lies at the top of the checkout and is part of no snapshot,
    /// tracked or not, ignored or not.
    ///
    /// # Errors
    ///
    /// [`GitError::Folder`]; [`GitError::OtherObjectFormat`] for a vault of another kind of repository.
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
        Ok(Self { git, folder, borrowed, object_format, excluded, in_use, reread: false })
    }

    /// Has captures read every file again, even those whose status information is unchanged.
    #[must_use]
    pub fn rereading(mut self) -> Self {
        self.reread = true;
        self
    }

    pub(crate) const fn rereads(&self) -> bool {
        self.reread
    }

    pub(crate) fn in_use(&self) -> &File {
        &self.in_use
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is part of no snapshot.
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

    /// Begins a call of git on the objects of the vault and those that it borrows, without any configuration.
    pub(crate) fn call(&self, subcommand: &'static str) -> Invocation<'_> {
        self.git
            .call(&self.folder, subcommand)
            .without_user_settings()
            // Git reads larger files as a stream and does not compare them line by line.
            .setting("core.bigFileThreshold", self.git.limits().large_file_bytes.to_string())
            .variable("GIT_DIR", &self.folder)
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.borrowed)
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .variable("GIT_CONFIG_GLOBAL", "/dev/null")
    }

    /// Stores the objects that are not here yet, durably.
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

/// Makes the folders and files that git takes for a repository.
fn prepare(folder: &Path, format: ObjectFormat) -> Result<(), GitError> {
    let settings = match format {
        ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n".to_owned(),
        ObjectFormat::Sha256 => "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\
                                 [extensions]\n\tobjectformat = sha256\n"
            .to_owned(),
    };
    // The settings are written last: where they are, everything is.
    let config = folder.join("config");
    match fs::read_to_string(&config) {
        Ok(found) if found == settings => return Ok(()),
        // Made just before a crash.
        Ok(found) if found.is_empty() => {}
        Ok(_) => return Err(GitError::OtherObjectFormat { path: folder.to_owned() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(GitError::folder(config)(error)),
    }
    for part in ["objects/pack", "objects/info", "refs"] {
        let part = folder.join(part);
        DirBuilder::new().recursive(true).mode(0o700).create(&part).map_err(GitError::folder(part))?;
    }
    sync_folder(&folder.join("objects"))?;
    for (name, content) in [("HEAD", "ref: refs/heads/none\n"), ("config", settings.as_str())] {
        let path = folder.join(name);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(content.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path).map(|_| ()).map_err(|error| error.error)
        };
        write().map_err(GitError::folder(&path))?;
        // What a pack is synced for would be lost with the name of any folder above it.
        sync_folder(folder)?;
    }
    folder.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(path: &Path) -> Result<(), GitError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(GitError::folder(path))
}
