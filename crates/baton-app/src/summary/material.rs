//! Input of a session summary: turns, observations and pending tool uses.

use std::time::Duration;

use baton_core::observation::{
    Digest, Observation, Provenance, SessionMaterial, SessionSummary, Turn, TurnText,
};
use baton_core::{Fault, Note, ObservationId, SessionId, Timestamp};
use baton_observation::redact_summary;
use baton_store::{NewSummary, NoteFilter, ObservationFilter, Page, QueueItem, StoredSummary, Tx};

use crate::recall::hidden_items;

/// Maximum number of observations that a summary is made from; the newest are used.
const MAX_OBSERVATIONS: u32 = 1_000;
/// Maximum number of observations that one summary marks as covered.
const MAX_COVERED: u32 = 20_000;
/// Maximum number of turns that a summary is made from; the newest are used.
const MAX_TURNS: u32 = 200;
/// Maximum number of notes that a summary is made from; the newest are used.
const MAX_NOTES: u32 = 100;
/// Maximum number of pending queue items that are listed by name.
const MAX_PENDING: u32 = 50;

/// Input of a session summary.
#[derive(Debug, Clone)]
pub(crate) struct SummaryInput {
    /// The whole session.
    pub(crate) session: SessionMaterial,
    pub(crate) stored: Option<StoredSummary>,
    /// Observations that the stored summary does not cover.
    pub(crate) uncovered: Vec<ObservationId>,
    /// Queue items that are not processed yet.
    pub(crate) pending: Vec<QueueItem>,
    /// True if a turn ended or a note changed after the stored summary was made.
    has_newer_texts: bool,
}

impl SummaryInput {
    /// Returns true if the stored summary covers the whole session.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.stored.is_some() && self.uncovered.is_empty() && !self.has_newer_texts
    }

    /// Returns true if the session has anything to summarize.
    pub(crate) fn has_content(&self) -> bool {
        let SessionMaterial { turns, digests, notes, .. } = &self.session;
        !(turns.is_empty() && digests.is_empty() && notes.is_empty())
    }

    /// Returns the number of observations that the new summary covers, including those of the stored one.
    pub(crate) fn observations(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.observations) + self.uncovered.len() as u64
    }

    /// Returns a summary of this input to be stored. Its creation time is always later than the creation time
    /// of the summary that it replaces.
    pub(crate) fn new_summary(
        &self,
        mut summary: SessionSummary,
        provenance: Provenance,
        now: Timestamp,
    ) -> NewSummary {
        let replaces = self.stored.as_ref().map(|stored| stored.made_at);
        let made_at = replaces.map_or(now, |before| now.max(before.plus(Duration::from_millis(1))));
        redact_summary(&mut summary);
        let is_rewritten = self.stored.as_ref().is_none_or(|before| before.summary != summary);
        let stored = StoredSummary { made_at, summary, observations: self.observations(), provenance };
        NewSummary { stored, replaces, covers: self.uncovered.clone(), is_rewritten }
    }
}

pub(crate) fn read_summary_input(tx: &mut dyn Tx, session: SessionId) -> Result<SummaryInput, Fault> {
    let stored = tx.summary(session)?;
    let uncovered = tx.observations_without_summary(session, MAX_COVERED)?;
    let filter = ObservationFilter { session_id: Some(session), ..ObservationFilter::default() };
    let observations = tx.observations(&filter, Page::first(MAX_OBSERVATIONS))?;
    let mut turns: Vec<Turn> = tx.turns(session, None, MAX_TURNS)?;
    let hidden = hidden_items(tx, turns.iter().map(|turn| turn.id.to_string()))?;
    turns.retain(|turn| !hidden.contains(&turn.id.to_string()));
    let filter = NoteFilter { session_id: Some(session), ..NoteFilter::default() };
    let notes: Vec<Note> = tx.notes(&filter, Page::first(MAX_NOTES))?;
    let made_at = stored.as_ref().map(|stored| stored.made_at);
    let is_newer = |at: Timestamp| made_at.is_some_and(|made_at| at > made_at);
    let has_newer_texts =
        turns.iter().any(|turn| turn.closing.is_some() && turn.ended_at.is_some_and(is_newer))
            || notes.iter().any(|note| is_newer(note.updated_at.unwrap_or(note.created_at)));
    let changed_at: Vec<Timestamp> = observations
        .iter()
        .filter(|observation| !observation.compressed.files_touched.is_empty())
        .map(|observation| observation.captured_at)
        .collect();
    Ok(SummaryInput {
        session: SessionMaterial {
            turns: turn_texts(turns, &changed_at),
            digests: observations.into_iter().rev().map(digest).collect(),
            notes: notes.into_iter().rev().collect(),
            pending: Vec::new(),
        },
        stored,
        uncovered,
        pending: tx.open_queue_items(session, MAX_PENDING)?,
        has_newer_texts,
    })
}

/// Returns the texts of turns, oldest first. A change belongs to the last turn that started before it.
fn turn_texts(newest_first: Vec<Turn>, changed_at: &[Timestamp]) -> Vec<TurnText> {
    let mut until: Option<Timestamp> = None;
    let mut texts: Vec<TurnText> = Vec::with_capacity(newest_first.len());
    for turn in newest_first {
        let started_at = turn.started_at;
        let is_inside = |at: &Timestamp| *at >= started_at && until.is_none_or(|until| *at < until);
        let has_changes = changed_at.iter().any(is_inside);
        texts.push(TurnText { has_changes, ..turn.into() });
        until = Some(started_at);
    }
    texts.reverse();
    texts
}

fn digest(observation: Observation) -> Digest {
    let Observation { tool_name, compressed, .. } = observation;
    Digest {
        tool_name,
        title: compressed.title,
        summary: compressed.summary,
        files_touched: compressed.files_touched,
        functions_changed: compressed.functions_changed,
    }
}

/// Describes an unprocessed queue item by its tool name and files.
pub(crate) fn describe_pending(item: &QueueItem) -> String {
    match item.files_touched.join(", ") {
        files if files.is_empty() => item.tool_name.clone(),
        files => format!("{} on {files}", item.tool_name),
    }
}
