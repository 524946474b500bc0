//! `session-end`: ends the session with a handoff made from its summary.

use baton_core::observation::{SessionMaterial, SessionSummary};
use baton_core::{EndReason, ErrorCode, Fault, Session};
use baton_store::{ObservationFilter, Page, Tx};
use serde_json::{Map, Value, json};

use super::hook::HookParams;
use super::material::{SummaryInput, digest_of_pending, read_summary_input};
use crate::context::Context;
use crate::operation::Operation;
use crate::session::{EndSession, EndSessionParams};

/// Maximum number of observation titles in a handoff, the newest.
const MAX_DONE: u32 = 30;

/// Ends a session. Writes no handoff for a session without content, because an empty handoff would become the latest
/// one and hide the previous one.
pub(super) fn end(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    mut session: Session,
    params: &HookParams,
) -> Result<(), Fault> {
    let input = read_summary_input(tx, session.id)?;
    if input.is_empty() && input.pending.is_empty() {
        session.end(context.now, EndReason::Manual)?;
        return tx.update_session(&session).map_err(Fault::from);
    }
    let summary = summary_now(context, &input)?;
    let done = titles(tx, &session)?;
    let payload = payload_of(&input, &summary, &done, params);
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
    // Pending tool uses are summarized after they are processed; the handoff is not changed then.
    tx.request_summary(session.id, context.now, context.now).map_err(Fault::from)
}

/// Returns a summary without calling a model: the stored one if a model wrote it and it covers the whole session,
/// otherwise one made offline that includes the pending tool uses.
fn summary_now(context: &Context<'_>, input: &SummaryInput) -> Result<SessionSummary, Fault> {
    if let Some(stored) = input
        .stored
        .as_ref()
        .filter(|stored| stored.provenance.model.is_some() && input.is_covered() && input.pending.is_empty())
    {
        return Ok(stored.summary.clone());
    }
    let mut material: SessionMaterial = input.session.clone();
    material.digests.extend(input.pending.iter().map(digest_of_pending));
    let offline = &context.settings.observations.offline;
    let summarized = offline
        .summarize(&material)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot summarize the session").caused_by(error))?;
    Ok(summarized.summary)
}

/// Returns the titles of the newest observations, oldest first, whether a summary covers them or not.
fn titles(tx: &mut dyn Tx, session: &Session) -> Result<Vec<String>, Fault> {
    let filter = ObservationFilter { session_id: Some(session.id), ..ObservationFilter::default() };
    let known = tx.observations(&filter, Page::first(MAX_DONE))?;
    Ok(known.into_iter().rev().map(|observation| observation.compressed.title).collect())
}

fn payload_of(
    input: &SummaryInput,
    summary: &SessionSummary,
    done: &[String],
    params: &HookParams,
) -> Map<String, Value> {
    let document = json!({
        "work_completed": done,
        "key_files": summary.key_files,
        "key_decisions": summary.key_decisions,
        "last_prompt": input.session.prompts().next_back(),
        "outcome": input.session.turns.iter().rev().find_map(|turn| turn.closing.as_deref()),
        "observations": input.observations(),
        "still_waiting": input.pending.len(),
        "written_by": "session-end hook",
        "reason": params.reason,
    });
    let Value::Object(mut fields) = document else { return Map::new() };
    fields.retain(|_, value| !value.is_null());
    fields.values_mut().for_each(remove_control_characters);
    fields
}

/// Removes control characters from all texts, because a handoff with control characters is rejected. They come from
/// terminal output and prompts.
fn remove_control_characters(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(items) => items.iter_mut().for_each(remove_control_characters),
        _ => {}
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}
