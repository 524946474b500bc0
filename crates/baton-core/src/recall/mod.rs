//! Ranked search: text analysis, queries and the ranking function.
//!
//! Owns which words of an item are indexed, how a query is read, and in which order candidates are returned. Does not
//! own where the index is stored or how candidates are selected from it.

mod analysis;
mod document;
mod mark;
mod mention;
mod query;
mod rank;
mod score;
mod select;
mod snippet;
mod stop_words;
mod vector;
mod when;

pub use analysis::{terms, unique_terms};
pub use document::{Candidate, Document, DocumentText, ItemKind, author_of};
pub use mark::{Mark, MarkKind};
pub use mention::ends_with_path;
pub use query::{MAX_QUERY_CHARS, MAX_QUERY_TERMS, Query, QueryTerm};
pub use rank::{CallerContext, Ranked, Ranker, UnmergedBranch};
pub use score::Corpus;
pub use snippet::snippet;
pub use vector::{Embedding, Vector};
pub use when::{Period, find_periods};
