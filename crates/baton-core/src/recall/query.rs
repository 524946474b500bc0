//! Queries: the terms, phrases, files, names and times of a text.

use std::collections::{HashMap, HashSet};

use super::analysis::{terms, terms_as_written};
use super::mention::find_files;
use super::when::{Period, find_periods};
use crate::time::Timestamp;
use crate::truncate::first_characters;

/// Number of characters of a query that are read.
pub const MAX_QUERY_CHARS: usize = 8_000;
/// Maximum number of different terms of a query. Long prompts are reduced to their rarest terms before ranking.
pub const MAX_QUERY_TERMS: usize = 256;
/// Number of terms that are searched: the rarest ones.
const MAX_SEARCHED_TERMS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTerm {
    /// The normalised term, for example `expiri`.
    pub term: String,
    /// The first word of the query with this term, in lower case, for example `expiry`.
    pub written: String,
    /// Number of times that the term occurs in the query.
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Different terms, in order.
    pub terms: Vec<QueryTerm>,
    /// Terms of each quoted phrase of two terms or more.
    pub phrases: Vec<Vec<String>>,
    /// File names and paths.
    pub files: Vec<String>,
    /// Dates and relative times.
    pub periods: Vec<Period>,
    /// Lower-case words as written, to recognise names of agents, authors and branches.
    pub words: HashSet<String>,
    /// The current time.
    pub now: Timestamp,
}

impl Query {
    /// Reads a query. Every text is valid; operators and unbalanced quotes are ordinary text.
    pub fn parse(text: &str, now: Timestamp) -> Self {
        let (periods, rest) = find_periods(first_characters(text, MAX_QUERY_CHARS), now);
        let mut counted: Vec<QueryTerm> = Vec::new();
        let mut index = HashMap::new();
        for (term, written) in terms_as_written(&rest) {
            match index.get(&term) {
                Some(at) => {
                    let known: &mut QueryTerm = &mut counted[*at];
                    known.count += 1;
                }
                None if counted.len() < MAX_QUERY_TERMS => {
                    index.insert(term.clone(), counted.len());
                    counted.push(QueryTerm { term, written: written.to_lowercase(), count: 1 });
                }
                None => {}
            }
        }
        let is_separator =
            |letter: char| !(letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/'));
        let words = text.split(is_separator).map(|word| word.trim_matches('.').to_lowercase());
        Self {
            terms: counted,
            phrases: phrases(text),
            files: find_files(&rest),
            periods,
            words: words.filter(|word| !word.is_empty()).collect(),
            now,
        }
    }

    /// Keeps the rarest terms, and of equally rare ones the first. `documents` returns the number of documents that contain
    /// a term.
    pub fn reduce(&mut self, documents: impl Fn(&str) -> u64) {
        let mut counted: Vec<(u64, usize, QueryTerm)> = Vec::new();
        for (index, one) in self.terms.drain(..).enumerate() {
            let count = documents(&one.term);
            if count > 0 {
                counted.push((count, index, one));
            }
        }
        counted.sort_unstable_by_key(|(count, index, _)| (*count, *index));
        counted.truncate(MAX_SEARCHED_TERMS);
        counted.sort_unstable_by_key(|(_, index, _)| *index);
        self.terms = counted.into_iter().map(|(_, _, one)| one).collect();
    }

    /// Returns true if a word of a name occurs in the query.
    pub(super) fn names(&self, name: &str) -> bool {
        !name.is_empty() && name.split_whitespace().any(|part| self.words.contains(&part.to_lowercase()))
    }
}

/// Returns the terms of the phrases between double quotes.
fn phrases(text: &str) -> Vec<Vec<String>> {
    let straight = text.replace(['\u{201c}', '\u{201d}', '\u{201e}', '«', '»'], "\"");
    let parts: Vec<&str> = straight.split('"').collect();
    // With an odd number of quotes the last one is not closed.
    let closed = parts.len() - 1 - (parts.len() - 1) % 2;
    let quoted = parts[..closed].iter().skip(1).step_by(2);
    quoted.map(|part| terms(part)).filter(|phrase| phrase.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text, Timestamp::from_millis(1_800_000_000_000))
    }

    #[test]
    fn terms_are_counted_once() {
        let found = query("Retry the retries in worker.rs").terms;
        let found = found.iter().map(|one| (one.term.as_str(), one.written.as_str(), one.count));
        assert!(found.eq([("retri", "retry", 2), ("worker", "worker", 1), ("rs", "rs", 1)]));
    }

    #[test]
    fn quoted_text_is_a_phrase() {
        assert_eq!(query(r#"why "lease expired" twice"#).phrases, [terms("lease expired")]);
        assert_eq!(query("“lease expired”").phrases, [terms("lease expired")]);
        assert!(query(r#"an "unclosed quote"#).phrases.is_empty());
        assert!(query(r#""one" """#).phrases.is_empty());
    }

    #[test]
    fn operators_are_ordinary_text() {
        let found = query("AND OR NOT NEAR(a*) col:x -y ^z; DROP TABLE items; -- %_");
        assert!(found.terms.iter().any(|one| one.term == "drop"));
    }

    #[test]
    fn long_queries_keep_their_rarest_terms() {
        let text: String = (0..400).map(|number| format!("word{} ", "x".repeat(number % 50 + 1))).collect();
        let mut long = query(&text);
        assert!(long.terms.len() <= MAX_QUERY_TERMS);
        long.reduce(|term| term.len() as u64);
        assert_eq!(long.terms.len(), MAX_SEARCHED_TERMS);
        assert!(long.terms.iter().all(|one| one.term.len() <= 4 + MAX_SEARCHED_TERMS));
    }

    #[test]
    fn the_rarest_terms_are_kept_when_counts_are_equal_at_the_limit() {
        let named = |name: &'static str| ('a'..='t').map(move |letter| format!("{name}{letter}x"));
        let mut words: Vec<String> = named("common").chain(named("rare")).collect();
        let mut long = query(&words.join(" "));
        long.reduce(|term| if term.starts_with("rare") { 1 } else { 10 });
        words.drain(12..20);
        assert!(long.terms.iter().map(|one| &one.written).eq(&words), "{:?}", long.terms);
    }

    #[test]
    fn stop_words_alone_are_an_empty_query() {
        assert!(query("what is this").terms.is_empty());
        assert!(query("").terms.is_empty());
        assert!(query("🚀 \u{202e}").terms.is_empty());
    }

    proptest! {
        #[test]
        fn every_text_is_a_query(text in any::<String>()) {
            query(&text);
        }
    }
}
