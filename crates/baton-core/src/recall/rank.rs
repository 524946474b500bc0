//! The ranking function: scores candidates, explains each score, and orders them.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::document::{Candidate, ItemKind};
use super::mention::is_mentioned;
use super::query::Query;
use super::score::{Corpus, Matches, Scorer};
use super::select::select;
use super::vector::fuse;
use crate::id::SessionId;
use crate::name::Repo;
use crate::time::Timestamp;

/// Branch and files that the caller works on. Items from there rank higher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerContext {
    /// Current branch, for example `feature/logout`.
    pub branch: Option<String>,
    /// Files that are changed now.
    pub files: Vec<String>,
    /// Branches that are not merged. Items of them rank lower on other branches.
    pub unmerged: Vec<UnmergedBranch>,
}

/// A branch that is not merged into the main branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmergedBranch {
    pub repo: Repo,
    pub branch: String,
}

impl CallerContext {
    /// Returns the branch of an item if it is not merged and not the current one.
    pub fn unmerged_branch<'a>(&self, repo: Option<&Repo>, branch: Option<&'a str>) -> Option<&'a str> {
        let branch = branch.filter(|branch| self.branch.as_deref() != Some(branch))?;
        let is_it = |one: &UnmergedBranch| one.branch == branch && Some(&one.repo) == repo;
        self.unmerged.iter().any(is_it).then_some(branch)
    }
}

/// A candidate with its score and the reasons for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Position of the candidate in the input.
    pub index: usize,
    /// Score; higher is better. Scores are comparable only within one search.
    pub score: f64,
    /// Share of the query's words that the document itself contains, from 0 to 1, where rare words count more; 0 if it
    /// contains fewer than two of them. Comparable between queries.
    pub query_coverage: f64,
    /// Reasons for the score, in plain words.
    pub why: String,
}

// A factor multiplies the score. A bonus multiplies it by 1 + bonus × share. A share adds a part of another score.

/// Shares of the scores of the neighbours in a conversation, by distance.
const NEIGHBOUR_SHARES: [f64; 3] = [0.5, 0.25, 0.1];
/// The same for turns of agents, which are longer and less connected than messages between people.
const TURN_NEIGHBOUR_SHARES: [f64; 3] = [0.25, 0.125, 0.05];
/// Share of the score of the session as one document.
const SESSION_SHARE: f64 = 0.3;
/// Share of the score of the turn as one document, for tool uses.
const TURN_SHARE: f64 = 1.0;
/// Bonus of a document that matches the whole query.
const COVERAGE_BONUS: f64 = 0.5;
/// Bonus of a document that contains all quoted phrases.
const PHRASE_BONUS: f64 = 1.0;
/// Factor for items of the author or agent that the query names.
const NAMED_FACTOR: f64 = 1.5;
/// Factor for items of the period that the query names.
const PERIOD_FACTOR: f64 = 1.5;
/// Score that is added to items of the period that the query names, so that a query without other words finds them.
const PERIOD_SCORE: f64 = 0.1;
/// Factor for items of an unmerged branch on another branch.
const UNMERGED_FACTOR: f64 = 0.7;
/// Factor for items of the current branch, or of a branch that the query names.
const BRANCH_FACTOR: f64 = 1.2;
/// Score of a file that the query names or that is changed now, as a share of the best score.
const FILE_SHARE: f64 = 0.5;
/// Bonus of an item of the current time.
const RECENT_BONUS: f64 = 0.2;
/// Age in days at which half of that bonus is left.
const RECENT_HALF_LIFE_DAYS: f64 = 14.0;
/// Factor for turns: they have longer texts and more neighbours than tool uses, which would otherwise rarely be seen.
const TURN_FACTOR: f64 = 0.75;
/// Factor for tool uses without files: listing commits or running tests repeats the words of the work but is not the
/// work itself.
const NO_FILES_FACTOR: f64 = 0.4;
/// Factor for turns without files, which only discuss the work.
const TURN_NO_FILES_FACTOR: f64 = 0.8;
/// Factor for work that changed files.
const CHANGE_FACTOR: f64 = 1.3;
/// Factor for summaries, which name the result and the files of a whole session.
const SUMMARY_FACTOR: f64 = 1.2;
/// Factor for pinned items.
const PINNED_FACTOR: f64 = 2.0;

/// Orders candidates by how well they answer a query.
pub struct Ranker<'a> {
    query: &'a Query,
    caller: &'a CallerContext,
    scorer: Scorer<'a>,
    /// Occurrences of the terms in the candidates of earlier calls, which are the most expensive part.
    matches: Vec<Matches>,
}

