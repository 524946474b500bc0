//! Files that are probably relevant for the next work in a repository.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use baton_core::bundle::{BundleLine, BundleParts, FileScores, RecentUse, Section};
use baton_core::observation::{Observation, Turn};
use baton_core::{Fault, Session, SessionId};
use baton_store::{ObservationFilter, Page, Tx};

use super::gather::{BundleRequest, BundleScope};

/// Number of latest observations that are searched for files.
const MAX_OBSERVATIONS: u32 = 1_000;
/// Maximum number of files.
const MAX_FILES: usize = 120;
/// Maximum number of turns of a session that are searched for the turn of a file.
const MAX_TURNS: u32 = 200;

/// Adds a line for each file, the most relevant first.
pub(super) fn add(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let own = request.session.map(|session| session.id).filter(|_| request.scope == BundleScope::Chat);
    let filter = ObservationFilter {
        ventures: Some(vec![request.venture.clone()]),
        repo: Some(request.repo.clone()),
        session_id: own,
        ..ObservationFilter::default()
    };
    let observations = tx.observations(&filter, Page::first(MAX_OBSERVATIONS))?;
    let mut scores = FileScores::default();
    add_recent(tx, request, &observations, &mut scores)?;
    for (path, id) in scores.rank(request.prompt).into_iter().take(MAX_FILES) {
        parts.lines.push(BundleLine { section: Section::Files, id, text: path });
    }
    Ok(())
}

/// Adds the files of the latest observations.
fn add_recent(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    observations: &[Observation],
    scores: &mut FileScores,
) -> Result<(), Fault> {
    let mut sessions: HashMap<SessionId, Option<Session>> = HashMap::new();
    let mut turns = TurnFinder::default();
    for (age, observation) in observations.iter().enumerate() {
        let id = observation.session_id;
        if request.branch.is_some()
            && let Entry::Vacant(unknown) = sessions.entry(id)
        {
            unknown.insert(tx.session(id)?);
        }
        let branch = sessions.get(&id).and_then(|session| session.as_ref()?.facts.branch.as_deref());
        let is_same_branch = request.branch.is_some() && branch == request.branch;
        if observation.files.is_empty() {
            continue;
        }
        let turn = turns.id_of(tx, observation)?;
        for path in &observation.files {
            let is_change = observation.compressed.files_touched.contains(path);
            // A name without a dot is usually a folder that was searched.
            if !is_change && !path.rsplit('/').next().is_some_and(|name| name.contains('.')) {
                continue;
            }
            scores.add_recent(path, RecentUse { age, is_change, is_same_branch }, &turn);
        }
    }
    Ok(())
}

/// Finds the turn in which a tool was used.
#[derive(Default)]
struct TurnFinder {
    turns: HashMap<SessionId, Vec<Turn>>,
}

impl TurnFinder {
    /// Returns the id of the observation's turn, which is shorter than its own id. Without a turn, returns its own id.
    fn id_of(&mut self, tx: &mut dyn Tx, observation: &Observation) -> Result<String, Fault> {
        let turns = match self.turns.entry(observation.session_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(tx.turns(observation.session_id, None, MAX_TURNS)?),
        };
        let turn = turns.iter().find(|turn| turn.started_at <= observation.captured_at);
        Ok(turn.map_or_else(|| observation.id.to_string(), |turn| turn.id.to_string()))
    }
}
