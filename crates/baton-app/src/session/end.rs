//! `session.end`: ends a session and stores its handoff, if one is given.

use baton_core::{
    Agent, EndReason, ErrorCode, Handoff, HandoffAuthor, HandoffDraft, HandoffId, Label, Session, SessionId,
    SessionStatus, Timestamp,
};
use baton_store::{HandoffFilter, Page};
use serde_json::{Map, Value, json};

use crate::handoff::{new_handoff, optional_handoff_schema};
use crate::prelude::*;
use crate::summary::add_automatic_content;

/// The session to end and its handoff. Pass the handoff as `handoff`, or as `summary`, `status_label`, `to_agent` and
/// `payload`. Without any of them the session ends without a handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EndSessionParams")]
pub struct EndSession {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Session id returned by `session_start`.
    pub session_id: SessionId,
    /// The handoff. Additional fields are stored unchanged.
    #[serde(default)]
    #[schemars(schema_with = "optional_handoff_schema")]
    pub handoff: Option<Map<String, Value>>,
    /// Summary of the handoff. Only without `handoff`.
    pub summary: Option<String>,
    /// Status of the work, for example `blocked`. Only without `handoff`.
    #[schemars(length(min = 1, max = 64))]
    pub status_label: Option<Label>,
    /// Agent that should take over. Only without `handoff`.
    pub to_agent: Option<Agent>,
    /// All other fields of the handoff. Only without `handoff`.
    pub payload: Option<Map<String, Value>>,
    /// Reason for the end: `manual` if the work stops, `error` if the session failed. `stale` and `superseded` are
    /// usually set by Baton. Defaults to `manual`.
    pub end_reason: Option<EndReason>,
    /// Store the handoff but keep the session active; `end_reason` is then ignored. Defaults to false.
    pub keep_session_open: Option<bool>,
    /// Replace secrets with `[redacted:…]` instead of rejecting the request. Defaults to false.
    pub redact_secrets: Option<bool>,
}

/// The ended session and its handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EndSessionOutput {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Id of the stored handoff; null if the session ended without one.
    pub handoff_id: Option<HandoffId>,
    /// Time when the session ended, or null while it is active.
    pub ended_at: Option<Timestamp>,
    /// True if the handoff was stored after the session had ended, or if the session had been abandoned.
    pub late: bool,
}

impl Operation<OnStore> for EndSession {
    const NAME: &'static str = "session.end";
    const SUMMARY: &'static str = "End your session and store a handoff for the next agent: goal, state, decisions with \
        reasons, rejected approaches, gotchas, constraints, blockers and next actions. Call it when you stop working. \
        Without a handoff the session only ends.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat =
        RequestFormat { redact_param: Some("redact_secrets"), ..RequestFormat::STRICT };
    type Output = EndSessionOutput;
    params_and!(Option<HandoffDraft>, |params| {
        let draft = draft_of(params)?;
        let is_enough = draft.is_some() || params.keep_session_open != Some(true);
        Fault::require(is_enough, "handoff", "is required to keep the session active")?;
        Ok(draft)
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, draft) = input;
        let schema_version = params.schema_version.as_deref();
        let mut session = context.lock_session(tx, params.session_id)?;
        let stored = tx.ending_handoff(session.id)?;
        let Some(draft) = draft else {
            if session.status == SessionStatus::Active {
                session.end(context.now, params.end_reason.unwrap_or(EndReason::Manual))?;
                tx.update_session(&session)?;
            }
            return Ok(output(&session, stored.as_ref()));
        };
        match stored {
            // A handoff of the agent replaces the one that was created when its chat ended.
            Some(stored) if stored.written_by == HandoffAuthor::Hook => {
                tx.withdraw_handoff(stored.id, context.now)?;
            }
            Some(stored) => return repeat_response(&session, &stored, draft),
            None => {}
        }
        let late = session.status != SessionStatus::Active;
        if !late && params.keep_session_open == Some(true) {
            return store_without_ending(context, tx, session, draft.clone(), schema_version);
        }
        if !late {
            session.end(context.now, params.end_reason.unwrap_or(EndReason::Manual))?;
            tx.update_session(&session)?;
        }
        let mut handoff = Handoff {
            ends_session: true,
            late,
            ..new_handoff(context, tx, &session, draft.clone(), schema_version)?
        };
        add_automatic_content(context.settings, tx, &mut handoff)?;
        tx.insert_handoff(&handoff)?;
        Ok(output(&session, Some(&handoff)))
    }
}

