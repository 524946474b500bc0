//! `handoff.withdraw`: removes a wrong handoff from lists and from what new sessions receive.

use baton_core::{ErrorCode, HandoffId, Timestamp};

use crate::prelude::*;

/// The handoff to withdraw.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WithdrawHandoffParams")]
pub struct WithdrawHandoff {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Handoff id (`ho_…`).
    pub handoff_id: HandoffId,
}

/// The withdrawal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WithdrawHandoffOutput {
    /// Handoff id (`ho_…`).
    pub handoff_id: HandoffId,
    /// Time when the handoff was withdrawn.
    pub withdrawn_at: Timestamp,
}

impl Operation<OnStore> for WithdrawHandoff {
    const NAME: &'static str = "handoff.withdraw";
    const SUMMARY: &'static str = "Withdraw a wrong or outdated handoff. It is no longer listed or given to new sessions; \
        handoff_show still shows it.";
    const EFFECT: Effect = Effect::Write;
    type Output = WithdrawHandoffOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        context.handoff(tx, params.handoff_id)?;
        tx.withdraw_handoff(params.handoff_id, context.now)?;
        let handoff = context.handoff(tx, params.handoff_id)?;
        let withdrawn_at = handoff
            .withdrawn_at
            .ok_or_else(|| Fault::new(ErrorCode::Internal, "the handoff was not withdrawn"))?;
        Ok(WithdrawHandoffOutput { handoff_id: handoff.id, withdrawn_at })
    }
}
