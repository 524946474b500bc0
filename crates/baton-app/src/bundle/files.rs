//! Files that are probably relevant for the next work in a repository, and stored items that match the request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use baton_core::observation::{Observation, Turn};
use baton_core::recall::{ItemKind, Nearby};
use baton_core::{Fault, Session, SessionId};
use baton_observation::is_reading;
use baton_store::{ObservationFilter, Page, RecallFilter, Tx};

use super::file_scores::{FileScores, MatchKind, RecentUse};
use super::gather::{BundleRequest, BundleScope};
use super::layout::{BundleLine, BundleParts, Section};
use crate::recall::{Find, Loader, RankedDocument, rank_documents};

/// Number of latest observations that are searched for files.
const MAX_OBSERVATIONS: u32 = 1_000;
/// Maximum number of items that match the request whose files are ranked.
const MAX_MATCHES: usize = 200;
/// Maximum number of those items that are lines.
const MAX_RELATED: usize = 8;
/// Maximum number of those items that are read to find the lines.
const MAX_LOADED: usize = 24;
/// Lowest score of such a line, as a share of the best score.
const RELATED_SCORE: f64 = 0.3;
/// Maximum number of files.
const MAX_FILES: usize = 120;
/// Maximum number of turns of a session that are searched for the turn of a file.
const MAX_TURNS: u32 = 200;

/// Adds a line for each file, the most relevant first, and for the items that match the request best.
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
    add_matches(tx, request, &observations, &mut scores, parts)?;
    add_recent(tx, request, &observations, &mut scores)?;
    let ranked = scores.rank(request.prompt).into_iter().filter(|(path, _)| !is_settings_file(path));
    for (path, id) in ranked.take(MAX_FILES) {
        parts.lines.push(BundleLine { section: Section::Files, id, text: path });
    }
    Ok(())
}

/// Adds the files of items that match the request, and the best of these items as lines.
fn add_matches(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    observations: &[Observation],
    scores: &mut FileScores,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    // The latest record replaces the current time, so that the same state gives the same text.
    let (Some(prompt), Some(latest)) = (request.prompt, observations.first()) else { return Ok(()) };
    let asked = Find {
        text: prompt.to_owned(),
        filter: RecallFilter {
            ventures: vec![request.venture.clone()],
            repo: Some(request.repo.clone()),
            ..RecallFilter::default()
        },
        similar_to: None,
        nearby: Nearby { branch: request.branch.map(str::to_owned), ..Nearby::default() },
        limit: MAX_MATCHES,
    };
    let (_, found) = rank_documents(tx, &asked, latest.captured_at)?;
    let kind_of = |found: &RankedDocument| match found.document.kind {
        ItemKind::Turn => MatchKind::Turn,
        _ => MatchKind::Other,
    };
    for kind in [MatchKind::Turn, MatchKind::Other] {
        let matches = || found.iter().filter(|found| kind_of(found) == kind);
        let best = matches().map(|found| found.score).fold(f64::MIN_POSITIVE, f64::max);
        for RankedDocument { document, score, .. } in matches() {
            let id = document.turn.as_deref().unwrap_or(&document.item);
            for path in document.files.iter().filter(|path| document.changes_files || is_file(path)) {
                scores.add_match(path, kind, score / best, id);
            }
        }
    }
    let mut loader = Loader::default();
    let lowest = found.first().map_or(0.0, |best| best.score * RELATED_SCORE);
    let mut number = 0;
    for RankedDocument { document, .. } in
        found.iter().take(MAX_LOADED).take_while(|found| found.score >= lowest)
    {
        if number == MAX_RELATED {
            break;
        }
        let Some(item) = loader.load_indexed(tx, document)? else { continue };
        // The names of files that were only read or searched are in the list of files.
        let is_reading = document.kind == ItemKind::Observation && is_reading(&item.title);
        let is_known =
            || parts.lines.iter().any(|line| line.text.contains(&item.title) || line.id == item.id);
        if !is_reading && !is_known() {
            number += 1;
            parts.lines.push(BundleLine { section: Section::Related, id: item.id, text: item.title });
        }
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
            if is_change || is_file(path) {
                scores.add_recent(path, RecentUse { age, is_change, is_same_branch }, &turn);
            }
        }
    }
    Ok(())
}

/// Returns true if a path is probably a file: a name without a dot is usually a folder that was searched.
fn is_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains('.'))
}

/// Returns true for a file in a hidden folder of a home folder: plans, skills and settings of programs.
fn is_settings_file(path: &str) -> bool {
    let inside = ["/home/", "/Users/"].iter().find_map(|start| path.strip_prefix(start));
    let inside = inside.and_then(|path| path.split_once('/')).map(|(_, path)| path);
    let inside = inside.or_else(|| path.strip_prefix("/root/")).or_else(|| path.strip_prefix("~/"));
    inside.is_some_and(|path| path.starts_with('.'))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_programs_in_a_home_folder_are_recognized() {
        for path in
            ["/home/dev/.claude/plans/plan.md", "/Users/dev/.codex/a.toml", "/root/.config/a", "~/.vimrc"]
        {
            assert!(is_settings_file(path), "{path}");
        }
        for path in [".github/ci.yml", "/home/dev/app/.env", "/srv/.data/a", "src/a.rs"] {
            assert!(!is_settings_file(path), "{path}");
        }
    }
}
