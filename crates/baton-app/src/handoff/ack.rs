//! `handoff.ack`: the receiving agent acknowledges a handoff.

use baton_core::{Agent, ErrorCode, HandoffId, Timestamp};
use baton_store::Acknowledgement;
use serde_json::json;

use crate::prelude::*;

/// The handoff and the agent that acknowledges it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AckHandoffParams")]
pub struct AckHandoff {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Handoff id (`ho_…`).
    pub handoff_id: HandoffId,
    /// Agent that takes over the work, for example `codex-2`.
    pub agent: Agent,
}

/// The acknowledgement.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AckHandoffOutput {
    /// Handoff id (`ho_…`).
    pub handoff_id: HandoffId,
    /// Agent that acknowledged the handoff and continues the work.
    pub acknowledged_by: Agent,
    /// Time of the acknowledgement.
    pub acknowledged_at: Timestamp,
}

impl Operation<OnStore> for AckHandoff {
    const NAME: &'static str = "handoff.ack";
    const SUMMARY: &'static str =
        "Acknowledge a handoff before you continue its work. Fails if another agent acknowledged it first.";
    const EFFECT: Effect = Effect::Write;
    type Output = AckHandoffOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        context.handoff(tx, params.handoff_id)?;
        let by = Acknowledgement { agent: params.agent.clone(), session_id: None, at: context.now };
        tx.acknowledge_handoff(params.handoff_id, &by)?;
        let handoff = context.handoff(tx, params.handoff_id)?;
        match (handoff.acknowledged_by, handoff.acknowledged_at) {
            (Some(by), Some(at)) if by == params.agent => {
                Ok(AckHandoffOutput { handoff_id: handoff.id, acknowledged_by: by, acknowledged_at: at })
            }
            (by, at) => {
                let who = by.as_ref().map_or("another agent", Agent::as_str);
                let message = format!("handoff {} was already acknowledged by {who}", handoff.id);
                Err(Fault::new(ErrorCode::HandoffConflict, message)
                    .hint("list other handoffs with handoff_list (GET /handoffs, baton handoff list)")
                    .details(
                        json!({ "handoff_id": handoff.id, "acknowledged_by": by, "acknowledged_at": at }),
                    ))
            }
        }
    }
}