fn output(session: &Session, handoff: Option<&Handoff>) -> EndSessionOutput {
    let ended_at = match handoff {
        Some(handoff) => handoff.ends_session.then(|| session.ended_at.unwrap_or(handoff.created_at)),
        None => session.ended_at,
    };
    EndSessionOutput {
        session_id: session.id,
        handoff_id: handoff.map(|handoff| handoff.id),
        ended_at,
        late: handoff.map_or(session.status == SessionStatus::Abandoned, |handoff| handoff.late),
    }
}

/// Stores a handoff and keeps the session active. If the latest handoff of the session has the same content, returns
/// that one instead.
fn store_without_ending(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    mut session: Session,
    draft: HandoffDraft,
    schema_version: Option<&str>,
) -> Result<EndSessionOutput, Fault> {
    session.beat(context.now)?;
    tx.beat_session(session.id, session.last_heartbeat_at)?;
    let filter = HandoffFilter {
        repo: Some(session.tuple.repo.clone()),
        track: Some(session.tuple.track),
        from_agent: Some(session.tuple.agent.clone()),
        ..HandoffFilter::of(session.tuple.venture.clone())
    };
    let latest = tx.handoffs(&filter, Page::first(1))?.into_iter().next();
    let repeated =
        latest.filter(|latest| latest.session_id == session.id && latest.has_same_content_as(&draft));
    if let Some(stored) = repeated {
        return Ok(output(&session, Some(&stored)));
    }
    let mut handoff = new_handoff(context, tx, &session, draft, schema_version)?;
    add_automatic_content(context.settings, tx, &mut handoff)?;
    tx.insert_handoff(&handoff)?;
    Ok(output(&session, Some(&handoff)))
}

/// Handles a repeated end of a session: the same handoff returns the first response, another one is a conflict.
fn repeat_response(
    session: &Session,
    stored: &Handoff,
    draft: &HandoffDraft,
) -> Result<EndSessionOutput, Fault> {
    if stored.has_same_content_as(draft) {
        return Ok(output(session, Some(stored)));
    }
    let (session_id, handoff_id) = (session.id, stored.id);
    Err(Fault::new(
        ErrorCode::HandoffConflict,
        format!("session {session_id} already ended with another handoff ({handoff_id})"),
    )
    .hint(
        "withdraw the stored handoff first (handoff_withdraw, baton handoff withdraw), then send the new one",
    )
    .details(json!({ "session_id": session_id, "handoff_id": handoff_id, "status": session.status })))
}

/// Reads the handoff from `handoff` or from the separate fields; sending both is an error. Returns `None` without a
/// handoff.
fn draft_of(params: &EndSession) -> Result<Option<HandoffDraft>, Fault> {
    let EndSession { handoff, summary, status_label, to_agent, payload, .. } = params;
    let has_fields = summary.is_some() || status_label.is_some() || to_agent.is_some() || payload.is_some();
    match handoff {
        Some(_) if has_fields => Err(Fault::invalid(
            "handoff",
            "send the handoff either as `handoff` or as separate fields, not both",
        )),
        Some(handoff) => HandoffDraft::read(handoff.clone(), "handoff").map(Some),
        None if !has_fields => Ok(None),
        None => {
            let mut document = payload.clone().unwrap_or_default();
            let heads = [
                ("summary", summary.as_deref()),
                ("status_label", status_label.as_ref().map(Label::as_str)),
                ("to_agent", to_agent.as_ref().map(Agent::as_str)),
            ];
            for (head, text) in heads {
                if document.contains_key(head) {
                    let problem = format!("`{head}` must be next to the payload, not inside it");
                    return Err(Fault::invalid(&format!("payload.{head}"), problem));
                }
                document.extend(text.map(|text| (head.to_owned(), text.into())));
            }
            HandoffDraft::read(document, "").map(Some)
        }
    }
}
