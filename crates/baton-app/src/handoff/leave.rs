//! `handoff.leave`: stores the handoff of a person. A person has no session, so an ended session is created for it.

use baton_core::{
    Agent, EndReason, Handoff, HandoffAuthor, HandoffDraft, HandoffId, Label, Repo, Session, SessionFacts,
    SessionId, SessionStatus, SessionTuple, Timestamp, Track, Venture,
};
use serde_json::{Map, Value};

use crate::handoff::{handoff_schema, new_handoff};
use crate::prelude::*;

/// The person, the repository and the handoff to store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LeaveHandoffParams")]
pub struct LeaveHandoff {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Your name, for example `alice`. Use a name that no agent has.
    pub author: Agent,
    /// Venture, for example `acme`. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Number of a parallel line of work in the same repository. Defaults to no track.
    pub track: Option<Track>,
    /// Branch with the work, for example `feature/login`.
    pub branch: Option<Label>,
    /// The handoff. Additional fields are stored unchanged.
    #[schemars(schema_with = "handoff_schema")]
    pub handoff: Map<String, Value>,
    /// Replace secrets with `[redacted:…]` instead of rejecting the request. Defaults to false.
    pub redact_secrets: Option<bool>,
}

/// The stored handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaveHandoffOutput {
    /// Id of the session that was created for the handoff.
    pub session_id: SessionId,
    /// Id of the stored handoff.
    pub handoff_id: HandoffId,
    /// Time when the handoff was created.
    pub created_at: Timestamp,
}

impl Operation<OnStore> for LeaveHandoff {
    const NAME: &'static str = "handoff.leave";
    const SUMMARY: &'static str = "Leave a handoff as a person: what the next agent in a repository must know. \
        No session is needed.";
    const EFFECT: Effect = Effect::Create;
    const REQUEST: RequestFormat =
        RequestFormat { redact_param: Some("redact_secrets"), ..RequestFormat::STRICT };
    type Output = LeaveHandoffOutput;
    params_and!(HandoffDraft, |params| HandoffDraft::read(params.handoff.clone(), "handoff"));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, draft) = input;
        let session = ended_session(context, tx, params)?;
        tx.insert_session(&session)?;
        context.log_session(&session);
        let handoff = Handoff {
            ends_session: true,
            written_by: HandoffAuthor::Person,
            ..new_handoff(context, tx, &session, draft.clone(), params.schema_version.as_deref())?
        };
        tx.insert_handoff(&handoff)?;
        Ok(LeaveHandoffOutput {
            session_id: session.id,
            handoff_id: handoff.id,
            created_at: handoff.created_at,
        })
    }
}

/// Creates the session that the handoff belongs to.
fn ended_session(context: &Context<'_>, tx: &mut dyn Tx, params: &LeaveHandoff) -> Result<Session, Fault> {
    Ok(Session {
        id: context.session_id(tx)?,
        tuple: SessionTuple {
            agent: params.author.clone(),
            venture: context.venture(params.venture.as_ref())?,
            repo: params.repo.clone(),
            track: params.track,
            client_session_id: None,
        },
        facts: SessionFacts {
            client: Some("person".into()),
            branch: params.branch.clone().map(Into::into),
            ..SessionFacts::default()
        },
        status: SessionStatus::Ended,
        created_at: context.now,
        last_heartbeat_at: context.now,
        ended_at: Some(context.now),
        end_reason: Some(EndReason::Manual),
        schema_version: params.schema_version.clone().unwrap_or_else(|| "1.0".into()),
        actor_key_id: context.actor.key_id.clone(),
        creation_correlation_id: context.correlation_id.clone(),
        meta: None,
    })
}
