//! Keys in the keychain of the desktop: Secret Service, macOS Keychain, Windows Credential Manager.
//!
//! Owns talking to it without ever hanging, and telling its failures apart. Does not own the form of the text that is
//! stored, or what to do when there is no key.
//!
//! All processes of a person share one entry, whatever data folder they work on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use baton_store::{KeyId, KeyRing, SecretKey};
use keyring::{Entry, Error};
use zeroize::Zeroizing;

use super::lock::Lock;
use super::text::{self, KeyTextError};

const SERVICE: &str = "baton";
const USER: &str = "encryption-keys";
/// An entry without meaning, written so that the keychain unlocks.
const UNLOCKING_USER: &str = "unlocking";

/// Why the keychain does not give its keys or take new ones.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeychainError {
    /// None runs on this machine, or none that this process can reach.
    #[error("there is no keychain to be reached: {cause}")]
    Absent {
        /// What was said.
        cause: String,
    },
    /// It is there and does not let this process in.
    #[error("the keychain is locked, was never set up or denies access: {cause}")]
    Locked {
        /// What was said.
        cause: String,
    },
    /// It did not answer; most likely it asks for a password that nobody types.
    #[error("the keychain did not answer within {} ms", deadline.as_millis())]
    TimedOut {
        /// How long was waited.
        deadline: Duration,
    },
    /// It has no entry for keys, or does not show it while it is locked.
    #[error("the keychain has no encryption keys (service {SERVICE}, user {USER})")]
    NoKeys,
    /// Its entry holds something else than keys.
    #[error("the keychain entry (service {SERVICE}, user {USER}) is not a list of keys: {source}")]
    Content {
        /// What is wrong with it.
        source: KeyTextError,
    },
    /// It has several entries, and which of them counts cannot be told.
    #[error("the keychain has {count} entries for service {SERVICE}, user {USER}")]
    Several {
        /// How many.
        count: usize,
    },
    /// What it was given is not what it gives back.
    #[error("the keychain took the keys and did not keep them")]
    NotKept,
    /// Something else.
    #[error("the keychain failed: {cause}")]
    Failed {
        /// What was said.
        cause: String,
    },
    /// The lock against other processes could not be taken.
    #[error("could not lock {}: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl KeychainError {
    /// Says what to do next.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Absent { .. } | Self::Failed { .. } | Self::NotKept => {
                "keep the keys in a file instead: BATON_ENCRYPTION_KEY_FILE=<path>"
            }
            Self::Locked { .. } | Self::TimedOut { .. } => {
                "unlock the keychain, or keep the keys in a file instead: BATON_ENCRYPTION_KEY_FILE=<path>"
            }
            Self::NoKeys => {
                "unlock the keychain if it is locked; a first key is made where nothing is encrypted yet"
            }
            Self::Content { source } => source.hint(),
            Self::Several { .. } => {
                "look at them with the keychain's own program and remove those that are not needed"
            }
            Self::Lock { .. } => {
                "make the file writable for you, and see whether another baton process hangs"
            }
        }
    }
}

/// The entry for keys in the keychain, there or not.
#[derive(Debug, Clone)]
pub(crate) struct Keychain {
    lock_path: PathBuf,
    deadline: Duration,
}

impl Keychain {
    /// Takes where to lock while keys are replaced, the same for all processes of a person, and how long to wait for an
    /// answer. A locked keychain asks the person: only whoever can wait for that should have a long deadline.
    pub(crate) fn new(lock_path: &Path, deadline: Duration) -> Self {
        Self { lock_path: lock_path.to_owned(), deadline }
    }

    /// Reads the keys.
    pub(crate) fn read(&self) -> Result<KeyRing, KeychainError> {
        self.within_deadline(|| read_entry(&entry(USER)?))
    }

