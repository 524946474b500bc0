//! Diversity: the first results are about different files and turns.

use std::collections::HashSet;

use super::document::{Candidate, ItemKind};
use super::rank::Ranked;

/// Number of first results in which a file, and a turn without files, appears once.
const DIVERSE: usize = 10;

/// Moves results that repeat a file or a turn behind the first ten, and returns the first `limit`.
pub(super) fn select(ranked: Vec<Ranked>, candidates: &[Candidate], limit: usize) -> Vec<Ranked> {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let (mut first, mut repeated) = (Vec::new(), Vec::new());
    for one in ranked {
        let is_new = key(&candidates[one.index]).is_none_or(|key| seen.insert(key));
        if first.len() < DIVERSE && is_new {
            first.push(one);
        } else {
            repeated.push(one);
        }
    }
    first.extend(repeated);
    first.truncate(limit);
    first
}

/// Returns what a tool use is about: its file or, without files, its turn. Other items are about themselves.
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
