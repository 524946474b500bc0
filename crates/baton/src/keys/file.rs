//! Key file that only its owner can access.
//!
//! Owns reading, creating and durably replacing the file. Does not own the format of its text.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_files::DurableFile;
use baton_store::{KeyRing, SecretKey};
use zeroize::Zeroizing;

use super::lock::acquire_lock;
use super::text::{self, KeyTextError};

/// Maximum size, enough for hundreds of keys. A larger file is not a key file.
const MAX_BYTES: u64 = 64 * 1024;
/// Timeout for the lock; its holder replaces the file within milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Error of reading or writing a key file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    /// The file does not exist.
    #[error("key file {} does not exist", path.display())]
    Missing { path: PathBuf },
    /// The file cannot be read.
    #[error("cannot read key file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is too large for a list of keys.
    #[error("key file {} is larger than {MAX_BYTES} bytes", path.display())]
    TooLarge { path: PathBuf },
    /// The file is not a list of keys.
    #[error("key file {}: {source}", path.display())]
    Content { path: PathBuf, source: KeyTextError },
    /// The file cannot be created or replaced.
    #[error("cannot write key file {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl KeyFileError {
    /// Returns a hint for the user.
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

/// Warning about a key file that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFileWarning {
    /// Other users can access the file.
    #[error("key file {} has mode {mode:04o}: other users can access it; run chmod 600 on it", path.display())]
    OpenToOthers { path: PathBuf, mode: u32 },
    /// Another user owns the file and can replace its content.
    #[error("key file {} belongs to another user (id {owner})", path.display())]
    OwnedByAnother {
        path: PathBuf,
        /// User id of the owner.
        owner: u32,
    },
}

/// Key file at a path; it need not exist.
#[derive(Debug, Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys, with a warning about the file, if any. Access by other users is a warning and not an error, because
    /// mounted secrets often have such modes.
    pub(crate) fn read(&self) -> Result<(KeyRing, Option<KeyFileWarning>), KeyFileError> {
        let path = || self.path.clone();
        let unreadable = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => KeyFileError::Missing { path: path() },
            _ => KeyFileError::Unreadable { path: path(), source },
        };
        let file = File::open(&self.path).map_err(unreadable)?;
        let warning = self.warning(&file.metadata().map_err(unreadable)?);
        // The buffer must not be reallocated, because that would leave copies of the keys in memory.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(KeyFileError::TooLarge { path: path() });
        }
        let keys = text::parse(&bytes).map_err(|source| KeyFileError::Content { path: path(), source })?;
        Ok((keys, warning))
    }

    fn warning(&self, metadata: &fs::Metadata) -> Option<KeyFileWarning> {
        let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
        // The mode of a pipe, for example `<(pass show baton)`, has no meaning.
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

    /// Creates the file with this key, unless it exists, and returns its keys. Concurrent processes all get the keys of
    /// the one that created the file.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, KeyFileError> {
        let keys = KeyRing::from(fresh);
        // Never replaces an existing file. The new file appears complete and with its mode.
        match write_temporary(&self.path, &keys).and_then(DurableFile::finish_new) {
            Ok(()) => Ok(keys),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.read().map(|(keys, _)| keys),
            Err(error) => Err(self.unwritable(error)),
        }
    }

    /// Replaces the keys under a lock; comments in the file are lost.
    pub(crate) fn change(&self, change: impl FnOnce(KeyRing) -> KeyRing) -> Result<KeyRing, KeyFileError> {
        // Symbolic links are resolved, so that the file is replaced and not the link.
        let path = self.path.canonicalize().map_err(|source| match source.kind() {
            ErrorKind::NotFound => KeyFileError::Missing { path: self.path.clone() },
            _ => KeyFileError::Unreadable { path: self.path.clone(), source },
        })?;
        let mut lock_name = path.clone().into_os_string();
        lock_name.push(".lock");
        let _lock =
            acquire_lock(Path::new(&lock_name), LOCK_TIMEOUT).map_err(|error| self.unwritable(error))?;
        let (before, _) = self.read()?;
        let after = change(before.clone());
        if after != before {
            write_temporary(&path, &after)
                .and_then(DurableFile::finish)
                .map_err(|error| self.unwritable(error))?;
        }
        Ok(after)
    }

    fn unwritable(&self, source: io::Error) -> KeyFileError {
        KeyFileError::Unwritable { path: self.path.clone(), source }
    }
}

/// Writes the keys to a temporary file (mode 0600).
fn write_temporary(path: &Path, keys: &KeyRing) -> io::Result<DurableFile> {
    let mut file = DurableFile::create(path)?;
    file.write_all(text::write(keys).as_bytes())?;
    Ok(file)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