impl<'a> Ranker<'a> {
    /// Creates the ranking of a query.
    pub fn new(query: &'a Query, corpus: &Corpus, caller: &'a CallerContext) -> Self {
        Self { query, caller, scorer: Scorer::new(query, corpus), matches: Vec::new() }
    }

    /// Returns the best `limit` candidates. A later call must get the same candidates, and may get more after them.
    pub fn best(&mut self, candidates: &[Candidate], limit: usize) -> Vec<Ranked> {
        self.best_with_similar(candidates, &[], limit)
    }

    /// Like [`best`](Self::best), with a second ranking: numbers of candidates and how similar their vectors are to the
    /// query, best first. Scores are then sums of reciprocal ranks.
    pub fn best_with_similar(
        &mut self,
        candidates: &[Candidate],
        similar: &[(i64, f64)],
        limit: usize,
    ) -> Vec<Ranked> {
        let new = candidates.iter().skip(self.matches.len());
        self.matches.extend(new.map(|candidate| self.scorer.matches(&candidate.document.text)));
        let Self { query, caller, scorer, matches } = &*self;
        let own_score = |(candidate, matches): (&Candidate, &Matches)| {
            let covered = 1.0 + COVERAGE_BONUS * scorer.coverage(matches);
            scorer.score(matches) * covered * (1.0 + PHRASE_BONUS * phrases_in(query, candidate))
        };
        let own_scores: Vec<f64> = candidates.iter().zip(matches).map(own_score).collect();
        let mut scores = with_neighbour_scores(candidates, &own_scores);
        add_group_scores(candidates, matches, scorer, &mut scores);
        let adjuster = ScoreAdjuster {
            query,
            caller,
            author: only_author(query, candidates),
            best: scores.iter().copied().fold(0.0, f64::max),
        };
        let mut ranked: Vec<(usize, f64)> = Vec::with_capacity(candidates.len());
        for (index, candidate) in candidates.iter().enumerate() {
            let score = adjuster.apply(candidate, scores[index], &mut Reasons::default());
            if score > 0.0 {
                ranked.push((index, score));
            }
        }
        sort_by_score(&mut ranked, candidates);
        if !similar.is_empty() {
            ranked = fuse_with_similar(&ranked, similar, candidates);
        }
        let similarity: HashMap<i64, f64> = similar.iter().copied().collect();
        let explained = |(index, score): (usize, f64)| {
            let (candidate, own) = (&candidates[index], &matches[index]);
            let mut why = Reasons(Some(explain_terms(query, own)));
            if let Some(similarity) = similarity.get(&candidate.number) {
                why.add(|| format!("similar meaning ({similarity:.2})"));
            }
            if own.frequencies.is_empty() && scores[index] > 0.0 {
                let turn = &candidate.document.turn;
                let is_in_turn = |(other, matches): (&Candidate, &Matches)| {
                    other.document.turn == *turn && !matches.frequencies.is_empty()
                };
                let reason = if candidate.place.is_some() {
                    "next to matching parts of the conversation"
                } else if turn.is_some() && candidates.iter().zip(matches).any(is_in_turn) {
                    "part of a matching turn"
                } else {
                    "part of a matching session"
                };
                why.add(|| reason.to_owned());
            }
            adjuster.apply(candidate, scores[index], &mut why);
            let query_coverage = if own.frequencies.len() < 2 { 0.0 } else { scorer.coverage(own) };
            Ranked { index, score, query_coverage, why: why.0.unwrap_or_default().join("; ") }
        };
        select(ranked, candidates, limit).into_iter().map(explained).collect()
    }
}

/// Sorts candidates, given as index and score, best first. Of candidates with the same score, newer ones come first.
fn sort_by_score(ranked: &mut [(usize, f64)], candidates: &[Candidate]) {
    let key = |index: usize| {
        let document = &candidates[index].document;
        (Reverse(document.created_at), document.kind, document.item.as_str())
    };
    ranked.sort_by(|(left, left_score), (right, right_score)| {
        right_score.total_cmp(left_score).then_with(|| key(*left).cmp(&key(*right)))
    });
}

/// Joins the ranking by words with the ranking by similar vectors, both best first.
fn fuse_with_similar(
    ranked: &[(usize, f64)],
    similar: &[(i64, f64)],
    candidates: &[Candidate],
) -> Vec<(usize, f64)> {
    let indexes: HashMap<i64, usize> =
        candidates.iter().enumerate().map(|(index, candidate)| (candidate.number, index)).collect();
    let by_words: Vec<usize> = ranked.iter().map(|(index, _)| *index).collect();
    let by_vector: Vec<usize> =
        similar.iter().filter_map(|(number, _)| indexes.get(number).copied()).collect();
    fuse(&by_words, &by_vector)
}

