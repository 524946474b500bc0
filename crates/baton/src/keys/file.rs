//! Keys in a file that belongs to one person alone.
//!
//! Owns reading it, making it and replacing it durably. Does not own the form of its text.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_store::{KeyId, KeyRing, SecretKey};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use super::lock::Lock;
use super::text::{self, KeyTextError};

/// Hundreds of keys; whatever is larger is another file.
const MAX_BYTES: u64 = 64 * 1024;
/// Replacing a file takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a key file does not give its keys or take new ones.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    /// There is none.
    #[error("there is no key file {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("could not read key file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is too large to be a list of keys.
    #[error("key file {} is larger than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else than keys.
    #[error("key file {}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyTextError,
    },
    /// It cannot be made or replaced.
    #[error("could not write key file {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl KeyFileError {
    /// Says what to do next.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Missing { .. } => {
                "put the file back, or point BATON_ENCRYPTION_KEY_FILE at the one that has the keys".into()
            }
            Self::Unreadable { path, .. } => {
                format!("make it readable for you: chmod 600 {}", path.display())
            }
            Self::TooLarge { .. } => "point BATON_ENCRYPTION_KEY_FILE at a file with nothing but keys".into(),
            Self::Content { source, .. } => source.hint().into(),
            Self::Unwritable { path, .. } => {
                format!("make the folder of {} writable for you, or change the file by hand", path.display())
            }
        }
    }
}

/// What is odd about a key file that can be read all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFileWarning {
    /// Its mode lets others in.
    #[error("key file {} has mode {mode:04o}: others can get at it; run chmod 600 on it", path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else can replace its content.
    #[error("key file {} belongs to another user (id {owner})", path.display())]
    OwnedByAnother {
        /// The file.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
}

/// What a key file holds.
#[derive(Debug)]
pub(crate) struct KeysRead {
    /// The keys.
    pub(crate) keys: KeyRing,
    /// What is odd about the file.
    pub(crate) warning: Option<KeyFileWarning>,
}

/// The key file at a path, there or not.
#[derive(Debug, Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// Takes the path as it is.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys. That others can read them too is a warning, not an error: mounted secrets often have such modes.
    pub(crate) fn read(&self) -> Result<KeysRead, KeyFileError> {
        let path = || self.path.clone();
        let unreadable = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => KeyFileError::Missing { path: path() },
            _ => KeyFileError::Unreadable { path: path(), source },
        };
        let file = File::open(&self.path).map_err(unreadable)?;
        let warning = self.warning(&file.metadata().map_err(unreadable)?);
        // Read to a buffer that does not grow: growing would leave copies of keys behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(KeyFileError::TooLarge { path: path() });
        }
        let keys = text::parse(&bytes).map_err(|source| KeyFileError::Content { path: path(), source })?;
        Ok(KeysRead { keys, warning })
    }

    fn warning(&self, metadata: &fs::Metadata) -> Option<KeyFileWarning> {
        let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
        // A pipe (`<(pass show baton)`) has no mode that means anything.
        if !metadata.is_file() {
            None
        } else if mode & 0o077 != 0 {
            Some(KeyFileWarning::OpenToOthers { path: self.path.clone(), mode })
        } else if owner != rustix::process::geteuid().as_raw() && owner != 0 {
            Some(KeyFileWarning::OwnedByAnother { path: self.path.clone(), owner })
        } else {
            None
        }
    }

    /// Makes the file with this key, unless there is one. Of several processes that do so at once one wins, and all
    /// get the winner's keys.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, KeyFileError> {
        let keys = KeyRing::from(fresh);
        let made = self.complete_file(&self.path, &keys).and_then(|file| {
            // Never replaces: the file appears whole and with its mode, or the other one stays.
            file.persist_noclobber(&self.path).map_err(|error| error.error)
        });
        match made {
            Ok(_) => sync_folder(&self.path).map_err(|error| self.unwritable(error)).map(|()| keys),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.read().map(|read| read.keys),
            Err(error) => Err(self.unwritable(error)),
        }
    }

    /// Puts a new current key in front of the others.
    pub(crate) fn rotate(&self, fresh: SecretKey) -> Result<KeyRing, KeyFileError> {
        self.change(|keys| keys.rotated(fresh))
    }

    /// Drops the older keys that nothing is sealed with any more.
    pub(crate) fn drop_old(&self, still_used: &[KeyId]) -> Result<KeyRing, KeyFileError> {
        self.change(|keys| keys.without_unneeded(|id| still_used.contains(&id)))
    }

    /// Replaces the list; comments in it are lost.
    fn change(&self, change: impl FnOnce(KeyRing) -> KeyRing) -> Result<KeyRing, KeyFileError> {
        // Through links, so that the file is replaced and not a link to it.
        let path = self.path.canonicalize().map_err(|source| match source.kind() {
            ErrorKind::NotFound => KeyFileError::Missing { path: self.path.clone() },
            _ => KeyFileError::Unreadable { path: self.path.clone(), source },
        })?;
        let mut lock_name = path.clone().into_os_string();
        lock_name.push(".lock");
        let _lock = Lock::acquire(Path::new(&lock_name), PATIENCE).map_err(|error| self.unwritable(error))?;
        let before = self.read()?.keys;
        let after = change(before.clone());
        if after != before {
            self.complete_file(&path, &after)
                .and_then(|file| file.persist(&path).map_err(|error| error.error))
                .and_then(|_| sync_folder(&path))
                .map_err(|error| self.unwritable(error))?;
        }
        Ok(after)
    }

    /// A file beside `path` (0600, made exclusively) that has all of its content on disk.
    fn complete_file(&self, path: &Path, keys: &KeyRing) -> io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix(".baton-keys-").tempfile_in(folder_of(path))?;
        file.write_all(text::write(keys).as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    fn unwritable(&self, source: io::Error) -> KeyFileError {
        KeyFileError::Unwritable { path: self.path.clone(), source }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
