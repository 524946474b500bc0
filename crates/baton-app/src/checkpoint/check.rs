//! Checking a stored checkpoint without changing anything.

use baton_core::CheckpointId;
use baton_store::{StoreError, Tx};

use super::series::{Broken, read_context};
use super::vault::Vault;

/// What a check of a checkpoint found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    /// Its context can be read and has the recorded hash.
    Sound,
    /// It was removed meanwhile.
    Gone,
    /// The stored bytes have the recorded hash, but the key for them is not available.
    Sealed { key_id: String },
    /// It cannot be read.
    Damaged { problem: String },
}

/// Reads a checkpoint's context through everything that it is a difference to.
pub(crate) fn check(vault: &Vault, tx: &mut dyn Tx, id: &str) -> Result<Checked, StoreError> {
    let Ok(parsed) = id.parse::<CheckpointId>() else {
        return Ok(Checked::Damaged { problem: "its id is invalid".into() });
    };
    let checkpoint = match tx.checkpoint(parsed) {
        Ok(Some(checkpoint)) => checkpoint,
        Ok(None) => return Ok(Checked::Gone),
        Err(StoreError::Corrupt { problem, .. }) => {
            return Ok(Checked::Damaged { problem: format!("its row is invalid: {problem}") });
        }
        Err(error) => return Err(error),
    };
    match read_context(vault, tx, &checkpoint) {
        Ok(_) => Ok(Checked::Sound),
        Err(Broken::Sealed { key_id }) => Ok(Checked::Sealed { key_id }),
        Err(Broken::Damaged { at, problem }) if at == parsed => Ok(Checked::Damaged { problem }),
        Err(Broken::Damaged { at, problem }) => {
            Ok(Checked::Damaged { problem: format!("it is stored as a difference to {at}: {problem}") })
        }
        Err(Broken::Missing { at, name }) if at == parsed => {
            Ok(Checked::Damaged { problem: format!("blob {name} is missing") })
        }
        Err(Broken::Missing { at, name }) => Ok(Checked::Damaged {
            problem: format!("it is stored as a difference to {at}: blob {name} is missing"),
        }),
        Err(Broken::Incomplete) => {
            Ok(Checked::Damaged { problem: "the checkpoint that it is a difference to is gone".into() })
        }
        Err(Broken::Store(StoreError::Corrupt { problem, .. })) => Ok(Checked::Damaged { problem }),
        Err(Broken::Store(error)) => Err(error),
    }
}
