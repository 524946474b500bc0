//! Decides whether to encrypt, given the configured mode and the available keys.
//!
//! Owns the rule, as a pure function. Does not read or create keys and prints no warnings.

use baton_app::checkpoint::Sealing;
use baton_store::KeyRing;
use serde::Deserialize;

use super::source::SourceError;

/// Encryption mode, set with `BATON_ENCRYPTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Write plain text.
    #[serde(alias = "disabled")]
    Off,
    /// Encrypt if a key is available; otherwise write plain text and warn.
    #[serde(alias = "enabled")]
    Preferred,
    /// Encrypt, or fail.
    Required,
}

/// Decides how to write contexts, given the keys that were read. The first key is created with `mint`, and only if the
/// store holds no encrypted data: a locked keychain looks empty, and storing another first key would silently make the
/// encrypted data unreadable.
pub(crate) fn decide(
    mode: Mode,
    read: Result<KeyRing, SourceError>,
    is_anything_sealed: bool,
    mint: impl FnOnce() -> Result<KeyRing, SourceError>,
) -> Sealing {
    if mode == Mode::Off {
        return Sealing::Plain(read.ok());
    }
    let keys = match read {
        Err(error) if error.is_missing() && !is_anything_sealed => mint(),
        read => read,
    };
    let (reason, hint) = match keys {
        Ok(keys) => return Sealing::Sealed(keys),
        Err(error) if error.is_missing() && is_anything_sealed => (
            "the store has encrypted data, but no key was found; no new key is created, because the data would stay \
             unreadable"
                .to_owned(),
            "unlock the keychain, or put the key back: BATON_ENCRYPTION_KEY_FILE names a file that has it".to_owned(),
        ),
        Err(error) => (error.to_string(), error.hint()),
    };
    if mode == Mode::Required {
        Sealing::Refused { reason, hint }
    } else {
        Sealing::Fallback { reason, hint }
    }
}

#[cfg(test)]
mod tests {
    use baton_store::SecretKey;

    use super::*;
    use crate::keys::keychain::KeychainError;

    /// Returns the name of a decision and its keys.
    fn name(sealing: &Sealing) -> (&'static str, Option<&KeyRing>) {
        match sealing {
            Sealing::Plain(opening) => ("plain", opening.as_ref()),
            Sealing::Sealed(keys) => ("sealed", Some(keys)),
            Sealing::Fallback { .. } => ("fallback", None),
            Sealing::Refused { .. } => ("refused", None),
        }
    }

    #[test]
    fn decides_every_combination_of_mode_keys_and_data() {
        let [stored, fresh] = [7, 8].map(|byte| KeyRing::from(SecretKey::new(&[byte; 32])));
        let read = |answer: &str| match answer {
            "found" => Ok(stored.clone()),
            "missing" => Err(KeychainError::NoKeys.into()),
            _ => Err(KeychainError::Failed { cause: "it is gone".into() }.into()),
        };
        let (none, stored_keys, fresh_keys) = (None, Some(&stored), Some(&fresh));
        let table = [
            (Mode::Off, "found", false, "plain", stored_keys),
            (Mode::Off, "found", true, "plain", stored_keys),
            (Mode::Off, "missing", false, "plain", none),
            (Mode::Off, "missing", true, "plain", none),
            (Mode::Off, "gone", false, "plain", none),
            (Mode::Off, "gone", true, "plain", none),
            (Mode::Preferred, "found", false, "sealed", stored_keys),
            (Mode::Preferred, "found", true, "sealed", stored_keys),
            (Mode::Preferred, "missing", false, "sealed", fresh_keys),
            (Mode::Preferred, "missing", true, "fallback", none),
            (Mode::Preferred, "gone", false, "fallback", none),
            (Mode::Preferred, "gone", true, "fallback", none),
            (Mode::Required, "found", false, "sealed", stored_keys),
            (Mode::Required, "found", true, "sealed", stored_keys),
            (Mode::Required, "missing", false, "sealed", fresh_keys),
            (Mode::Required, "missing", true, "refused", none),
            (Mode::Required, "gone", false, "refused", none),
            (Mode::Required, "gone", true, "refused", none),
        ];
        for (mode, answer, is_anything_sealed, expected, keys) in table {
            let sealing = decide(mode, read(answer), is_anything_sealed, || Ok(fresh.clone()));
            assert_eq!(name(&sealing), (expected, keys), "{mode:?}, {answer}, {is_anything_sealed}");
            if let Sealing::Refused { reason, .. } | Sealing::Fallback { reason, .. } = sealing {
                assert_eq!(reason.contains("it is gone"), answer == "gone", "{reason}");
            }
        }
    }

    #[test]
    fn a_first_key_that_cannot_be_stored_is_not_reported_as_missing() {
        let missing = || Err(KeychainError::NoKeys.into());
        let Sealing::Refused { reason, .. } = decide(Mode::Required, missing(), false, missing) else {
            panic!("not refused");
        };
        assert!(!reason.contains("encrypted data"), "{reason}");
    }
}
