//! How much each part of a context matters, and why.
//!
//! Owns the four layers, the built-in rules, the rules that users add and the answer to "why is this key in that
//! layer". Does not own what is done with a layer: that is the view's business (see `checkpoint`).
//!
//! A rule looks at a key or at a value and has a priority; for each key the rule with the highest one decides, and a
//! nested key without a rule of its own belongs to the layer of its parent. Built-in key rules work on the words of a
//! key, so nothing has to be compiled when the process starts; regular expressions exist in rules files only.

mod classifier;
mod content;
mod cues;
mod key_rules;
mod layer;
mod path;
mod rules_file;
mod shapes;
mod size;
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
