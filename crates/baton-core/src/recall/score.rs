//! BM25 over weighted fields.

use std::collections::HashMap;

use super::document::DocumentText;
use super::query::Query;

/// Saturation of the term frequency: with a lower value, further occurrences of a term count less.
const K1: f64 = 0.9;
/// Discount of long documents.
const B: f64 = 0.4;
/// Weight of a term in the title.
const TITLE: f64 = 2.0;
/// Weight of a term in the text.
const BODY: f64 = 1.0;
/// Weight of a term in a path.
const PATHS: f64 = 1.0;

/// Statistics of all documents that the caller may search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corpus {
    pub documents: u64,
    /// Sum of the lengths of all documents, in terms.
    pub length: u64,
    /// Number of documents that contain each term of the query.
    pub with_term: HashMap<String, u64>,
}

impl Corpus {
    /// Returns the number of documents that contain a term.
    pub fn documents_with(&self, term: &str) -> u64 {
        self.with_term.get(term).copied().unwrap_or(0)
    }
}

/// The terms of a query with their weights.
pub(super) struct Scorer<'a> {
    index: HashMap<&'a str, usize>,
    /// Weight of each term: how rare it is.
    pub(super) weights: Vec<f64>,
    /// First bytes of the terms, to skip other words quickly.
    first_bytes: [bool; 256],
    average_length: f64,
}

/// Occurrences of the query terms in a document or in a group of documents.
#[derive(Debug, Clone, Default)]
pub(super) struct Matches {
    /// Position of a term in the query, and its weighted number of occurrences.
    pub(super) frequencies: Vec<(usize, f64)>,
    /// Number of terms of the document or group.
    pub(super) length: f64,
}

/// Returns how rare a term is, from the numbers of documents.
fn rarity(documents: f64, with_term: f64) -> f64 {
    (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln()
}

impl<'a> Scorer<'a> {
    pub(super) fn new(query: &'a Query, corpus: &Corpus) -> Self {
        let documents = corpus.documents.max(1) as f64;
        let index: HashMap<&str, usize> =
            query.terms.iter().enumerate().map(|(at, one)| (one.term.as_str(), at)).collect();
        let weights = query.terms.iter().map(|one| {
            let with_term = corpus.documents_with(&one.term).min(corpus.documents) as f64;
            rarity(documents, with_term) * (1.0 + f64::from(one.count).ln())
        });
        let mut first_bytes = [false; 256];
        for one in &query.terms {
            if let Some(byte) = one.term.as_bytes().first() {
                first_bytes[usize::from(*byte)] = true;
            }
        }
        Self {
            weights: weights.collect(),
            first_bytes,
            average_length: (corpus.length as f64 / documents).max(1.0),
            index,
        }
    }

    /// Counts the query terms in a document.
    pub(super) fn matches(&self, text: &DocumentText) -> Matches {
        let mut found = Matches::default();
        for (field, weight) in [(&text.title, TITLE), (&text.body, BODY), (&text.paths, PATHS)] {
            for term in field.split_ascii_whitespace() {
                found.length += 1.0;
                let Some(first) = term.as_bytes().first() else { continue };
                if !self.first_bytes[usize::from(*first)] {
                    continue;
                }
                let Some(at) = self.index.get(term) else { continue };
                match found.frequencies.iter_mut().find(|(known, _)| known == at) {
                    Some((_, frequency)) => *frequency += weight,
                    None => found.frequencies.push((*at, weight)),
                }
            }
        }
        found.frequencies.sort_unstable_by_key(|(at, _)| *at);
        found
    }

    /// Returns the BM25 score of a document.
    pub(super) fn score(&self, matches: &Matches) -> f64 {
        let damping = K1 * (1.0 - B + B * matches.length / self.average_length);
        let of_term = |(at, frequency): &(usize, f64)| {
            self.weights.get(*at).unwrap_or(&0.0) * frequency * (K1 + 1.0) / (frequency + damping)
        };
        matches.frequencies.iter().map(of_term).sum()
    }

    /// Returns the share of the query that a document matches, from 0 to 1, where rare terms count more.
    pub(super) fn coverage(&self, matches: &Matches) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let matched: f64 = matches.frequencies.iter().filter_map(|(at, _)| self.weights.get(*at)).sum();
        if total > 0.0 { matched / total } else { 0.0 }
    }

    /// Scores groups of documents as if each group were one document: the sum of their frequencies.
    pub(super) fn group_scores(&self, groups: &[Matches]) -> Vec<f64> {
        let total = groups.len().max(1) as f64;
        let mut with_term = vec![0.0; self.weights.len()];
        for (at, _) in groups.iter().flat_map(|group| &group.frequencies) {
            if let Some(count) = with_term.get_mut(*at) {
                *count += 1.0;
            }
        }
        let average = groups.iter().map(|group| group.length).sum::<f64>() / total;
        let score = |group: &Matches| -> f64 {
            let damping = K1 * (1.0 - B + B * group.length / average.max(1.0));
            let of_term = |(at, frequency): &(usize, f64)| {
                rarity(total, with_term.get(*at).copied().unwrap_or(total)) * frequency * (K1 + 1.0)
                    / (frequency + damping)
            };
            group.frequencies.iter().map(of_term).sum()
        };
        groups.iter().map(score).collect()
    }
}

impl Matches {
    /// Adds the frequencies of another document.
    pub(super) fn add(&mut self, other: &Self) {
        self.length += other.length;
        for (at, frequency) in &other.frequencies {
            match self.frequencies.iter_mut().find(|(known, _)| known == at) {
                Some((_, sum)) => *sum += frequency,
                None => self.frequencies.push((*at, *frequency)),
            }
        }
    }
}
