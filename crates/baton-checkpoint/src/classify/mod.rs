//! Classifies the keys of a context by importance and explains the result.
//!
//! Owns the four layers, the built-in rules, user rules and the explanations. Does not own the use of layers: see
//! `view`.
//!
//! A rule matches a key or a value and has a priority. For each key the rule with the highest priority decides; a
//! nested key that matches no rule has the layer of its parent. Built-in key rules compare words, so nothing has to be
//! compiled at startup; only rules files contain regular expressions.

mod classifier;
mod content;
mod cues;
mod key_rules;
mod layer;
mod path;
mod rules_file;
mod shapes;
mod size;
mod table;
mod topic;
mod vocabulary;
mod words;

pub use classifier::{Classification, Classifier, Explanation};
pub use content::Heuristic;
pub(crate) use key_rules::is_chronological;
pub use layer::{Layer, LayerBytes, Shares};
pub use path::find_key;
pub(crate) use path::{push_index, push_key};
pub use rules_file::{RulesError, RulesFile};
pub(crate) use size::{byte_size, list_size, member_size, text_size};

#[cfg(test)]
pub(crate) use classifier::tests::any_context;

#[cfg(test)]
mod labelled_tests;
