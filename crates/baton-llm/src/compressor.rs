//! What every compressor does, and how it can fail.

use std::time::Duration;

use baton_core::observation::{CompressedObservation, SessionMaterial, SessionSummary, ToolUse};

/// Turns raw material into few words. A call blocks, keeps nothing between calls and may be made from many threads.
pub trait Compressor: Send + Sync {
    /// `anthropic`, `openai` or `offline`.
    fn name(&self) -> &'static str;

    /// The model behind it, if there is one.
    fn model(&self) -> Option<&str>;

    /// Makes an observation of one use of a tool.
    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError>;

    /// Makes the summary of a session.
    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError>;
}

/// An observation and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    /// The observation.
    pub observation: CompressedObservation,
    /// What the model counted; nothing when there was none.
    pub usage: TokenUsage,
    /// Which wording was asked with (or which rules, without a model): `compress-v1`, `offline-v1`.
    pub prompt_version: &'static str,
}

/// A summary and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summarization {
    /// The summary.
    pub summary: SessionSummary,
    /// What the model counted; nothing when there was none.
    pub usage: TokenUsage,
    /// Which wording was asked with, or which rules: `summarize-v1`, `offline-v1`.
    pub prompt_version: &'static str,
}

/// Tokens, as the endpoint counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// In the prompt.
    pub tokens_in: u64,
    /// In the answer.
    pub tokens_out: u64,
}

/// Why nothing came of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressError {
    /// The endpoint cannot be used now (no connection, too slow, 408, 429, 5xx, 401, 403, 404): nothing is wrong with the
    /// item, which waits.
    #[error("{message}")]
    Outage {
        /// What happened, without keys or payload.
        message: String,
        /// When the endpoint asked to be tried again.
        retry_after: Option<Duration>,
        /// Whether it stays so until somebody changes the configuration (401, 403, 404).
        needs_attention: bool,
        /// Whether the item itself may have led to it, when others fare better: an answer that breaks off or is too late,
        /// and most of 5xx. No item leads to a rate limit or a refused connection.
        may_be_the_item: bool,
    },
    /// The endpoint refused this item (another 4xx), or what it answered is not an observation: trying again would not
    /// help.
    #[error("{message}")]
    Unusable {
        /// What happened; of an answer at most its first 200 characters.
        message: String,
        /// What the endpoint counted all the same.
        usage: TokenUsage,
    },
}
