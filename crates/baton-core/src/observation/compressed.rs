//! What a compressor makes of one use of a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secrets;

/// How many characters a title may have; a longer one is cut.
pub const MAX_TITLE_CHARS: usize = 200;
/// How many characters a summary may have; a longer one is cut.
pub const MAX_SUMMARY_CHARS: usize = 1_000;

/// What one use of a tool taught, in few words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompressedObservation {
    /// What was done, 5 to 10 words, imperative mood, no period.
    pub title: String,
    /// What happened and why, 1 to 3 sentences.
    pub summary: String,
    /// What is worth remembering beyond that: names, numbers, error texts.
    pub detail: Option<String>,
    /// The files that were changed, not those that were only read.
    pub files_touched: Vec<String>,
    /// The functions that were changed, where that can be told.
    pub functions_changed: Vec<FunctionChange>,
}

impl CompressedObservation {
    /// Takes secrets out of everything that it says: a model may put together again what was taken apart.
    #[must_use]
    pub fn without_secrets(self) -> Self {
        let clean = |text: String| secrets::redact(&text).into_owned();
        Self {
            title: clean(self.title),
            summary: clean(self.summary),
            detail: self.detail.map(clean),
            files_touched: self.files_touched.into_iter().map(clean).collect(),
            functions_changed: self
                .functions_changed
                .into_iter()
                .map(|FunctionChange { file, name, action }| FunctionChange {
                    file: clean(file),
                    name: clean(name),
                    action,
                })
                .collect(),
        }
    }
}

/// A function that was changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FunctionChange {
    /// The file it is in.
    pub file: String,
    /// Its name.
    pub name: String,
    /// What was done to it.
    pub action: FunctionAction,
}

/// What was done to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FunctionAction {
    /// It was not there before.
    New,
    /// It was there before and is different now.
    Modified,
    /// It is gone.
    Deleted,
}
