//! Decides whether to encrypt, given the configured mode and the available keys.
//!
//! Owns the rule, as a pure function. Does not read or create keys and prints no warnings.

use baton_store::KeyRing;

/// Encryption mode, set with `BATON_ENCRYPTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write plain text.
    Off,
    /// Encrypt if a key is available; otherwise write plain text and warn.
    Preferred,
    /// Encrypt, or fail.
    Required,
}

/// Whether the store holds encrypted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// No encrypted data.
    None,
    /// Some encrypted data, so a key must exist.
    Some,
}

/// Result of reading the key source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The source has keys.
    Found(KeyRing),
    /// The source has no keys. A locked keychain may report the same.
    Missing,
    /// The source cannot be read.
    Unavailable {
        /// Cause.
        reason: String,
        /// What to do next.
        hint: String,
    },
}

/// How to write contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Write plain text, as configured.
    Plain {
        /// Keys that decrypt existing data.
        opening: Option<KeyRing>,
    },
    /// Encrypt with these keys.
    Use(KeyRing),
    /// Create the first key, then encrypt with it.
    Mint,
    /// Write plain text although encryption is preferred, and warn.
    PlainWithWarning {
        /// Cause.
        reason: String,
        /// What to do next.
        hint: String,
    },
    /// Reject the write.
    Refuse {
        /// Cause.
        reason: String,
        /// What to do next.
        hint: String,
    },
}

/// Decides how to write. The first key is created only if the store holds no encrypted data: a locked keychain looks
/// empty, and storing another first key would silently make the encrypted data unreadable.
pub(crate) fn decide(mode: Mode, answer: Answer, sealed: Sealed) -> Decision {
    let (reason, hint) = match (mode, answer) {
        (Mode::Off, Answer::Found(keys)) => return Decision::Plain { opening: Some(keys) },
        (Mode::Off, Answer::Missing | Answer::Unavailable { .. }) => return Decision::Plain { opening: None },
        (Mode::Preferred | Mode::Required, Answer::Found(keys)) => return Decision::Use(keys),
        (Mode::Preferred | Mode::Required, Answer::Missing) => match sealed {
            Sealed::None => return Decision::Mint,
            Sealed::Some => (
                "the store has encrypted data, but no key was found; no new one is made, because the data would \
                 stay unreadable"
                    .to_owned(),
                "unlock the keychain, or put the key back: BATON_ENCRYPTION_KEY_FILE names a file that has it"
                    .to_owned(),
            ),
        },
        (Mode::Preferred | Mode::Required, Answer::Unavailable { reason, hint }) => (reason, hint),
    };
    if mode == Mode::Required {
        Decision::Refuse { reason, hint }
    } else {
        Decision::PlainWithWarning { reason, hint }
    }
}

#[cfg(test)]
mod tests {
    use baton_store::SecretKey;

    use super::*;

    /// Returns the name of a decision and its keys.
    fn name(decision: &Decision) -> (&'static str, Option<&KeyRing>) {
        match decision {
            Decision::Plain { opening } => ("plain", opening.as_ref()),
            Decision::Use(keys) => ("use", Some(keys)),
            Decision::Mint => ("mint", None),
            Decision::PlainWithWarning { .. } => ("plain with warning", None),
            Decision::Refuse { .. } => ("refuse", None),
        }
    }

    #[test]
    fn decides_every_combination_of_mode_keys_and_data() {
        let keys = KeyRing::from(SecretKey::new(&[7; 32]));
        let found = Answer::Found(keys.clone());
        let missing = Answer::Missing;
        let gone = Answer::Unavailable { reason: "it is locked".into(), hint: "unlock it".into() };
        let table = [
            (Mode::Off, &found, Sealed::None, "plain"),
            (Mode::Off, &found, Sealed::Some, "plain"),
            (Mode::Off, &missing, Sealed::None, "plain"),
            (Mode::Off, &missing, Sealed::Some, "plain"),
            (Mode::Off, &gone, Sealed::None, "plain"),
            (Mode::Off, &gone, Sealed::Some, "plain"),
            (Mode::Preferred, &found, Sealed::None, "use"),
            (Mode::Preferred, &found, Sealed::Some, "use"),
            (Mode::Preferred, &missing, Sealed::None, "mint"),
            (Mode::Preferred, &missing, Sealed::Some, "plain with warning"),
            (Mode::Preferred, &gone, Sealed::None, "plain with warning"),
            (Mode::Preferred, &gone, Sealed::Some, "plain with warning"),
            (Mode::Required, &found, Sealed::None, "use"),
            (Mode::Required, &found, Sealed::Some, "use"),
            (Mode::Required, &missing, Sealed::None, "mint"),
            (Mode::Required, &missing, Sealed::Some, "refuse"),
            (Mode::Required, &gone, Sealed::None, "refuse"),
            (Mode::Required, &gone, Sealed::Some, "refuse"),
        ];
        for (mode, answer, sealed, expected) in table {
            let decision = decide(mode, answer.clone(), sealed);
            let expected_keys = (*answer == found).then_some(&keys);
            assert_eq!(name(&decision), (expected, expected_keys), "{mode:?}, {answer:?}, {sealed:?}");
            if let Decision::Refuse { reason, hint } | Decision::PlainWithWarning { reason, hint } = decision
            {
                let is_passed_on = reason == "it is locked" && hint == "unlock it";
                assert_eq!(is_passed_on, *answer == gone, "{reason}; {hint}");
            }
        }
    }
}