    /// Stores this key, unless there are keys. Of several processes that do so at once one wins, and all get the
    /// winner's keys.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, KeychainError> {
        self.change(move |keys| match keys {
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

    /// Puts a new current key in front of the others.
    pub(crate) fn rotate(&self, fresh: SecretKey) -> Result<KeyRing, KeychainError> {
        self.change(move |keys| Ok(keys.ok_or(KeychainError::NoKeys)?.rotated(fresh)))
    }

    /// Drops the older keys that nothing is sealed with any more.
    pub(crate) fn drop_old(&self, still_used: &[KeyId]) -> Result<KeyRing, KeychainError> {
        let still_used = still_used.to_vec();
        self.change(move |keys| {
            Ok(keys.ok_or(KeychainError::NoKeys)?.without_unneeded(|id| still_used.contains(&id)))
        })
    }

    fn change(
        &self,
        change: impl FnOnce(Option<KeyRing>) -> Result<KeyRing, KeychainError> + Send + 'static,
    ) -> Result<KeyRing, KeychainError> {
        let Self { lock_path, deadline } = self.clone();
        self.within_deadline(move || {
            // Held by the thread that writes, not by the one that waits: a write that comes after the deadline must not
            // replace what another process has stored by then.
            let _lock = Lock::acquire(&lock_path, deadline)
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
                // Sealing with a key that was not kept would lose data.
                if read_entry(&entry)? != after {
                    return Err(KeychainError::NotKept);
                }
            }
            Ok(after)
        })
    }

    /// Neither the bus nor a password prompt that nobody sees has a limit of its own.
    fn within_deadline<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, KeychainError> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("keychain".into())
            // Nobody listens any more when the deadline has passed.
            .spawn(move || drop(sender.send(work())))
            .map_err(|error| KeychainError::Failed { cause: error.to_string() })?;
        receiver.recv_timeout(self.deadline).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(KeychainError::TimedOut { deadline: self.deadline }),
            RecvTimeoutError::Disconnected => {
                Err(KeychainError::Failed { cause: "its client broke off".into() })
            }
        })
    }
}

fn entry(user: &str) -> Result<Entry, KeychainError> {
    // The entry itself would only say that there is no store, not why.
    if let Err(cause) = Entry::store_status() {
        return Err(KeychainError::Absent { cause: cause_of(cause) });
    }
    Entry::new(SERVICE, user).map_err(explain)
}

fn read_entry(entry: &Entry) -> Result<KeyRing, KeychainError> {
    let bytes = Zeroizing::new(entry.get_secret().map_err(explain)?);
    text::parse(&bytes).map_err(|source| KeychainError::Content { source })
}

/// Makes sure that the keychain is unlocked. Some of them show no entries while they are locked, and storing a first key
/// would then unlock them and replace the keys that are there; to write another entry unlocks them as well.
fn unlock() -> Result<(), KeychainError> {
    let entry = entry(UNLOCKING_USER)?;
    entry.set_secret(b"unlocked").map_err(explain)?;
    match entry.delete_credential() {
        // Another process was first.
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(explain(error)),
    }
}

/// Some variants carry the secret that was read: nothing of those is passed on.
fn explain(error: Error) -> KeychainError {
    match error {
        Error::NoEntry => KeychainError::NoKeys,
        Error::NoStorageAccess(_) => KeychainError::Locked { cause: cause_of(&error) },
        Error::Ambiguous(entries) => KeychainError::Several { count: entries.len() },
        Error::NoDefaultStore => KeychainError::Absent { cause: "it could not be opened".into() },
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            KeychainError::Failed { cause: "its entry cannot be decoded".into() }
        }
        Error::TooLong(..) => KeychainError::Failed { cause: "there are more keys than it can hold".into() },
        _ => KeychainError::Failed { cause: cause_of(&error) },
    }
}

/// What the platform said, without the words that every such error begins with.
fn cause_of(error: &Error) -> String {
    match error {
        Error::PlatformFailure(cause) | Error::NoStorageAccess(cause) => cause.to_string(),
        _ => error.to_string(),
    }
}
