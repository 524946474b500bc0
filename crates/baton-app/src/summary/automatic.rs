//! Automatic content of a handoff: what Baton captured in the session.
//!
//! The handoff of a chat that ends without a handoff consists of it. A handoff that the agent wrote keeps its own
//! fields, and the captured content is stored beside them. Both are updated when pending tool uses have been processed
//! and when a summary was made.

use baton_core::observation::SessionSummary;
use baton_core::{
    Canonical, ErrorCode, Fault, Handoff, HandoffAuthor, Note, NoteKind, SessionId, shorten_with_notice,
    without_control_characters,
};
use baton_llm::{OpenWork, completed_step};
use baton_store::Tx;
use serde_json::{Map, Value, json};

use super::material::{SummaryInput, describe_pending, read_summary_input};
use crate::settings::Settings;
use crate::store_errors::corrupt_handoff;

/// Maximum number of observation titles in a handoff; the newest are kept.
const MAX_DONE: usize = 30;
/// Maximum length of the goal in characters.
const MAX_GOAL_CHARS: usize = 1_000;

/// What was captured in a session.
#[derive(Debug, Clone)]
pub(crate) struct AutomaticContent {
    /// Summary of the session.
    pub(crate) summary: String,
    /// Fields of a handoff payload.
    pub(crate) payload: Map<String, Value>,
    /// True if some tool uses are not processed yet.
    pub(crate) incomplete: bool,
}

/// Returns what was captured in a session; `None` if nothing was.
pub(crate) fn automatic_content(
    settings: &Settings,
    tx: &mut dyn Tx,
    session: SessionId,
) -> Result<Option<AutomaticContent>, Fault> {
    let input = read_summary_input(tx, session)?;
    if input.session.is_empty() && input.pending.is_empty() {
        return Ok(None);
    }
    let summary = summary_without_model(settings, &input)?;
    let goal = input.session.goal();
    let open = OpenWork::of(&input.session);
    let document = json!({
        "goal": goal.as_deref().map(|goal| shorten_with_notice(goal, MAX_GOAL_CHARS, "turn_list")),
        "work_completed": completed_work(&input, session),
        "decisions": decisions(&input, &summary),
        "rejected": texts_or_null(note_texts(&input, NoteKind::Rejected)),
        "gotchas": texts_or_null(note_texts(&input, NoteKind::Gotcha)),
        "blockers": texts_or_null(open.blockers),
        "next_actions": texts_or_null(note_texts(&input, NoteKind::Todo).into_iter().chain(open.next_actions)),
        "facts": texts_or_null(note_texts(&input, NoteKind::Fact)),
        "key_files": summary.key_files,
        "key_decisions": summary.key_decisions,
        "last_prompt": input.session.requests().next_back(),
        "outcome": input.session.outcome(),
        "observations": input.observations(),
        "queued_tool_uses": input.pending.len(),
    });
    let Value::Object(mut payload) = document else {
        return Err(Fault::new(ErrorCode::Internal, "cannot build the automatic content"));
    };
    payload.retain(|_, value| !value.is_null());
    payload.values_mut().for_each(remove_control_characters);
    Ok(Some(AutomaticContent {
        summary: without_control_characters(&summary.summary),
        payload,
        incomplete: !input.pending.is_empty(),
    }))
}

/// Adds the captured content to a handoff that an agent wrote. Does nothing if nothing was captured.
pub(crate) fn add_automatic_content(
    settings: &Settings,
    tx: &mut dyn Tx,
    handoff: &mut Handoff,
) -> Result<(), Fault> {
    if !tx.has_captures(handoff.session_id)? {
        return Ok(());
    }
    let Some(content) = automatic_content(settings, tx, handoff.session_id)? else { return Ok(()) };
    handoff.incomplete = content.incomplete;
    handoff.automatic_json = Some(content.to_automatic_json());
    if content.incomplete {
        tx.request_summary(handoff.session_id, handoff.created_at, handoff.created_at)?;
    }
    Ok(())
}

/// Updates the automatic content of the latest handoff of a session after its summary changed. A damaged handoff is not
/// changed.
pub(crate) fn refresh_handoff(settings: &Settings, tx: &mut dyn Tx, session: SessionId) -> Result<(), Fault> {
    let Some(mut handoff) = tx.latest_handoff_of(session)? else { return Ok(()) };
    let Some(content) = automatic_content(settings, tx, session)? else { return Ok(()) };
    if let Err(fault) = content.write_to(&mut handoff) {
        tracing::error!(handoff = %handoff.id, %fault, "cannot update the automatic content of a handoff");
        return Ok(());
    }
    tx.update_handoff(&handoff).map_err(Fault::from)
}

