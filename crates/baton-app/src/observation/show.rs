//! `observation.show`: one observation, with the raw output while it is kept.

use baton_core::{ErrorCode, Fault, ObservationId};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::raw::{Extent, tool_use};
use super::view::ObservationView;
use crate::operation::{Context, Effect, Operation, store_fault};

/// Shows an observation.
#[derive(Debug)]
pub struct ShowObservation;

/// Which observation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowObservationParams {
    /// The observation.
    pub observation_id: ObservationId,
    /// Whether the raw output comes with it.
    #[serde(default)]
    pub raw: Option<bool>,
}

/// An observation, whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowObservationOutput {
    /// The observation.
    pub observation: ObservationView,
    /// What the tool was asked; `null` unless it was asked for and is still kept, and where it was asked nothing.
    pub tool_input: Option<Value>,
    /// What the tool said; `null` unless it was asked for and is still kept, and where it said nothing.
    pub tool_response: Option<Value>,
    /// Whether the raw output is still kept; `null` unless it was asked for.
    pub raw_kept: Option<bool>,
}

impl Operation for ShowObservation {
    const NAME: &'static str = "observation.show";
    const SUMMARY: &'static str = "Show what one tool use taught, with its raw output when asked for.";
    const EFFECT: Effect = Effect::Read;
    type Params = ShowObservationParams;
    type Output = ShowObservationOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let id = params.observation_id;
        let found = tx.observation(id).map_err(store_fault)?;
        let observation = found.filter(|found| context.actor.reaches(&found.venture)).ok_or_else(|| {
            Fault::new(ErrorCode::NotFound, format!("there is no observation {id}")).hint(
                "list observations with observation.list (GET /api/observations, baton observation list)",
            )
        })?;
        let mut output = ShowObservationOutput {
            observation: observation.into(),
            tool_input: None,
            tool_response: None,
            raw_kept: None,
        };
        if params.raw == Some(true) {
            let queue_id = output.observation.queue_id;
            let item = tx.queue_item(queue_id).map_err(store_fault)?;
            let raw = tx.queue_raw(queue_id).map_err(store_fault)?;
            output.raw_kept = Some(raw.is_some());
            if let (Some(item), Some(raw)) = (item, raw) {
                let blobs = context.settings.checkpoints.vault.blobs();
                let tool_use = tool_use(&item, raw, blobs, Extent::Whole).map_err(store_fault)?;
                output.tool_input = Some(tool_use.tool_input);
                output.tool_response = Some(tool_use.tool_response);
            }
        }
        Ok(output)
    }
}
