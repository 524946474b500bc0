//! Content of an observation, as a compressor creates it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a title in characters; longer titles are truncated.
pub const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of a summary in characters; longer summaries are truncated.
pub const MAX_SUMMARY_CHARS: usize = 1_000;

/// Content of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompressedObservation {
    /// Title: what was done, 5 to 10 words, imperative mood, no period.
    pub title: String,
    /// What happened and why, in 1 to 3 sentences.
    pub summary: String,
    /// Further details worth remembering: names, numbers, error texts.
    pub detail: Option<String>,
    /// Changed files, without files that were only read.
    pub files_touched: Vec<String>,
    /// Changed functions, if known.
    pub functions_changed: Vec<FunctionChange>,
}

/// A changed function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FunctionChange {
    /// Path of the file that contains the function.
    pub file: String,
    /// Name of the function as in the source, for example `parse_header`.
    pub name: String,
    /// What happened to the function: `new`, `modified` or `deleted`.
    pub action: FunctionAction,
}

/// Kind of change to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FunctionAction {
    /// The function was added.
    New,
    /// The function was modified.
    Modified,
    /// The function was deleted.
    Deleted,
}
