//! What a session came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::FunctionChange;
use crate::secrets;

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

impl SessionSummary {
    /// Takes secrets out of everything that it says: a model may put together again what was taken apart.
    #[must_use]
    pub fn without_secrets(self) -> Self {
        let clean = |text: String| secrets::redact(&text).into_owned();
        Self {
            summary: clean(self.summary),
            key_files: self.key_files.into_iter().map(clean).collect(),
            key_decisions: self.key_decisions.into_iter().map(clean).collect(),
        }
    }
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
