//! Input of a session summary: turns, observations and pending tool uses.

use std::time::Duration;

use baton_core::observation::{
    Digest, Observation, Provenance, SessionMaterial, SessionSummary, TurnText, digests_in_prompt,
};
use baton_core::{Fault, Note, ObservationId, SessionId, Timestamp};
use baton_store::{NewSummary, NoteFilter, ObservationFilter, Page, QueueItem, StoredSummary, Tx};

use crate::memory::hidden_items;

/// Maximum number of new observations per summary step; a longer session is summarized in steps.
const MAX_OBSERVATIONS: u32 = 500;
/// Maximum number of observations of a summary without a model, the newest. It is always built from the whole session.
const MAX_SESSION_OBSERVATIONS: u32 = 1_000;
/// Maximum number of turns of a summary, the newest.
const MAX_TURNS: u32 = 200;
/// Maximum number of notes of a summary, the newest.
const MAX_NOTES: u32 = 100;
/// Maximum number of pending queue items that are listed by name.
const MAX_PENDING: u32 = 50;

/// Input of a session summary.
#[derive(Debug, Clone)]
pub(super) struct SummaryInput {
    /// Input of a model: the previous summary and what is new since then.
    pub(super) material: SessionMaterial,
    /// Input of a summary without a model: the whole session.
    pub(super) session: SessionMaterial,
    /// The stored summary.
    pub(super) stored: Option<StoredSummary>,
    /// Observations in `material`, which the stored summary does not cover.
    pub(super) covers: Vec<ObservationId>,
    /// Queue items that are not processed yet.
    pub(super) pending: Vec<QueueItem>,
    /// True if there are more observations than fit in one step.
    pub(super) more: bool,
}

impl SummaryInput {
    /// Truncates `material` to the observations that fit in one prompt; the rest is left to the next step.
    pub(super) fn fit_prompt(&mut self) {
        let fits = digests_in_prompt(&self.material);
        self.more |= fits < self.material.digests.len();
        self.material.digests.truncate(fits);
        self.covers.truncate(fits);
    }

    /// Returns true if the session has no observations, no notes and no closing messages.
    pub(super) fn is_empty(&self) -> bool {
        self.session.digests.is_empty()
            && self.session.notes.is_empty()
            && self.session.turns.iter().all(|turn| turn.closing.is_none())
    }

    /// Returns true if the stored summary covers all observations.
    pub(super) fn is_covered(&self) -> bool {
        self.material.digests.is_empty() && self.stored.is_some()
    }

    /// Returns the number of observations that the new summary covers, including those of the stored one.
    pub(super) fn observations(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.observations) + self.covers.len() as u64
    }

    /// Returns a summary of this input to be stored. Its creation time is always later than that of the summary it
    /// replaces.
    pub(super) fn new_summary(
        &self,
        summary: SessionSummary,
        provenance: Provenance,
        now: Timestamp,
    ) -> NewSummary {
        let replaces = self.stored.as_ref().map(|stored| stored.made_at);
        let made_at = replaces.map_or(now, |before| now.max(before.plus(Duration::from_millis(1))));
        let summary = summary.without_secrets();
        let is_rewritten = self.stored.as_ref().is_none_or(|before| before.summary != summary);
        let stored = StoredSummary { made_at, summary, observations: self.observations(), provenance };
        NewSummary { stored, replaces, covers: self.covers.clone(), is_rewritten }
    }
}

pub(super) fn read_summary_input(tx: &mut dyn Tx, session: SessionId) -> Result<SummaryInput, Fault> {
    let stored = tx.summary(session)?;
    let mut found = tx.observations_to_sum_up(session, MAX_OBSERVATIONS + 1)?;
    let more = found.len() > MAX_OBSERVATIONS as usize;
    found.truncate(MAX_OBSERVATIONS as usize);
    let filter = ObservationFilter { session_id: Some(session), ..ObservationFilter::default() };
    let all = tx.observations(&filter, Page::first(MAX_SESSION_OBSERVATIONS))?;
    let mut turns = tx.turns(session, None, MAX_TURNS)?;
    let hidden = hidden_items(tx, turns.iter().map(|turn| turn.id.to_string()))?;
    turns.retain(|turn| !hidden.contains(&turn.id.to_string()));
    let turns: Vec<TurnText> = turns.into_iter().rev().map(Into::into).collect();
    let filter = NoteFilter { session_id: Some(session), ..NoteFilter::default() };
    let notes: Vec<Note> = tx.notes(&filter, Page::first(MAX_NOTES))?.into_iter().rev().collect();
    Ok(SummaryInput {
        session: SessionMaterial {
            previous: None,
            turns: turns.clone(),
            digests: all.into_iter().rev().map(digest).collect(),
            notes: notes.clone(),
            pending: Vec::new(),
        },
        covers: found.iter().map(|observation| observation.id).collect(),
        pending: tx.open_queue_items(session, MAX_PENDING)?,
        more,
        material: SessionMaterial {
            // A summary that covers no observations has no content.
            previous: stored
                .as_ref()
                .filter(|stored| stored.observations > 0)
                .map(|stored| stored.summary.clone()),
            turns,
            digests: found.into_iter().map(digest).collect(),
            notes,
            pending: Vec::new(),
        },
        stored,
    })
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
pub(super) fn describe_pending(item: &QueueItem) -> String {
    match item.files_touched.join(", ") {
        files if files.is_empty() => item.tool_name.clone(),
        files => format!("{} on {files}", item.tool_name),
    }
}
