//! Finds ranked items inside a transaction, for `search` and for everything that recalls items in-process.

use std::collections::{BTreeSet, HashSet};

use baton_core::recall::{CallerContext, Candidate, Corpus, Document, Embedding, Query, Ranker, snippet};
use baton_core::{SessionId, Timestamp, estimate_tokens};
use baton_store::{MatchPlan, RecallFilter, StoreError, Tx};

use super::item::{Item, Loader};

/// Maximum number of candidates that are ranked.
const MAX_CANDIDATES: u32 = 600;
/// Number of best candidates whose neighbours in the conversation, and whose turn's tool uses, are ranked as well.
const BEST: usize = 60;
/// Maximum number of these tool uses.
const MAX_OF_TURNS: u32 = 300;
/// Maximum distance of these neighbours.
const NEIGHBOUR_DISTANCE: i64 = 3;
/// Number of items that are ranked by the similarity of their vectors.
const NEAREST: usize = 60;
/// Maximum number of items of a query that names only a time.
const MAX_OF_PERIOD: u32 = 200;

/// What to find.
#[derive(Debug, Clone, Default)]
pub struct Find {
    /// Query in plain words.
    pub text: String,
    /// Conditions. `ventures` must not be empty.
    pub filter: RecallFilter,
    /// The query as an embedding model sees it; `None` to rank by words only.
    pub similar_to: Option<Embedding>,
    /// Branch and files that the caller works on.
    pub caller: CallerContext,
    /// Maximum number of results.
    pub limit: usize,
}

/// A found item.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub item: Item,
    /// The part of its text that matches best.
    pub snippet: String,
    /// Estimated number of tokens of the full text.
    pub tokens: u64,
    /// Score, comparable within one result only.
    pub score: f64,
    /// Reasons for the score.
    pub why: String,
}

/// A document that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedDocument {
    /// What the index knows about the item.
    pub(crate) document: Document,
    /// Score, comparable within one result only.
    pub(crate) score: f64,
    /// Share of the query's words that the document contains.
    pub(crate) query_coverage: f64,
    /// Reasons for the score.
    why: String,
}

/// Finds the items that answer a query best, best first.
pub fn find(tx: &mut dyn Tx, asked: &Find, now: Timestamp) -> Result<Vec<Found>, StoreError> {
    let (query, _, ranked) = rank_documents(tx, asked, now)?;
    let mut loader = Loader::default();
    loader.read_observations(tx, ranked.iter().map(|ranked| &ranked.document))?;
    let mut found = Vec::new();
    for RankedDocument { document, score, why, .. } in ranked {
        let Some(item) = loader.load_indexed(tx, &document)? else { continue };
        let tokens = estimate_tokens(&item.text) as u64;
        found.push(Found { snippet: snippet(&item.text, &query), tokens, score, why, item });
    }
    Ok(found)
}

/// Ranks the documents that match a query, best first, without reading their items.
pub(crate) fn rank_documents(
    tx: &mut dyn Tx,
    asked: &Find,
    now: Timestamp,
) -> Result<(Query, Corpus, Vec<RankedDocument>), StoreError> {
    let mut query = Query::parse(&asked.text, now);
    let terms: Vec<&str> = query.terms.iter().map(|one| one.term.as_str()).collect();
    let corpus = tx.corpus(&asked.filter.ventures, &terms)?;
    query.reduce(|term| corpus.documents_with(term));
    let mut candidates = if query.terms.is_empty() {
        candidates_of_periods(tx, &query, &asked.filter)?
    } else {
        let plan = MatchPlan::of(&query, &corpus, u64::from(MAX_CANDIDATES));
        tx.candidates(&asked.filter, &plan, MAX_CANDIDATES)?
    };
    let unmerged = tx.unmerged_branches(&asked.filter.ventures)?;
    let caller = CallerContext { unmerged, ..asked.caller.clone() };
    let mut ranker = Ranker::new(&query, &corpus, &caller);
    let best = ranker.best(&candidates, BEST);
    let best: Vec<usize> = best.iter().map(|ranked| ranked.index).collect();
    add_related(tx, &asked.filter, &best, &mut candidates)?;
    let similar = match &asked.similar_to {
        Some(embedding) => add_similar(tx, &asked.filter, embedding, &mut candidates)?,
        None => Vec::new(),
    };
    let ranked = ranker.best_with_similar(&candidates, &similar, asked.limit);
    let ranked = ranked.into_iter().map(|ranked| RankedDocument {
        document: candidates[ranked.index].document.clone(),
        score: ranked.score,
        query_coverage: ranked.query_coverage,
        why: ranked.why,
    });
    let ranked = ranked.collect();
    Ok((query, corpus, ranked))
}

