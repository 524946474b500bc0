//! `checkpoint.reseal`: seal what is stored with the current key, a portion at a time.

use baton_core::{CheckpointId, ErrorCode, Fault};
use baton_store::{FrameBody, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::sealed_fault;
use super::vault::{Owner, Unreadable};
use crate::operation::{Context, Effect, Operation, store_fault};

/// How many checkpoints one run seals at the most.
const BATCH: u32 = 100;

/// Seals checkpoints with the current key.
#[derive(Debug)]
pub struct ResealCheckpoints;

/// Where to go on.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ResealCheckpointsParams {
    /// `next` of the run before.
    #[serde(default)]
    pub after: Option<CheckpointId>,
}

/// What was done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResealCheckpointsOutput {
    /// How many checkpoints are sealed with the current key now that were not before.
    pub resealed: u64,
    /// Those that could not be read, and so stay as they are.
    pub damaged: Vec<CheckpointId>,
    /// Files that the checkpoints no longer refer to.
    pub leftover_blobs: Vec<String>,
    /// Where to go on; null when all is done.
    pub next: Option<CheckpointId>,
}

impl Operation for ResealCheckpoints {
    const NAME: &'static str = "checkpoint.reseal";
    const SUMMARY: &'static str = "Encrypt stored checkpoints with the current key.";
    const EFFECT: Effect = Effect::Write;
    type Params = ResealCheckpointsParams;
    type Output = ResealCheckpointsOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let vault = &context.settings.checkpoints.vault;
        let key_id = vault.current_key(tx).map_err(store_fault)?.ok_or_else(|| {
            Fault::new(ErrorCode::StoreUnavailable, "there is no key to encrypt with")
                .hint("set BATON_ENCRYPTION=required and see what baton key status says")
        })?;
        let found = tx.frames_of_other_keys(&key_id, params.after, BATCH).map_err(store_fault)?;
        let more = found.len() == BATCH as usize;
        let next = found.last().filter(|_| more).map(|(checkpoint, _)| checkpoint.id);
        let mut output =
            ResealCheckpointsOutput { resealed: 0, damaged: Vec::new(), leftover_blobs: Vec::new(), next };
        for (checkpoint, stored) in found {
            match vault.reseal(tx, Owner::of(&checkpoint), &stored.frame) {
                Ok(frame) => {
                    tx.replace_frame(checkpoint.id, &frame).map_err(store_fault)?;
                    output.resealed += 1;
                    if let FrameBody::Blob(name) = stored.frame.body {
                        output.leftover_blobs.push(name);
                    }
                }
                Err(Unreadable::Damaged(_) | Unreadable::Missing { .. }) => {
                    output.damaged.push(checkpoint.id)
                }
                Err(Unreadable::Sealed { key_id }) => return Err(sealed_fault(&key_id)),
                Err(Unreadable::Store(error)) => return Err(store_fault(error)),
            }
        }
        Ok(output)
    }
}
