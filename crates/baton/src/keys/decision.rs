//! What to do about encryption, given what is wanted and what is to be had.
//!
//! Owns the rule, as a pure function. Does not ask for keys, make them or print warnings.

use baton_store::KeyRing;

/// What is wanted: `BATON_ENCRYPTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write in plain.
    Off,
    /// Seal when a key can be had; else write in plain and say so.
    Preferred,
    /// Seal, or do not write.
    Required,
}

/// Whether the store has sealed data already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// It has none.
    None,
    /// It has some; its key is somewhere.
    Some,
}

/// What the place where keys are kept answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// These keys.
    Found(KeyRing),
    /// That it has none. A locked keychain may answer the same.
    Missing,
    /// Nothing that can be used.
    Unavailable {
        /// Why not.
        reason: String,
        /// What to do about it.
        hint: String,
    },
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Write in plain, as wanted.
    Plain {
        /// Keys that still open what was sealed before.
        opening: Option<KeyRing>,
    },
    /// Seal with these keys.
    Use(KeyRing),
    /// Make the first key, then seal with it.
    Mint,
    /// Write in plain although sealing is wanted, and say so.
    PlainWithWarning {
        /// Why it is not sealed.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// Write nothing.
    Refuse {
        /// Why not.
        reason: String,
        /// What to do about it.
        hint: String,
    },
}

/// Decides. A key is made only where nothing was ever sealed: a locked keychain looks empty, and a second first key
/// would make all that is sealed unreadable without anybody noticing.
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

    /// A decision by its name, with the keys that come with it.
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
    fn every_combination_is_decided() {
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
