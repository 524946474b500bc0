//! `session-end`: the chat is over; what it came to is handed over.

use baton_core::observation::{SessionMaterial, SessionSummary};
use baton_core::{EndReason, ErrorCode, Fault, Session};
use baton_store::{ObservationFilter, Page, Tx};
use serde_json::{Map, Value, json};

use super::hook::HookParams;
use super::material::{Gathered, digest_of_waiting, gather};
use crate::context::Context;
use crate::operation::Operation;
use crate::session::{EndSession, EndSessionParams};

/// How many of the last things that were done a handoff lists.
const MAX_DONE: u32 = 30;

/// Ends a session, with a handoff when there is something to hand over: an empty one would hide the one before it.
pub(super) fn end(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    mut session: Session,
    params: &HookParams,
) -> Result<(), Fault> {
    let gathered = gather(tx, session.id)?;
    if gathered.is_empty() && gathered.waiting.is_empty() {
        session.end(context.now, EndReason::Manual)?;
        return tx.update_session(&session).map_err(Fault::from);
    }
    let summary = summary_now(context, &gathered)?;
    let done = titles(tx, &session)?;
    let payload = payload_of(&gathered, &summary, &done, params);
    let ending = EndSessionParams {
        redact_secrets: None,
        schema_version: None,
        session_id: session.id,
        handoff: None,
        summary: Some(plain(&summary.summary)),
        status_label: None,
        to_agent: None,
        payload: Some(payload),
        end_reason: Some(EndReason::Manual),
        keep_session_open: None,
    };
    EndSession::run(context, tx, &EndSession::prepare(context, ending)?)?;
    // What still waits is summed up when it is understood; the handoff stands as it is.
    tx.request_summary(session.id, context.now, context.now).map_err(Fault::from)
}

/// The summary as far as it can be made at once, without a model: the stored one, and what came after it.
fn summary_now(context: &Context<'_>, gathered: &Gathered) -> Result<SessionSummary, Fault> {
    // A summary by a model says more than one without, if it covers everything.
    if let Some(stored) = gathered.stored.as_ref().filter(|stored| {
        stored.provenance.model.is_some() && gathered.is_covered() && gathered.waiting.is_empty()
    }) {
        return Ok(stored.summary.clone());
    }
    let mut material: SessionMaterial = gathered.session.clone();
    material.digests.extend(gathered.waiting.iter().map(digest_of_waiting));
    let offline = &context.settings.observations.offline;
    let made = offline.summarize(&material).map_err(|error| {
        Fault::new(ErrorCode::Internal, "the session could not be summed up").caused_by(error)
    })?;
    Ok(made.summary)
}

/// What was done last, also what a summary covers already.
fn titles(tx: &mut dyn Tx, session: &Session) -> Result<Vec<String>, Fault> {
    let filter = ObservationFilter { session_id: Some(session.id), ..ObservationFilter::default() };
    let known = tx.observations(&filter, Page::first(MAX_DONE))?;
    Ok(known.into_iter().rev().map(|observation| observation.compressed.title).collect())
}

fn payload_of(
    gathered: &Gathered,
    summary: &SessionSummary,
    done: &[String],
    params: &HookParams,
) -> Map<String, Value> {
    let document = json!({
        "work_completed": done,
        "key_files": summary.key_files,
        "key_decisions": summary.key_decisions,
        "last_prompt": gathered.session.prompts().next_back(),
        "outcome": gathered.session.turns.iter().rev().find_map(|turn| turn.closing.as_deref()),
        "observations": gathered.observations(),
        "still_waiting": gathered.waiting.len(),
        "written_by": "session-end hook",
        "reason": params.reason,
    });
    let Value::Object(mut fields) = document else { return Map::new() };
    fields.retain(|_, value| !value.is_null());
    fields.values_mut().for_each(make_plain);
    fields
}

/// Takes out what a handoff may not have: terminals and prompts bring it along.
fn make_plain(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        _ => {}
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}
