//! The configured source of keys. Does not own the sources.

use baton_store::{KeyRing, SecretKey};

use super::file::{KeyFile, KeyFileError, KeyFileWarning};
use super::keychain::{Keychain, KeychainError};

#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    File(KeyFile),
    /// The keychain of the desktop.
    Keychain(Keychain),
}

/// Error of reading or writing keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(transparent)]
    File(#[from] KeyFileError),
    #[error(transparent)]
    Keychain(#[from] KeychainError),
}

impl SourceError {
    /// Returns true if there are no keys yet.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::File(KeyFileError::Missing { .. }) | Self::Keychain(KeychainError::NoKeys))
    }

    /// Returns a hint for the user.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint(),
            Self::Keychain(error) => error.hint().into(),
        }
    }
}

impl KeySource {
    /// Reads the keys and returns them with a warning about the key file, if any.
    pub(crate) fn read(&self) -> Result<(KeyRing, Option<KeyFileWarning>), SourceError> {
        match self {
            Self::File(file) => Ok(file.read()?),
            Self::Keychain(keychain) => Ok((keychain.read()?, None)),
        }
    }

    /// Stores a first key, unless there are keys, and returns the stored keys.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => Ok(file.mint(fresh)?),
            Self::Keychain(keychain) => Ok(keychain.mint(fresh)?),
        }
    }

    /// Replaces the keys and returns the new ones.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(KeyRing) -> KeyRing + Send + 'static,
    ) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => Ok(file.change(change)?),
            Self::Keychain(keychain) => Ok(keychain.change(change)?),
        }
    }
}
