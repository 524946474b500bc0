//! Files that are probably relevant for the next work in a repository, and stored items that match the request.

use std::collections::{BTreeSet, HashMap, HashSet};

use baton_core::observation::user_request;
use baton_core::recall::{CallerContext, ItemKind, terms};
use baton_core::{Fault, SessionId, shorten};
use baton_observation::is_reading;
use baton_store::{ObservationFiles, ObservationFilter, Page, RecallFilter, TurnStarts, Tx};

use super::file_scores::{FileScores, MatchKind, RecentUse};
use super::layout::{BundleLine, BundleParts, Section};
use super::request::{BundleRequest, BundleScope};
use crate::recall::{Find, Loader, RankedDocument, rank_documents};

/// Number of latest observations that are searched for files.
const MAX_OBSERVATIONS: u32 = 1_000;
/// Maximum number of items that match the request whose files are ranked.
const MAX_MATCHES: usize = 200;
/// Maximum number of those items that get a line of their own.
const MAX_RELATED: usize = 8;
/// Maximum number of those items that are read to find the ones that get a line.
const MAX_LOADED: usize = 24;
/// Lowest score of an item that gets a line, as a share of the best score.
const RELATED_SCORE: f64 = 0.3;
/// A word is rare if at most one in this many documents contains it.
const DOCUMENTS_PER_RARE_WORD: u64 = 50;
/// In a small store, a word is also rare if at most this many documents contain it.
const RARE_IN_SMALL_STORE: u64 = 3;
/// Weight of matches of a request without rare words.
const COMMON_WEIGHT: f64 = 0.5;
/// Maximum number of files.
const MAX_FILES: usize = 120;
/// Number of files with a line of their own, which says what was last done to the file.
const MAX_DESCRIBED: usize = 8;
/// Maximum length of the description of a change in characters.
const MAX_CHANGE_CHARS: usize = 60;
/// Maximum length of a line with several files in bytes.
const MAX_LINE_BYTES: usize = 360;

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
    let observations = tx.files_of_observations(&filter, Page::first(MAX_OBSERVATIONS))?;
    let mut scores = FileScores::default();
    add_matches(tx, request, &observations, &mut scores, parts)?;
    add_recent(tx, request, &observations, &mut scores)?;
    let ranked = scores.rank(request.prompt).into_iter().filter(|(path, _)| !is_settings_file(path));
    parts.lines.extend(file_lines(ranked.take(MAX_FILES), &observations));
    Ok(())
}

/// Returns the lines of files, the best first: some with what was last done to the file, then several files of one record
/// in a line. `observations` are newest first.
fn file_lines(
    ranked: impl Iterator<Item = (String, String)>,
    observations: &[ObservationFiles],
) -> Vec<BundleLine> {
    let mut lines: Vec<BundleLine> = Vec::new();
    for (place, (path, id)) in ranked.enumerate() {
        let fits = |line: &&mut BundleLine| line.id == id && line.text.len() + path.len() < MAX_LINE_BYTES;
        if place < MAX_DESCRIBED {
            let changed = observations.iter().find(|seen| seen.files_touched.contains(&path));
            let change = changed.map(|seen| change_of(&seen.title, &path)).unwrap_or_default();
            lines.push(BundleLine { section: Section::Files, id, text: format!("{path}{change}") });
        } else if let Some(line) = lines.iter_mut().skip(MAX_DESCRIBED).find(fits) {
            line.text.push_str(&format!(", {path}"));
        } else {
            lines.push(BundleLine { section: Section::Files, id, text: path });
        }
    }
    lines
}

/// Returns the title of a change without the path of its file: `: Modify login` of `Modify login in src/login.rs`.
fn change_of(title: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let named = [path, name].into_iter().find_map(|file| title.split_once(file));
    let (before, after) = named.unwrap_or((title, ""));
    let before =
        [" in ", " to ", " from "].iter().find_map(|word| before.strip_suffix(word)).unwrap_or(before);
    let change = format!("{}{after}", before.trim_end());
    // A title such as `Edit: +1 -1 lines` does not describe the change.
    let is_descriptive = change.contains(' ') && !change.starts_with("Edit:");
    if is_descriptive { format!(": {}", shorten(&change, MAX_CHANGE_CHARS)) } else { String::new() }
}

/// Adds the files of items that match the request, and the best of these items as lines.
fn add_matches(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    observations: &[ObservationFiles],
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
        caller: CallerContext { branch: request.branch.map(str::to_owned), ..CallerContext::default() },
        limit: MAX_MATCHES,
        ..Find::default()
    };
    let (query, corpus, found) = rank_documents(tx, &asked, latest.captured_at)?;
    let kind_of = |found: &RankedDocument| match found.document.kind {
        ItemKind::Turn => MatchKind::Turn,
        _ => MatchKind::Other,
    };
    // An item that has only common words of the request is probably about something else.
    let max_documents = (corpus.documents / DOCUMENTS_PER_RARE_WORD).max(RARE_IN_SMALL_STORE);
    let is_rare = |term: &String| corpus.documents_with(term) <= max_documents;
    let rare: HashSet<String> = query.terms.into_iter().map(|one| one.term).filter(is_rare).collect();
    let weight = if rare.is_empty() { COMMON_WEIGHT } else { 1.0 };
    for kind in [MatchKind::Turn, MatchKind::Other] {
        let matches = || found.iter().filter(|found| kind_of(found) == kind);
        let best = matches().map(|found| found.score).fold(f64::MIN_POSITIVE, f64::max);
        for RankedDocument { document, score, .. } in matches() {
            let id = document.turn.as_deref().unwrap_or(&document.item);
            for path in document.files.iter().filter(|path| document.changes_files || is_file(path)) {
                scores.add_match(path, kind, weight * score / best, id);
            }
        }
    }
    add_related(tx, &found, &rare, parts)
}

