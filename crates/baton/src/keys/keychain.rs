//! Keys in the keychain of the desktop: Secret Service (over D-Bus) or macOS Keychain.
//!
//! Owns access to the keychain with a timeout, and the classification of its errors. Does not own the format of the
//! stored text, or the decision what to do without a key.
//!
//! All processes of a user share one entry, regardless of their data folder.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
use baton_store::{KeyRing, SecretKey};
#[cfg(not(target_os = "macos"))]
use dbus_secret_service_keyring_store::Store;
use keyring_core::{Entry, Error, set_default_store};
use zeroize::Zeroizing;

use super::lock::acquire_lock;
use super::text::{self, KeyTextError};

const SERVICE: &str = "baton";
const USER: &str = "encryption-keys";
/// Entry that is written only to make the keychain unlock.
const UNLOCKING_USER: &str = "unlocking";

/// Error of reading or writing the keychain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeychainError {
    /// No keychain is available to this process.
    #[error("no keychain is available: {cause}")]
    Absent { cause: String },
    /// The keychain denies access.
    #[error("the keychain is locked, was never set up or denies access: {cause}")]
    Locked { cause: String },
    /// The keychain did not answer; most likely it waits at a password prompt.
    #[error("the keychain did not answer within {} ms", deadline.as_millis())]
    TimedOut { deadline: Duration },
    /// The keychain has no entry for keys, or hides it while it is locked.
    #[error("the keychain has no encryption keys (service {SERVICE}, user {USER})")]
    NoKeys,
    /// The entry is not a list of keys.
    #[error("the keychain entry (service {SERVICE}, user {USER}) is not a list of keys: {source}")]
    Content { source: KeyTextError },
    /// The keychain has several entries for the keys.
    #[error("the keychain has {count} entries for service {SERVICE}, user {USER}")]
    Several { count: usize },
    /// The keychain does not return the keys that were stored.
    #[error("the keychain accepted the keys but did not store them")]
    NotKept,
    /// Any other error.
    #[error("the keychain failed: {cause}")]
    Failed { cause: String },
    /// The lock file could not be locked.
    #[error("cannot lock {}: {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },
}

impl KeychainError {
    /// Returns a hint for the user.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Absent { .. } | Self::Failed { .. } | Self::NotKept => {
                "keep the keys in a file instead: BATON_ENCRYPTION_KEY_FILE=<path>"
            }
            Self::Locked { .. } | Self::TimedOut { .. } => {
                "unlock the keychain, or keep the keys in a file instead: BATON_ENCRYPTION_KEY_FILE=<path>"
            }
            Self::NoKeys => {
                "unlock the keychain if it is locked; Baton creates the first key only if nothing is encrypted yet"
            }
            Self::Content { source } => source.hint(),
            Self::Several { .. } => {
                "inspect the entries with the program of the keychain and remove those that are not needed"
            }
            Self::Lock { .. } => {
                "make the file writable for you, and check whether another baton process hangs"
            }
        }
    }
}

/// Keychain entry for the keys; it need not exist.
#[derive(Debug, Clone)]
pub(crate) struct Keychain {
    lock_path: PathBuf,
    deadline: Duration,
}

impl Keychain {
    /// Creates a client. `lock_path` is locked while keys are replaced and must be the same for all processes of the
    /// user. `deadline` limits each access; use a long one only if a user can answer the password prompt of a locked
    /// keychain.
    pub(crate) fn new(lock_path: &Path, deadline: Duration) -> Self {
        Self { lock_path: lock_path.to_owned(), deadline }
    }

    pub(crate) fn read(&self) -> Result<KeyRing, KeychainError> {
        self.within_deadline(|| read_entry(&entry(USER)?))
    }

