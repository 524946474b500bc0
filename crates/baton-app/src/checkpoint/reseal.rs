//! `checkpoint.reseal`: encrypts stored checkpoints with the current key, in batches.

use baton_core::{CheckpointId, ErrorCode};
use baton_store::FrameBody;

use super::find::sealed_fault;
use crate::context_storage::{Owner, ReadContextError};

use crate::prelude::*;

/// Maximum number of checkpoints encrypted in one run.
const BATCH: u32 = 100;

/// Position to continue from.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ResealCheckpoints {
    /// `next` of the previous run.
    pub after: Option<CheckpointId>,
}

/// Result of one run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResealCheckpointsOutput {
    /// Number of checkpoints that were encrypted with the current key.
    pub resealed: u64,
    /// Checkpoints that could not be read and were left unchanged.
    pub damaged: Vec<CheckpointId>,
    /// Files that no checkpoint refers to any more.
    pub leftover_blobs: Vec<String>,
    /// Position to continue from; null when finished.
    pub next: Option<CheckpointId>,
}

impl Operation<OnStore> for ResealCheckpoints {
    const NAME: &'static str = "checkpoint.reseal";
    const SUMMARY: &'static str = "Encrypt stored checkpoints with the current key.";
    const EFFECT: Effect = Effect::Write;
    type Output = ResealCheckpointsOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let storage = &context.settings.checkpoints.storage;
        let key_id = storage.current_key(tx)?.ok_or_else(|| {
            Fault::new(ErrorCode::StoreUnavailable, "there is no key to encrypt with")
                .hint("set BATON_ENCRYPTION=required, then run baton key status")
        })?;
        let found = tx.frames_of_other_keys(&key_id, params.after, BATCH)?;
        let more = found.len() == BATCH as usize;
        let next = found.last().filter(|_| more).map(|(checkpoint, _)| checkpoint.id);
        let mut output =
            ResealCheckpointsOutput { resealed: 0, damaged: Vec::new(), leftover_blobs: Vec::new(), next };
        for (checkpoint, stored) in found {
            tx.lock_workflow(&checkpoint.venture, &checkpoint.workflow_id)?;
            match storage.reseal(tx, Owner::of(&checkpoint), &stored.frame) {
                Ok(frame) => {
                    tx.replace_frame(checkpoint.id, &frame)?;
                    output.resealed += 1;
                    if let FrameBody::Blob(name) = stored.frame.body {
                        output.leftover_blobs.push(name);
                    }
                }
                Err(ReadContextError::Sealed { key_id }) => return Err(sealed_fault(&key_id)),
                Err(ReadContextError::Store(error)) => return Err(Fault::from(error)),
                Err(_) => output.damaged.push(checkpoint.id),
            }
        }
        Ok(output)
    }
}
