//! `observation.show`: one observation, with the raw tool use while it is stored.

use baton_core::{ErrorCode, ObservationId};
use serde_json::Value;

use super::raw::{Extent, tool_use};
use super::view::ObservationView;

use crate::prelude::*;

/// The observation to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowObservation {
    /// Observation id (`obs_…`).
    pub observation_id: ObservationId,
    /// Include the raw tool input and output. Defaults to false.
    pub raw: Option<bool>,
}

/// An observation, with the raw tool use if requested.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowObservationOutput {
    /// The observation, with its detail.
    pub observation: ObservationView,
    /// Raw tool input; null if not requested or no longer stored.
    pub tool_input: Option<Value>,
    /// Raw tool output; null if not requested or no longer stored.
    pub tool_response: Option<Value>,
    /// True if the raw tool use is still stored; null if not requested.
    pub raw_kept: Option<bool>,
}

impl Operation<OnStore> for ShowObservation {
    const NAME: &'static str = "observation.show";
    const SUMMARY: &'static str = "Show one observation, optionally with the raw tool input and output.";
    const EFFECT: Effect = Effect::Read;
    type Output = ShowObservationOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let id = params.observation_id;
        let found = tx.observation(id)?;
        let observation =
            found.filter(|found| context.actor.may_access(&found.venture)).ok_or_else(|| {
                Fault::new(ErrorCode::NotFound, format!("there is no observation {id}")).hint(
                    "list observations with observation_list (GET /api/observations, baton observation list)",
                )
            })?;
        let queue_id = observation.queue_id;
        let mut output = ShowObservationOutput {
            observation: observation.into(),
            tool_input: None,
            tool_response: None,
            raw_kept: None,
        };
        if params.raw == Some(true) {
            let item = tx.queue_item(queue_id)?;
            let raw = tx.queue_raw(queue_id)?;
            output.raw_kept = Some(raw.is_some());
            if let (Some(item), Some(raw)) = (item, raw) {
                let blobs = context.settings.checkpoints.storage.blobs();
                let tool_use = tool_use(&item, raw, blobs, Extent::Whole)?;
                output.tool_input = Some(tool_use.tool_input);
                output.tool_response = Some(tool_use.tool_response);
            }
        }
        Ok(output)
    }
}
