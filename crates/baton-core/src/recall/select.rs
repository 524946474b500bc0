//! Diversity: the first results are about different files and turns.

use std::collections::HashSet;

use super::document::{Candidate, ItemKind};

/// Number of first results in which a file, and a turn without files, appears once.
const DIVERSE_RESULTS: usize = 10;

/// Moves results that repeat a file or a turn behind the first ten, and returns the first `limit`. A result is the index
/// of a candidate and its score.
pub(super) fn select(ranked: Vec<(usize, f64)>, candidates: &[Candidate], limit: usize) -> Vec<(usize, f64)> {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let (mut first, mut repeated) = (Vec::new(), Vec::new());
    for one in ranked {
        let is_new = key(&candidates[one.0]).is_none_or(|key| seen.insert(key));
        if first.len() < DIVERSE_RESULTS && is_new {
            first.push(one);
        } else {
            repeated.push(one);
        }
    }
    first.extend(repeated);
    first.truncate(limit);
    first
}

/// Returns what a tool use is about: its file or, without files, its turn. `None` for other items, which repeat nothing.
fn key(candidate: &Candidate) -> Option<(&str, &str)> {
    let document = &candidate.document;
    if document.kind != ItemKind::Observation || document.is_conversational {
        return None;
    }
    match document.files.as_slice() {
        [] => Some(("turn", document.turn.as_deref()?)),
        [file, ..] => Some(("file", file)),
    }
}
