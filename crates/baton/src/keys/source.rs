//! The place where keys are kept, whichever is configured, and how they are obtained from it.
//!
//! Owns asking, deciding and minting in that order. Does not own the rule (`decision`) or the places.

use baton_store::{KeyId, KeyRing, SecretKey};

use super::decision::{Answer, Decision, Mode, Sealed, decide};
use super::file::{KeyFile, KeyFileError, KeyFileWarning};
use super::keychain::{Keychain, KeychainError};

/// Where keys are kept.
#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// In a file.
    File(KeyFile),
    /// In the keychain of the desktop.
    Keychain(Keychain),
}

/// Why keys were not given or taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The file does not.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The keychain does not.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
}

impl SourceError {
    /// Tells whether there are simply no keys yet.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::File(KeyFileError::Missing { .. }) | Self::Keychain(KeychainError::NoKeys))
    }

    /// Says what to do next.
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
    /// Reads the keys, and what is odd about where they lie.
    pub(crate) fn read(&self) -> Result<(KeyRing, Option<KeyFileWarning>), SourceError> {
        match self {
            Self::File(file) => file.read().map(|read| (read.keys, read.warning)).map_err(Into::into),
            Self::Keychain(keychain) => keychain.read().map(|keys| (keys, None)).map_err(Into::into),
        }
    }

    /// Stores a first key, unless there are keys; gives what is stored then.
    pub(crate) fn mint(&self, fresh: SecretKey) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.mint(fresh).map_err(Into::into),
            Self::Keychain(keychain) => keychain.mint(fresh).map_err(Into::into),
        }
    }

    /// Puts a new current key in front of the others.
    pub(crate) fn rotate(&self, fresh: SecretKey) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.rotate(fresh).map_err(Into::into),
            Self::Keychain(keychain) => keychain.rotate(fresh).map_err(Into::into),
        }
    }

    /// Drops the older keys that nothing is sealed with any more.
    pub(crate) fn drop_old(&self, still_used: &[KeyId]) -> Result<KeyRing, SourceError> {
        match self {
            Self::File(file) => file.drop_old(still_used).map_err(Into::into),
            Self::Keychain(keychain) => keychain.drop_old(still_used).map_err(Into::into),
        }
    }
}

/// What came of asking for keys.
#[derive(Debug)]
pub(crate) struct Obtained {
    /// What to do; never [`Decision::Mint`].
    pub(crate) decision: Decision,
    /// What is odd about where the keys lie.
    pub(crate) warning: Option<KeyFileWarning>,
}

/// Asks for keys and decides, storing `fresh` as the first key if that is the decision.
pub(crate) fn obtain(mode: Mode, source: &KeySource, sealed: Sealed, fresh: SecretKey) -> Obtained {
    // Nothing to seal and nothing to open: nobody is to be asked for the password of the keychain.
    if mode == Mode::Off && sealed == Sealed::None {
        return Obtained { decision: Decision::Plain { opening: None }, warning: None };
    }
    let (answer, warning) = match source.read() {
        Ok((keys, warning)) => (Answer::Found(keys), warning),
        Err(error) => (error.into(), None),
    };
    let decision = match decide(mode, answer, sealed) {
        Decision::Mint => decide(mode, minted(source, fresh), sealed),
        decision => decision,
    };
    Obtained { decision, warning }
}

/// Whatever keeps the key from being stored, there is none then, and that is not a reason to try again.
fn minted(source: &KeySource, fresh: SecretKey) -> Answer {
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
    fn the_first_key_is_made_once_and_used_from_then_on() {
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
    fn no_key_is_made_beside_sealed_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for mode in [Mode::Off, Mode::Preferred, Mode::Required] {
            decision(mode, &file(&path), Sealed::Some);
            assert!(!path.exists(), "{mode:?}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_kept_is_not_used() {
        let source = file(Path::new("/nowhere/at/all/keys"));
        let Decision::PlainWithWarning { reason, .. } = decision(Mode::Preferred, &source, Sealed::None)
        else {
            panic!("used");
        };
        assert!(reason.contains("/nowhere/at/all/keys"), "{reason}");
        assert!(matches!(decision(Mode::Required, &source, Sealed::None), Decision::Refuse { .. }));
    }
}
