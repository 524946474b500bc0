//! What a session left to be summed up: its prompts, its observations, and what still waits.

use std::time::Duration;

use baton_core::observation::{
    Digest, Observation, Provenance, SessionMaterial, SessionSummary, TurnText, digests_in_prompt,
};
use baton_core::{Fault, ObservationId, SessionId, Timestamp};
use baton_store::{NewSummary, ObservationFilter, Page, QueueItem, StoredSummary, Tx};

/// How many observations one summary takes in; a longer session is summed up in steps.
const MAX_OBSERVATIONS: u32 = 500;
/// Maximum number of observations of a summary without a model, the newest. It is always built from the whole session.
const MAX_SESSION_OBSERVATIONS: u32 = 1_000;
/// Maximum number of turns of a summary, the newest.
const MAX_TURNS: u32 = 200;
/// How many items that still wait are told by their names.
const MAX_WAITING: u32 = 50;

/// Everything that a summary of a session is made from.
#[derive(Debug, Clone)]
pub(super) struct Gathered {
    /// Input of a model: the previous summary and what is new since then.
    pub(super) material: SessionMaterial,
    /// Input of a summary without a model: the whole session.
    pub(super) session: SessionMaterial,
    /// The summary that there is.
    pub(super) stored: Option<StoredSummary>,
    /// The observations that the material covers, beside those of the stored summary.
    pub(super) covers: Vec<ObservationId>,
    /// What still waits to become observations.
    pub(super) waiting: Vec<QueueItem>,
    /// Whether there are more observations than one step takes in.
    pub(super) more: bool,
}

impl Gathered {
    /// Leaves what one prompt has no room for to the next step.
    pub(super) fn fit_prompt(&mut self) {
        let fits = digests_in_prompt(&self.material);
        self.more |= fits < self.material.digests.len();
        self.material.digests.truncate(fits);
        self.covers.truncate(fits);
    }

    /// Tells whether there is anything to be summed up.
    pub(super) fn is_empty(&self) -> bool {
        self.session.digests.is_empty() && self.session.turns.iter().all(|turn| turn.closing.is_none())
    }

    /// Tells whether the stored summary says it all already.
    pub(super) fn is_covered(&self) -> bool {
        self.material.digests.is_empty() && self.stored.is_some()
    }

    /// How many observations the summary will cover, those of the stored one included.
    pub(super) fn observations(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.observations) + self.covers.len() as u64
    }

    /// The summary that was made from this, to be kept. It is later than the one that it goes on from.
    pub(super) fn summed_up(
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

/// Gathers what a session left since its last summary.
pub(super) fn gather(tx: &mut dyn Tx, session: SessionId) -> Result<Gathered, Fault> {
    let stored = tx.summary(session)?;
    let mut found = tx.observations_to_sum_up(session, MAX_OBSERVATIONS + 1)?;
    let more = found.len() > MAX_OBSERVATIONS as usize;
    found.truncate(MAX_OBSERVATIONS as usize);
    let filter = ObservationFilter { session_id: Some(session), ..ObservationFilter::default() };
    let all = tx.observations(&filter, Page::first(MAX_SESSION_OBSERVATIONS))?;
    let turns: Vec<TurnText> =
        tx.turns(session, None, MAX_TURNS)?.into_iter().rev().map(Into::into).collect();
    Ok(Gathered {
        session: SessionMaterial {
            previous: None,
            turns: turns.clone(),
            digests: all.into_iter().rev().map(digest).collect(),
        },
        covers: found.iter().map(|observation| observation.id).collect(),
        waiting: tx.open_queue_items(session, MAX_WAITING)?,
        more,
        material: SessionMaterial {
            // One that covers nothing says nothing.
            previous: stored
                .as_ref()
                .filter(|stored| stored.observations > 0)
                .map(|stored| stored.summary.clone()),
            turns,
            digests: found.into_iter().map(digest).collect(),
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

/// What can be told of an item that nobody looked into yet.
pub(super) fn digest_of_waiting(item: &QueueItem) -> Digest {
    let files = item.files_touched.join(", ");
    let title = if files.is_empty() {
        format!("Use {}", item.tool_name)
    } else {
        format!("Use {} on {files}", item.tool_name)
    };
    Digest {
        tool_name: item.tool_name.clone(),
        summary: title.clone(),
        title,
        files_touched: Vec::new(),
        functions_changed: Vec::new(),
    }
}