/// Reasons for a score. They are written only for results.
#[derive(Default)]
struct Reasons(Option<Vec<String>>);

impl Reasons {
    fn add(&mut self, reason: impl FnOnce() -> String) {
        if let Some(reasons) = &mut self.0 {
            reasons.push(reason());
        }
    }
}

/// Adjusts the scores of documents by properties other than their words.
struct ScoreAdjuster<'a> {
    query: &'a Query,
    caller: &'a CallerContext,
    author: Option<String>,
    /// Best score by words alone.
    best: f64,
}

impl ScoreAdjuster<'_> {
    /// Adjusts the score of a document by its properties, and adds the reasons.
    fn apply(&self, candidate: &Candidate, mut score: f64, why: &mut Reasons) -> f64 {
        let (document, query) = (&candidate.document, self.query);
        score *= match (document.kind, document.files.is_empty()) {
            (ItemKind::Turn, false) => TURN_FACTOR,
            (ItemKind::Turn, true) => TURN_FACTOR * TURN_NO_FILES_FACTOR,
            (ItemKind::Observation, true) if !document.is_conversational => NO_FILES_FACTOR,
            _ => 1.0,
        };
        if document.changes_files && score > 0.0 {
            score *= CHANGE_FACTOR;
            why.add(|| "changed files".to_owned());
        }
        if document.kind == ItemKind::Summary {
            score *= SUMMARY_FACTOR;
        }
        if document.is_pinned && score > 0.0 {
            score *= PINNED_FACTOR;
            why.add(|| "pinned".to_owned());
        }
        if let Some(file) = named_file(&document.files, &query.files) {
            score += self.best * FILE_SHARE;
            why.add(|| format!("the query names {file}"));
        } else if let Some(file) = named_file(&document.files, &self.caller.files) {
            score += self.best * FILE_SHARE;
            why.add(|| format!("{file} is among the files that the caller works on"));
        }
        if let Some(author) =
            document.author.as_deref().filter(|author| self.author.as_deref() == Some(author))
        {
            score *= NAMED_FACTOR;
            why.add(|| format!("said by {author}"));
        }
        if let Some(agent) =
            document.agent.as_deref().filter(|agent| query.words.contains(&agent.to_lowercase()))
        {
            score *= NAMED_FACTOR;
            why.add(|| format!("work of {agent}"));
        }
        if let Some(period) = query.periods.iter().find(|period| period.contains(document.created_at)) {
            score = (score + PERIOD_SCORE) * PERIOD_FACTOR;
            why.add(|| format!("from the time of \"{}\"", period.words));
        }
        if let Some(branch) = matching_branch(query, self.caller, document.branch.as_deref()) {
            score *= BRANCH_FACTOR;
            why.add(|| format!("on branch {branch}"));
        }
        if let Some(branch) = self.caller.unmerged_branch(document.repo.as_ref(), document.branch.as_deref())
        {
            // Without a current branch, the caller may work on this one.
            score *= if self.caller.branch.is_some() { UNMERGED_FACTOR } else { 1.0 };
            why.add(|| format!("branch {branch} is not merged"));
        }
        score * (1.0 + RECENT_BONUS * freshness(query.now, document.created_at))
    }
}

/// Returns the share of the quoted phrases that a document contains.
fn phrases_in(query: &Query, candidate: &Candidate) -> f64 {
    if query.phrases.is_empty() {
        return 0.0;
    }
    let text = &candidate.document.text;
    let fields = [&text.title, &text.body, &text.paths].map(|field| format!(" {field} "));
    let is_contained = |phrase: &&Vec<String>| {
        let words = format!(" {} ", phrase.join(" "));
        fields.iter().any(|field| field.contains(&words))
    };
    query.phrases.iter().filter(is_contained).count() as f64 / query.phrases.len() as f64
}