    /// Stores this key, unless there are keys, and returns the stored keys. Concurrent processes all get the keys of
    /// the one that was first.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, KeychainError> {
        self.change_entry(move |keys| match keys {
            Some(keys) => Ok(keys),
            None => {
                unlock()?;
                match read_entry(&entry(USER)?) {
                    Err(KeychainError::NoKeys) => Ok(KeyRing::from(fresh)),
                    found => found,
                }
            }
        })
    }

    /// Replaces the keys under a lock.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(KeyRing) -> KeyRing + Send + 'static,
    ) -> Result<KeyRing, KeychainError> {
        self.change_entry(move |keys| keys.map(change).ok_or(KeychainError::NoKeys))
    }

    fn change_entry(
        &self,
        change: impl FnOnce(Option<KeyRing>) -> Result<KeyRing, KeychainError> + Send + 'static,
    ) -> Result<KeyRing, KeychainError> {
        let Self { lock_path, deadline } = self.clone();
        self.within_deadline(move || {
            // The thread that writes holds the lock, so that a write after the deadline cannot replace keys that
            // another process stored meanwhile.
            let _lock = acquire_lock(&lock_path, deadline)
                .map_err(|source| KeychainError::Lock { path: lock_path, source })?;
            let entry = entry(USER)?;
            let before = match read_entry(&entry) {
                Ok(keys) => Some(keys),
                Err(KeychainError::NoKeys) => None,
                Err(error) => return Err(error),
            };
            let after = change(before.clone())?;
            if before.as_ref() != Some(&after) {
                entry.set_secret(text::write(&after).as_bytes()).map_err(explain)?;
                // Encrypting with a key that was not stored would lose data.
                if read_entry(&entry)? != after {
                    return Err(KeychainError::NotKept);
                }
            }
            Ok(after)
        })
    }

    /// Runs `work` on a thread and waits until the deadline: neither D-Bus nor a password prompt has its own timeout.
    fn within_deadline<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, KeychainError> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("keychain".into())
            // After the deadline the receiver is gone, and the result is dropped.
            .spawn(move || drop(sender.send(work())))
            .map_err(|error| KeychainError::Failed { cause: error.to_string() })?;
        receiver.recv_timeout(self.deadline).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(KeychainError::TimedOut { deadline: self.deadline }),
            RecvTimeoutError::Disconnected => {
                Err(KeychainError::Failed { cause: "the keychain client stopped unexpectedly".into() })
            }
        })
    }
}

fn entry(user: &str) -> Result<Entry, KeychainError> {
    static CONNECTED: LazyLock<Result<(), Error>> =
        LazyLock::new(|| Store::new().map(|store| set_default_store(store)));
    CONNECTED.as_ref().map_err(|error| KeychainError::Absent { cause: cause_of(error) })?;
    Entry::new(SERVICE, user).map_err(explain)
}

fn read_entry(entry: &Entry) -> Result<KeyRing, KeychainError> {
    let bytes = Zeroizing::new(entry.get_secret().map_err(explain)?);
    text::parse(&bytes).map_err(|source| KeychainError::Content { source })
}

/// Unlocks the keychain by writing and deleting another entry. Some keychains hide their entries while they are locked;
/// storing a first key would unlock them and replace the existing keys.
fn unlock() -> Result<(), KeychainError> {
    let entry = entry(UNLOCKING_USER)?;
    entry.set_secret(b"unlocked").map_err(explain)?;
    match entry.delete_credential() {
        // NoEntry: another process deleted the entry first.
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(explain(error)),
    }
}

/// Converts an error. Variants that contain the secret that was read are replaced with a fixed text.
fn explain(error: Error) -> KeychainError {
    match error {
        Error::NoEntry => KeychainError::NoKeys,
        Error::NoStorageAccess(_) => KeychainError::Locked { cause: cause_of(&error) },
        Error::Ambiguous(entries) => KeychainError::Several { count: entries.len() },
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            KeychainError::Failed { cause: "its entry cannot be decoded".into() }
        }
        Error::TooLong(..) => KeychainError::Failed { cause: "the keys exceed its size limit".into() },
        _ => KeychainError::Failed { cause: cause_of(&error) },
    }
}

/// Returns the message of the platform without the prefix of `keyring_core`.
fn cause_of(error: &Error) -> String {
    match error {
        Error::PlatformFailure(cause) | Error::NoStorageAccess(cause) => cause.to_string(),
        _ => error.to_string(),
    }
}
