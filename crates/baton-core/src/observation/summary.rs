//! What a session came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::FunctionChange;

/// What a session came to, in few words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// What was accomplished, 2 to 4 sentences: outcomes, not process.
    pub summary: String,
    /// The most important files that were changed.
    pub key_files: Vec<String>,
    /// Significant technical decisions.
    pub key_decisions: Vec<String>,
}

/// What a summary is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionMaterial {
    /// The summary of what came before `digests`; none for the first.
    pub previous: Option<SessionSummary>,
    /// The session's prompts, oldest first: what its user asked for.
    pub prompts: Vec<String>,
    /// The session's observations since `previous`, oldest first.
    pub digests: Vec<Digest>,
}

/// An observation, as far as a summary needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The tool.
    pub tool_name: String,
    /// What was done.
    pub title: String,
    /// What happened and why.
    pub summary: String,
    /// The files that were changed.
    pub files_touched: Vec<String>,
    /// The functions that were changed.
    pub functions_changed: Vec<FunctionChange>,
}
