//! `handoff.show`: one handoff with its full payload.

use baton_core::HandoffId;

use crate::handoff::HandoffView;
use crate::prelude::*;

/// The handoff to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowHandoff {
    /// Handoff id (`ho_…`).
    pub handoff_id: HandoffId,
}

/// A handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowHandoffOutput {
    /// The full handoff.
    pub handoff: HandoffView,
}

impl Operation<OnStore> for ShowHandoff {
    const NAME: &'static str = "handoff.show";
    const SUMMARY: &'static str = "Show one handoff with its full payload.";
    const EFFECT: Effect = Effect::Read;
    type Output = ShowHandoffOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        Ok(ShowHandoffOutput { handoff: context.handoff(tx, params.handoff_id)?.try_into()? })
    }
}
