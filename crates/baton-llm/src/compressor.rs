//! The compressor trait and its errors.

use std::time::Duration;

use baton_core::observation::{CompressedObservation, SessionMaterial, SessionSummary};
use baton_observation::ToolUse;

/// Summary of a session without observations.
pub(crate) const NO_OBSERVATIONS: &str = "No observations captured.";

/// Creates observations and summaries. Calls block, are stateless, and may be made from many threads.
pub trait Compressor: Send + Sync {
    /// Returns `anthropic`, `openai` or `offline`.
    fn name(&self) -> &'static str;

    /// Returns the model name, if the compressor uses a model.
    fn model(&self) -> Option<&str>;

    /// Creates an observation of one tool use.
    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError>;

    /// Creates the summary of a session.
    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError>;
}

/// An observation and its token usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    pub observation: CompressedObservation,
    /// Token usage; zero without a model.
    pub usage: TokenUsage,
    /// Version of the prompt, or of the rules if there is no model: `compress-v1`, `offline-v1`.
    pub prompt_version: &'static str,
}

/// A summary and its token usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summarization {
    pub summary: SessionSummary,
    /// Token usage; zero without a model.
    pub usage: TokenUsage,
    /// Version of the prompt, or of the rules if there is no model: `summarize-v1`, `offline-v1`.
    pub prompt_version: &'static str,
}

/// Token counts reported by the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Tokens in the prompt.
    pub tokens_in: u64,
    /// Tokens in the answer.
    pub tokens_out: u64,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompressError {
    /// The endpoint is not usable at the moment (no connection, timeout, 408, 429, 5xx, 401, 403, 404). The item is
    /// valid and can be retried later.
    #[error("{message}")]
    Outage {
        /// Error message, without keys or payload.
        message: String,
        /// Delay that the endpoint asked for.
        retry_after: Option<Duration>,
        /// Whether the error persists until the configuration or the account is changed (401, 403, 404).
        needs_attention: bool,
        /// Whether the item itself may be the cause if other items succeed: for an incomplete or late answer and most
        /// 5xx. Rate limits and refused connections are never caused by an item.
        may_be_caused_by_item: bool,
    },
    /// The endpoint rejected this item (another 4xx), or the answer is not a valid observation. A retry would not help.
    #[error("{message}")]
    Unusable {
        /// Error message, with at most the first 200 characters of an answer.
        message: String,
        /// Token usage that the endpoint counted nevertheless.
        usage: TokenUsage,
    },
}