/// Adds the best of the items that match the request as lines. `found` is best first; `rare` are the rare words of the
/// request.
fn add_related(
    tx: &mut dyn Tx,
    found: &[RankedDocument],
    rare: &HashSet<String>,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let mut loader = Loader::default();
    let lowest = found.first().map_or(0.0, |best| best.score * RELATED_SCORE);
    let best = || found.iter().take(MAX_LOADED).take_while(|found| found.score >= lowest);
    loader.read_observations(tx, best().map(|found| &found.document))?;
    let mut added = 0;
    for RankedDocument { document, .. } in best() {
        if added == MAX_RELATED {
            break;
        }
        let Some(item) = loader.load_indexed(tx, document)? else { continue };
        // The names of files that were only read or searched are in the list of files.
        let is_reading = document.kind == ItemKind::Observation && is_reading(&item.title);
        let is_known =
            || parts.lines.iter().any(|line| line.text.contains(&item.title) || line.id == item.id);
        // A turn can begin with text that a program wrote instead of a request.
        let is_request = document.kind != ItemKind::Turn || user_request(&item.title).is_some();
        let is_specific = || terms(&item.text).iter().any(|term| rare.contains(term));
        if !is_reading && is_request && !is_known() && is_specific() {
            added += 1;
            parts.lines.push(BundleLine { section: Section::Related, id: item.id, text: item.title });
        }
    }
    Ok(())
}

/// Adds the files of the latest observations.
fn add_recent(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    observations: &[ObservationFiles],
    scores: &mut FileScores,
) -> Result<(), Fault> {
    let sessions: BTreeSet<SessionId> = observations.iter().map(|seen| seen.session_id).collect();
    let sessions: Vec<SessionId> = sessions.into_iter().collect();
    let starts = tx.turn_starts_of(&sessions)?;
    let branches = match request.branch {
        Some(_) => tx.branches_of_sessions(&sessions)?,
        None => HashMap::new(),
    };
    let is_other = |id: SessionId| request.session.is_none_or(|own| own.id != id);
    let last = observations.iter().map(|seen| seen.session_id).find(|id| is_other(*id));
    for (age, observation) in observations.iter().enumerate() {
        let id = observation.session_id;
        let is_same_branch = branches.get(&id).is_some_and(|branch| Some(branch.as_str()) == request.branch);
        if observation.files.is_empty() {
            continue;
        }
        let turn = turn_of(observation, &starts);
        for path in &observation.files {
            let is_change = observation.files_touched.contains(path);
            if is_change || is_file(path) {
                let is_last_session = last == Some(id);
                scores.add_recent(path, RecentUse { age, is_change, is_same_branch, is_last_session }, &turn);
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

/// Returns the id of the observation's turn, which is shorter than its own id. Without a turn, returns its own id.
fn turn_of(observation: &ObservationFiles, starts: &TurnStarts) -> String {
    let turns = starts.get(&observation.session_id).map(Vec::as_slice).unwrap_or_default();
    let turn = turns.iter().rev().find(|(_, started_at)| *started_at <= observation.captured_at);
    turn.map_or_else(|| observation.id.to_string(), |(turn, _)| turn.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_without_the_path_of_its_file() {
        for (title, change) in [
            ("Modify login in src/login.rs", ": Modify login"),
            ("Add retry to login.rs", ": Add retry"),
            ("Edit src/login.rs (imports): +3 -0 lines", ": Edit (imports): +3 -0 lines"),
            ("Write src/login.rs", ""),
            ("Edit src/login.rs: +1 -1 lines", ""),
            ("Rename all files: done", ": Rename all files: done"),
        ] {
            assert_eq!(change_of(title, "src/login.rs"), change, "{title}");
        }
    }

    #[test]
    fn files_of_one_record_share_a_line_after_the_best_ones() {
        let ranked = (0..30).map(|number| (format!("src/file_{number}.rs"), format!("turn_{}", number % 2)));
        let lines = file_lines(ranked, &[]);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts.len(), MAX_DESCRIBED + 2);
        assert_eq!(texts[..2], ["src/file_0.rs", "src/file_1.rs"]);
        assert!(
            texts[MAX_DESCRIBED].starts_with("src/file_8.rs, src/file_10.rs, src/file_12.rs"),
            "{texts:?}"
        );
    }

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