/// Replaces the automatic content of all handoffs of a session after some of its records were hidden or deleted. An
/// automatic handoff is deleted if nothing is left.
pub(super) fn replace_automatic_content(
    settings: &Settings,
    tx: &mut dyn Tx,
    session: SessionId,
) -> Result<(), Fault> {
    let handoffs = tx.handoffs_of(session)?;
    let content = if handoffs.is_empty() { None } else { automatic_content(settings, tx, session)? };
    for mut handoff in handoffs {
        let is_automatic = handoff.written_by == HandoffAuthor::Hook;
        match &content {
            _ if !is_automatic && handoff.automatic_json.is_none() => continue,
            Some(content) => content.write_to(&mut handoff)?,
            None if is_automatic => {
                tx.delete_handoff(handoff.id)?;
                continue;
            }
            None => handoff.automatic_json = None,
        }
        tx.update_handoff(&handoff)?;
    }
    Ok(())
}

/// Fields of an automatic handoff that are not captured content.
const OWN_FIELDS: [&str; 2] = ["written_by", "reason"];

impl AutomaticContent {
    /// Replaces the automatic content of a handoff.
    fn write_to(&self, handoff: &mut Handoff) -> Result<(), Fault> {
        handoff.incomplete = self.incomplete;
        match handoff.written_by {
            HandoffAuthor::Agent | HandoffAuthor::Person => {
                handoff.automatic_json = Some(self.to_automatic_json());
            }
            HandoffAuthor::Hook => {
                let mut payload = handoff.payload().map_err(|error| corrupt_handoff(handoff, &error))?;
                let has_summary = payload.contains_key("summary");
                payload.retain(|name, _| OWN_FIELDS.contains(&name.as_str()));
                payload.extend(self.payload.clone());
                if has_summary {
                    payload.insert("summary".into(), self.summary.as_str().into());
                }
                let payload = Canonical::of(&Value::Object(payload))
                    .map_err(|rounded| Fault::invalid(&rounded.path, &rounded))?;
                handoff.summary = self.summary.clone();
                handoff.payload_hash = payload.hash();
                handoff.payload_json = payload.into_text();
            }
        }
        Ok(())
    }

    /// Returns the content as the JSON object that is stored beside the fields of an agent.
    fn to_automatic_json(&self) -> String {
        let mut document = self.payload.clone();
        document.insert("summary".into(), self.summary.as_str().into());
        Value::Object(document).to_string()
    }
}

/// Returns a summary without calling a model: the stored one if a model wrote it and it covers the whole session,
/// otherwise one made offline that includes the pending tool uses.
fn summary_without_model(settings: &Settings, input: &SummaryInput) -> Result<SessionSummary, Fault> {
    if let Some(stored) = input.stored.as_ref().filter(|stored| {
        stored.provenance.model.is_some() && input.is_up_to_date() && input.pending.is_empty()
    }) {
        return Ok(stored.summary.clone());
    }
    let mut material = input.session.clone();
    material.pending = input.pending.iter().map(describe_pending).collect();
    let summarized =
        settings.observations.offline.summarize(&material).map_err(|error| {
            Fault::new(ErrorCode::Internal, "cannot summarize the session").caused_by(error)
        })?;
    Ok(summarized.summary)
}

/// Returns the notes of a kind as texts.
fn note_texts(input: &SummaryInput, kind: NoteKind) -> Vec<String> {
    let text = |note: &Note| match &note.file {
        Some(file) => format!("{} ({file})", note.text),
        None => note.text.clone(),
    };
    input.session.notes_of(kind).map(text).collect()
}

/// Returns texts as JSON; null if there are none.
fn texts_or_null(texts: impl IntoIterator<Item = String>) -> Value {
    let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
    if texts.is_empty() { Value::Null } else { texts.into() }
}

/// Returns the decisions that the agent noted, then the other decisions of the summary. Commits are not decisions.
fn decisions(input: &SummaryInput, summary: &SessionSummary) -> Value {
    let is_noted = |decision: &&String| {
        let mut notes = input.session.notes_of(NoteKind::Decision);
        notes.any(|note| note.text.starts_with(decision.trim_end_matches('…')))
    };
    let others = summary.key_decisions.iter().filter(|decision| !decision.starts_with("Committed: "));
    let others = others.filter(|decision| !is_noted(decision)).cloned();
    texts_or_null(note_texts(input, NoteKind::Decision).into_iter().chain(others))
}

/// Returns what the newest observations changed or checked with a known result, oldest first, whether a summary covers
/// them or not. If there are earlier observations, the first item says how many and how to get them.
fn completed_work(input: &SummaryInput, session: SessionId) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    let mut examined = 0;
    for digest in input.session.digests.iter().rev() {
        if titles.len() == MAX_DONE {
            break;
        }
        examined += 1;
        titles.extend(completed_step(digest).map(str::to_owned));
    }
    let earlier = input.observations().saturating_sub(examined);
    if earlier > 0 {
        titles.push(format!("[{earlier} earlier observations: observation_list {session}]"));
    }
    titles.reverse();
    titles
}

/// Removes control characters from all texts, because a handoff with control characters is rejected. They come from
/// terminal output and prompts.
fn remove_control_characters(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_control_characters(text),
        Value::Array(items) => items.iter_mut().for_each(remove_control_characters),
        _ => {}
    }
}