/// Adds to each part of a conversation a share of the scores of the parts around it.
fn with_neighbour_scores(candidates: &[Candidate], own: &[f64]) -> Vec<f64> {
    let mut places: HashMap<(SessionId, i64), f64> = HashMap::new();
    for (candidate, score) in candidates.iter().zip(own) {
        if let (Some(session), Some(place)) = (candidate.document.session_id, candidate.place) {
            places.insert((session, place), *score);
        }
    }
    let around = |candidate: &Candidate| -> f64 {
        let (Some(session), Some(place)) = (candidate.document.session_id, candidate.place) else {
            return 0.0;
        };
        let at = |place: i64| places.get(&(session, place)).copied().unwrap_or(0.0);
        let is_turn = candidate.document.kind == ItemKind::Turn;
        let shares = if is_turn { TURN_NEIGHBOUR_SHARES } else { NEIGHBOUR_SHARES };
        let of_distance =
            |(share, distance): (f64, i64)| share * (at(place - distance) + at(place + distance));
        shares.into_iter().zip(1..).map(of_distance).sum()
    };
    candidates.iter().zip(own).map(|(candidate, score)| score + around(candidate)).collect()
}

/// Adds to each document a share of the score of its session, and to each tool use a share of the score of its turn,
/// each scored as one document: the request says what the tool was used for, and so does the commit that follows.
fn add_group_scores(candidates: &[Candidate], matches: &[Matches], scorer: &Scorer<'_>, scores: &mut [f64]) {
    let sessions = group_scores(candidates, matches, scorer, |candidate| candidate.document.session_id);
    let turns = group_scores(candidates, matches, scorer, |candidate| candidate.document.turn.as_deref());
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.place.is_none() {
            scores[index] += SESSION_SHARE * sessions[index] + TURN_SHARE * turns[index];
        } else if scores[index] > 0.0 {
            scores[index] += SESSION_SHARE * sessions[index];
        }
    }
}

/// Returns for each candidate the score of its group as one document; 0 without a group.
fn group_scores<'a, K: std::hash::Hash + Eq>(
    candidates: &'a [Candidate],
    matches: &[Matches],
    scorer: &Scorer<'_>,
    key: impl Fn(&'a Candidate) -> Option<K>,
) -> Vec<f64> {
    let mut positions: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<Matches> = Vec::new();
    let mut group_of = Vec::with_capacity(candidates.len());
    for (candidate, matches) in candidates.iter().zip(matches) {
        let Some(key) = key(candidate) else {
            group_of.push(None);
            continue;
        };
        let position = *positions.entry(key).or_insert_with(|| {
            groups.push(Matches::default());
            groups.len() - 1
        });
        if !matches.frequencies.is_empty() {
            groups[position].add(matches);
        }
        group_of.push(Some(position));
    }
    let scores = scorer.group_scores(&groups);
    group_of.into_iter().map(|group| group.map_or(0.0, |group| scores[group])).collect()
}

/// Returns the author whom the query names, if it names exactly one.
fn only_author(query: &Query, candidates: &[Candidate]) -> Option<String> {
    let mut named: Option<&str> = None;
    for author in candidates.iter().filter_map(|candidate| candidate.document.author.as_deref()) {
        if Some(author) != named && query.names(author) {
            if named.is_some() {
                return None;
            }
            named = Some(author);
        }
    }
    named.map(str::to_owned)
}

/// Returns the first file that is one of the named ones.
fn named_file<'a>(files: &'a [String], named: &[String]) -> Option<&'a str> {
    let is_named = |file: &&String| named.iter().any(|mention| is_mentioned(file, mention));
    files.iter().find(is_named).map(String::as_str)
}

fn matching_branch<'a>(query: &Query, caller: &CallerContext, branch: Option<&'a str>) -> Option<&'a str> {
    let branch = branch?;
    let is_distinctive = branch.contains(['/', '-', '_']);
    let is_named = is_distinctive && query.words.contains(&branch.to_lowercase());
    (is_named || caller.branch.as_deref() == Some(branch)).then_some(branch)
}

/// Returns 1 for the current time, and 1/2 after [`RECENT_HALF_LIFE_DAYS`].
fn freshness(now: Timestamp, then: Timestamp) -> f64 {
    let age_millis = (now.as_millis() - then.as_millis()).max(0) as f64;
    1.0 / (1.0 + age_millis / (RECENT_HALF_LIFE_DAYS * 86_400_000.0))
}

/// Returns the matched terms as a reason; nothing if there are none.
fn explain_terms(query: &Query, matches: &Matches) -> Vec<String> {
    const MAX_NAMED: usize = 6;
    let terms = matches.frequencies.iter().filter_map(|(at, _)| query.terms.get(*at));
    let words: Vec<&str> = terms.map(|term| term.written.as_str()).collect();
    match words.len() {
        0 => Vec::new(),
        count if count > MAX_NAMED => {
            vec![format!("matches {} and {} more", words[..MAX_NAMED].join(", "), count - MAX_NAMED)]
        }
        _ => vec![format!("matches {}", words.join(", "))],
    }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