/// Returns the latest items of the periods that a query names, for a query without other words.
fn candidates_of_periods(
    tx: &mut dyn Tx,
    query: &Query,
    filter: &RecallFilter,
) -> Result<Vec<Candidate>, StoreError> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for period in &query.periods {
        let since = filter.since.map_or(period.from, |since| since.max(period.from));
        let until = filter.until.map_or(period.until, |until| until.min(period.until));
        let filter = RecallFilter { since: Some(since), until: Some(until), ..filter.clone() };
        let of_period = tx.timeline(&filter, (until, 0), false, MAX_OF_PERIOD)?;
        // Periods can overlap.
        found.extend(of_period.into_iter().filter(|candidate| known.insert(candidate.number)));
    }
    Ok(found)
}

/// Adds the items with the most similar vectors. Returns their numbers and similarities, best first.
fn add_similar(
    tx: &mut dyn Tx,
    filter: &RecallFilter,
    embedding: &Embedding,
    candidates: &mut Vec<Candidate>,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let similar = tx.nearest(filter, embedding, NEAREST)?;
    let known: HashSet<i64> = candidates.iter().map(|candidate| candidate.number).collect();
    let new: Vec<i64> =
        similar.iter().map(|(number, _)| *number).filter(|number| !known.contains(number)).collect();
    candidates.extend(tx.documents_numbered(&new)?);
    Ok(similar)
}

/// Adds the parts of the conversation around the best candidates, and the tool uses of their turns: an edit need not
/// contain the words of the request that led to it.
fn add_related(
    tx: &mut dyn Tx,
    filter: &RecallFilter,
    best: &[usize],
    candidates: &mut Vec<Candidate>,
) -> Result<(), StoreError> {
    let best = || best.iter().filter_map(|index| candidates.get(*index));
    let places = best().filter_map(|candidate| Some((candidate.document.session_id?, candidate.place?)));
    let mut related = tx.documents_at(&ranges(places.collect()))?;
    let turns: BTreeSet<&str> = best().filter_map(|candidate| candidate.document.turn.as_deref()).collect();
    let turns: Vec<&str> = turns.into_iter().collect();
    related.extend(tx.documents_of_turns(&turns, MAX_OF_TURNS)?);
    let mut known: HashSet<i64> = candidates.iter().map(|candidate| candidate.number).collect();
    related.retain(|candidate| known.insert(candidate.number) && matches(filter, candidate));
    candidates.extend(related);
    Ok(())
}

/// Returns true if an item of the same turn or conversation as a matching candidate matches the filter as well.
/// Conditions that hold for a whole session are not checked again. With a condition on a file, no such item is added.
fn matches(filter: &RecallFilter, candidate: &Candidate) -> bool {
    let document = &candidate.document;
    filter.kind.is_none_or(|kind| document.kind == kind)
        && (filter.agent.is_none() || document.agent == filter.agent)
        && (filter.branch.is_none() || document.branch == filter.branch)
        && filter.since.is_none_or(|since| document.created_at >= since)
        && filter.until.is_none_or(|until| document.created_at < until)
        && filter.file.is_none()
}

/// Joins overlapping ranges of places around the given ones.
fn ranges(mut places: Vec<(SessionId, i64)>) -> Vec<(SessionId, i64, i64)> {
    places.sort_unstable();
    let mut found: Vec<(SessionId, i64, i64)> = Vec::new();
    for (session, place) in places {
        let (first, last) = (place - NEIGHBOUR_DISTANCE, place + NEIGHBOUR_DISTANCE);
        match found.last_mut() {
            Some((of, _, end)) if *of == session && *end >= first => *end = last,
            _ => found.push((session, first, last)),
        }
    }
    found
}
