//! `pre-compact`: saves a checkpoint before the agent compacts its context.

use std::sync::Arc;

use baton_checkpoint::SavedContext;
use baton_core::{ErrorCode, Fault, Session};
use baton_store::{ObservationFilter, Page, Tx};
use serde_json::{Map, Value, json};

use super::hook_params::Hook;
use crate::checkpoint::{SaveCheckpoint, workflow_of};
use crate::context::Context;
use crate::operation::Operation;
use crate::summary::read_summary_input;

/// Maximum number of observations in a checkpoint; the newest are kept.
const MAX_OBSERVATIONS: u32 = 50;

/// Saves a checkpoint with the prompts, summary, observations and checkout state of a session.
pub(super) fn checkpoint(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    params: &Hook,
) -> Result<(), Fault> {
    let input = read_summary_input(tx, session.id)?;
    let filter = ObservationFilter { session_id: Some(session.id), ..ObservationFilter::default() };
    let newest = tx.observations(&filter, Page::first(MAX_OBSERVATIONS))?;
    let observations: Vec<Value> = newest
        .iter()
        .rev()
        .map(|one| {
            json!({ "id": one.id, "title": one.compressed.title, "summary": one.compressed.summary,
                           "files_touched": one.compressed.files_touched })
        })
        .collect();
    let summary = input.stored.map(|stored| stored.summary).unwrap_or_default();
    let document = json!({
        "goal": input.session.requests().next(),
        "prompts": input.session.requests().collect::<Vec<_>>(),
        "instructions": params.custom_instructions,
        "summary": summary.summary,
        "key_files": summary.key_files,
        "decisions": summary.key_decisions,
        "notes": input.session.notes.iter().map(|note| note.line()).collect::<Vec<_>>(),
        "observations": observations,
        "queued_tool_uses": input.pending.len(),
        "trigger": params.trigger,
        "cwd": params.cwd,
        "branch": session.facts.branch,
        "commit_sha": session.facts.commit_sha,
        "transcript_path": params.transcript_path,
    });
    let Value::Object(mut fields) = document else {
        return Err(Fault::new(ErrorCode::Internal, "cannot build the checkpoint"));
    };
    fields.retain(|_, value| !is_empty(value));
    let saved = SavedContext::of(fields)
        .map_err(|rounded| Fault::new(ErrorCode::InvalidRequest, rounded.to_string()))?;
    let save = SaveCheckpoint {
        session_id: Some(workflow_of(session)?),
        context: Some(Arc::new(saved)),
        venture: Some(session.tuple.venture.clone()),
        repo: Some(session.tuple.repo.clone()),
        agent_session_id: Some(session.id),
        ..SaveCheckpoint::default()
    };
    let save = SaveCheckpoint::prepare(context, save)?;
    SaveCheckpoint::run(context, tx, &save).map(drop)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields == &Map::new(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
