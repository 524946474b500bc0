//! Verifies a stored checkpoint. Read-only.

use baton_core::CheckpointId;
use baton_store::{StoreError, Tx};

use super::series::read_context;
use crate::context_storage::{ContextStorage, ReadContextError};

/// Result of verifying a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The context is readable and has the recorded hash.
    Sound,
    /// The checkpoint was deleted meanwhile.
    Gone,
    /// The stored bytes have the recorded hash, but the key for them is not available.
    Sealed { key_id: String },
    /// The checkpoint is unreadable.
    Damaged { problem: String },
}

/// Verifies a checkpoint by reading its context through the delta chain.
pub(crate) fn check(storage: &ContextStorage, tx: &mut dyn Tx, id: &str) -> Result<Checked, StoreError> {
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
    let error = match read_context(storage, tx, &checkpoint) {
        Ok(_) => return Ok(Checked::Sound),
        Err(ReadContextError::Sealed { key_id }) => return Ok(Checked::Sealed { key_id }),
        Err(ReadContextError::Store(StoreError::Corrupt { problem, .. })) => {
            return Ok(Checked::Damaged { problem });
        }
        Err(ReadContextError::Store(error)) => return Err(error),
        Err(error) => error,
    };
    let problem = match &error {
        ReadContextError::Damaged { at, .. } | ReadContextError::Missing { at, .. } if *at != parsed => {
            format!("it is stored as a difference from {at}: {error}")
        }
        ReadContextError::Incomplete => {
            "the checkpoint that it is stored as a difference from does not exist".into()
        }
        _ => error.to_string(),
    };
    Ok(Checked::Damaged { problem })
}
