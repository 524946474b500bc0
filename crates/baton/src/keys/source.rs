//! The configured source of keys, and how keys are obtained from it.
//!
//! Owns the sequence: read the keys, decide, create the first key. Does not own the rule (`decision`) or the sources.

use baton_store::{KeyId, KeyRing, SecretKey};

use super::decision::{Answer, Decision, Mode, Sealed, decide};
use super::file::{KeyFile, KeyFileError, KeyFileWarning};
use super::keychain::{Keychain, KeychainError};

#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// A key file.
    File(KeyFile),
    /// The keychain of the desktop.
    Keychain(Keychain),
}

/// Error of reading or writing keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// Error of the key file.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// Error of the keychain.
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

impl From<SourceError> for Answer {
    fn from(error: SourceError) -> Self {
        if error.is_missing() {
            return Self::Missing;
        }
        Self::Unavailable { reason: error.to_string(), hint: error.hint() }
    }
}

impl KeySource {
    /// Reads the keys and returns them with a warning about the key file, if any.
    pub(crate) fn read(&self) -> Result<(KeyRing, Option<KeyFileWarning>), SourceError> {
        match self {
            Self::File(file) => file.read().map(|read| (read.keys, read.warning)).map_err(Into::into),
            Self::Keychain(keychain) => keychain.read().map(|keys| (keys, None)).map_err(Into::into),
        }
    }

    /// Stores a first key, unless there are keys, and returns the stored keys.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.mint(fresh).map_err(Into::into),
            Self::Keychain(keychain) => keychain.mint(fresh).map_err(Into::into),
        }
    }

    /// Adds a key as the current one and keeps the others.
    pub(crate) fn rotate(&self, fresh: SecretKey) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.rotate(fresh).map_err(Into::into),
            Self::Keychain(keychain) => keychain.rotate(fresh).map_err(Into::into),
        }
    }

    /// Removes old keys that are not in `still_used`.
    pub(crate) fn drop_old(&self, still_used: &[KeyId]) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.drop_old(still_used).map_err(Into::into),
            Self::Keychain(keychain) => keychain.drop_old(still_used).map_err(Into::into),
        }
    }
}

/// Result of [`obtain`].
#[derive(Debug)]
pub(crate) struct Obtained {
    /// The decision; never [`Decision::Mint`].
    pub(crate) decision: Decision,
    /// Warning about the key file.
    pub(crate) warning: Option<KeyFileWarning>,
}

/// Reads the keys and decides how to write. Stores `fresh` as the first key if the decision is [`Decision::Mint`].
pub(crate) fn obtain(mode: Mode, source: &KeySource, sealed: Sealed, fresh: SecretKey) -> Obtained {
    // Nothing to encrypt and nothing to decrypt, so the keychain must not prompt for its password.
    if mode == Mode::Off && sealed == Sealed::None {
        return Obtained { decision: Decision::Plain { opening: None }, warning: None };
    }
    let (answer, warning) = match source.read() {
        Ok((keys, warning)) => (Answer::Found(keys), warning),
        Err(error) => (error.into(), None),
    };
    let decision = match decide(mode, answer, sealed) {
        Decision::Mint => decide(mode, store_first_key(source, fresh), sealed),
        decision => decision,
    };
    Obtained { decision, warning }
}

/// Stores the first key. Every error counts as unavailable, never as missing, so that it is not tried again.
fn store_first_key(source: &KeySource, fresh: SecretKey) -> Answer {
    match source.mint(fresh) {
        Ok(keys) => Answer::Found(keys),
        Err(error) => Answer::Unavailable { reason: error.to_string(), hint: error.hint() },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(path: &Path) -> KeySource {
        KeySource::File(KeyFile::at(path))
    }

    fn fresh() -> SecretKey {
        SecretKey::random().unwrap()
    }

    fn decision(mode: Mode, source: &KeySource, sealed: Sealed) -> Decision {
        obtain(mode, source, sealed, fresh()).decision
    }

    #[test]
    fn the_first_key_is_created_once_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        let source = file(&folder.path().join("keys"));
        let Decision::Use(keys) = decision(Mode::Preferred, &source, Sealed::None) else {
            panic!("no key");
        };
        assert_eq!(decision(Mode::Required, &source, Sealed::Some), Decision::Use(keys.clone()));
        assert_eq!(decision(Mode::Off, &source, Sealed::Some), Decision::Plain { opening: Some(keys) });
        assert_eq!(decision(Mode::Off, &source, Sealed::None), Decision::Plain { opening: None });
    }

    #[test]
    fn no_key_is_created_if_the_store_has_encrypted_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for mode in [Mode::Off, Mode::Preferred, Mode::Required] {
            decision(mode, &file(&path), Sealed::Some);
            assert!(!path.exists(), "{mode:?}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_stored_is_not_used() {
        let source = file(Path::new("/nowhere/at/all/keys"));
        let Decision::PlainWithWarning { reason, .. } = decision(Mode::Preferred, &source, Sealed::None)
        else {
            panic!("used");
        };
        assert!(reason.contains("/nowhere/at/all/keys"), "{reason}");
        assert!(matches!(decision(Mode::Required, &source, Sealed::None), Decision::Refuse { .. }));
    }
}
