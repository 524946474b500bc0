//! `handoff.create`: stores a handoff without ending the session.

use baton_core::{HandoffDraft, HandoffId, SessionId, Timestamp};
use serde_json::{Map, Value};

use crate::handoff::{handoff_schema, new_handoff};
use crate::prelude::*;
use crate::summary::add_automatic_content;

/// The session and the handoff to store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CreateHandoffParams")]
pub struct CreateHandoff {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Id of your session, returned by `session_start`.
    pub session_id: SessionId,
    /// The handoff. Additional fields are stored unchanged.
    #[schemars(schema_with = "handoff_schema")]
    pub handoff: Map<String, Value>,
    /// Replace secrets with `[redacted:…]` instead of rejecting the request. Defaults to false.
    pub redact_secrets: Option<bool>,
}

/// The stored handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateHandoffOutput {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Id of the stored handoff.
    pub handoff_id: HandoffId,
    /// Time when the handoff was created.
    pub created_at: Timestamp,
}

impl Operation<OnStore> for CreateHandoff {
    const NAME: &'static str = "handoff.create";
    const SUMMARY: &'static str = "Store a handoff for another agent without ending your session: goal, state, \
        decisions with reasons, rejected approaches, gotchas, constraints, blockers and next actions.";
    const EFFECT: Effect = Effect::Create;
    const REQUEST: RequestFormat =
        RequestFormat { redact_param: Some("redact_secrets"), ..RequestFormat::STRICT };
    type Output = CreateHandoffOutput;
    params_and!(HandoffDraft, |params| HandoffDraft::read(params.handoff.clone(), "handoff"));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, draft) = input;
        let mut session = context.lock_session(tx, params.session_id)?;
        session.beat(context.now)?;
        tx.beat_session(session.id, session.last_heartbeat_at)?;
        let mut handoff =
            new_handoff(context, tx, &session, draft.clone(), params.schema_version.as_deref())?;
        add_automatic_content(context.settings, tx, &mut handoff)?;
        tx.insert_handoff(&handoff)?;
        Ok(CreateHandoffOutput {
            session_id: session.id,
            handoff_id: handoff.id,
            created_at: handoff.created_at,
        })
    }
}
