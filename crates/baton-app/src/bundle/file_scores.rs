//! Ranking of the files that are probably relevant for the next work.
//!
//! A file is as relevant as the turn and the tool use that match the request best, plus how recently it was used and
//! whether the request names it. The weights are measured by `benches/bundle.rs`.

use std::collections::HashMap;

/// Weight of recent use.
const RECENT: f64 = 0.5;
/// Factor by which the weight of a use decreases with each later use.
const DECAY: f64 = 0.99;
/// Weight of a use that changed the file.
const CHANGE: f64 = 1.5;
/// Weight of work on the branch of the receiver.
const SAME_BRANCH: f64 = 1.5;
/// Score of a file that the last session changed.
const LAST_SESSION: f64 = 1.0;
/// Score of a file whose path or name the request contains.
const NAMED: f64 = 2.0;
/// Score of a file whose name without extension is a word of the request.
const NAMED_WITHOUT_EXTENSION: f64 = 1.0;

/// Kind of an item that matches the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchKind {
    Turn,
    /// Anything else, for example a tool use.
    Other,
}

/// A recent use of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecentUse {
    /// Number of later uses.
    pub(crate) age: usize,
    /// Whether the file was changed.
    pub(crate) is_change: bool,
    /// Whether the work was done on the branch of the receiver.
    pub(crate) is_same_branch: bool,
    /// Whether the work was done in the last session.
    pub(crate) is_last_session: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FileScores {
    files: HashMap<String, Score>,
}

#[derive(Debug, Clone, Default)]
struct Score {
    turn: f64,
    other: f64,
    recent: f64,
    is_of_last_session: bool,
    id: String,
}

impl FileScores {
    /// Adds an item that matches the request and touches the file. `score` is from 0 to 1; items are added best first.
    pub(crate) fn add_match(&mut self, path: &str, kind: MatchKind, score: f64, id: &str) {
        let file = self.file(path, id);
        let best = if kind == MatchKind::Turn { &mut file.turn } else { &mut file.other };
        *best = best.max(score);
    }

    /// Adds a recent use of the file. Uses are added latest first.
    pub(crate) fn add_recent(&mut self, path: &str, recent: RecentUse, id: &str) {
        let weight = DECAY.powi(i32::try_from(recent.age).unwrap_or(i32::MAX))
            * if recent.is_change { CHANGE } else { 1.0 }
            * if recent.is_same_branch { SAME_BRANCH } else { 1.0 };
        let file = self.file(path, id);
        file.recent += weight;
        file.is_of_last_session |= recent.is_last_session && recent.is_change;
    }

    fn file(&mut self, path: &str, id: &str) -> &mut Score {
        self.files.entry(path.to_owned()).or_insert_with(|| Score { id: id.to_owned(), ..Score::default() })
    }

    /// Returns the files, the most relevant first, each with the id of the first item that was added for it.
    pub(crate) fn rank(self, prompt: Option<&str>) -> Vec<(String, String)> {
        let most_recent = self.files.values().map(|file| file.recent).fold(0.0, f64::max);
        let mut ranked: Vec<(f64, String, String)> = self
            .files
            .into_iter()
            .map(|(path, file)| {
                let recent = if most_recent > 0.0 { RECENT * file.recent / most_recent } else { 0.0 };
                let named = prompt.map_or(0.0, |prompt| mention(prompt, &path));
                let last = if file.is_of_last_session { LAST_SESSION } else { 0.0 };
                (file.turn + file.other + recent + named + last, path, file.id)
            })
            .collect();
        ranked.sort_by(|(left_score, left_path, _), (right_score, right_path, _)| {
            right_score.total_cmp(left_score).then_with(|| left_path.cmp(right_path))
        });
        ranked.into_iter().map(|(_, path, id)| (path, id)).collect()
    }
}

/// Returns how clearly a request names a file.
fn mention(prompt: &str, path: &str) -> f64 {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
    let is_separator = |character: char| !character.is_alphanumeric() && !matches!(character, '_' | '-');
    if name.len() > 2 && prompt.contains(name) {
        NAMED
    } else if stem.len() > 3 && prompt.split(is_separator).any(|word| word == stem) {
        NAMED_WITHOUT_EXTENSION
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_matching_and_recent_files_come_first_in_this_order() {
        let mut scores = FileScores::default();
        scores.add_match("src/match.rs", MatchKind::Turn, 1.0, "turn_1");
        scores.add_match("src/weak.rs", MatchKind::Other, 0.1, "obs_1");
        for (age, path) in ["src/recent.rs", "src/older.rs", "src/named.rs"].into_iter().enumerate() {
            scores.add_recent(
                path,
                RecentUse { age, is_change: false, is_same_branch: false, is_last_session: false },
                "turn_2",
            );
        }
        let ranked = scores.rank(Some("Fix named.rs"));
        let paths: Vec<&str> = ranked.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["src/named.rs", "src/match.rs", "src/recent.rs", "src/older.rs", "src/weak.rs"]);
        assert_eq!(ranked[1].1, "turn_1");
    }

    #[test]
    fn changes_of_the_last_session_come_before_older_changes() {
        let mut scores = FileScores::default();
        let change =
            |age, is_last_session| RecentUse { age, is_change: true, is_same_branch: false, is_last_session };
        scores.add_recent("src/last.rs", change(0, true), "turn_9");
        (1..9).for_each(|age| scores.add_recent("src/often.rs", change(age, false), "turn_1"));
        let paths: Vec<String> = scores.rank(None).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["src/last.rs", "src/often.rs"]);
    }

    #[test]
    fn a_request_names_a_file_by_path_name_or_stem() {
        for (prompt, path, expected) in [
            ("look at src/login.rs", "src/login.rs", NAMED),
            ("look at login.rs:12", "src/login.rs", NAMED),
            ("the login fails", "src/login.rs", NAMED_WITHOUT_EXTENSION),
            ("the logins fail", "src/login.rs", 0.0),
            ("a b", "src/a", 0.0),
        ] {
            assert!((mention(prompt, path) - expected).abs() < f64::EPSILON, "{prompt}");
        }
    }
}
