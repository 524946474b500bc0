//! Steps common to all compressors with a model: write the prompt, call the model, parse the answer strictly.
//!
//! Owns the token limits of answers and the random tags. Each compressor owns its request format.

use baton_core::observation::{SessionMaterial, SessionSummary};
use baton_observation::ToolUse;
use serde_json::Value;

use crate::answer::{observation_schema, read_observation, read_summary, summary_schema};
use crate::compressor::{CompressError, Compression, Compressor, NO_OBSERVATIONS, Summarization, TokenUsage};
use crate::prompt::{Delimiter, Prompt, compress_prompt, summarize_prompt};

const OBSERVATION_TOKENS: u32 = 1_024;
const SUMMARY_TOKENS: u32 = 512;

/// Input of one model call.
pub(crate) struct Question<'a> {
    /// The whole prompt; calls have no history.
    pub(crate) prompt: &'a str,
    /// Maximum number of tokens in the answer.
    pub(crate) max_tokens: u32,
    pub(crate) schema_name: &'static str,
    /// JSON Schema of the answer.
    pub(crate) schema: Value,
}

pub(crate) struct ModelAnswer {
    pub(crate) text: String,
    pub(crate) usage: TokenUsage,
}

/// An endpoint with a model.
pub(crate) trait Model: Send + Sync {
    /// Name of the compressor.
    const NAME: &'static str;

    fn model(&self) -> &str;

    /// Makes one call.
    fn ask(&self, question: &Question<'_>) -> Result<ModelAnswer, CompressError>;
}

impl<M: Model> Compressor for M {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn model(&self) -> Option<&str> {
        Some(Model::model(self))
    }

    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError> {
        let Prompt { text, version } = compress_prompt(tool_use, delimiter()?);
        let answer = self.ask(&Question {
            prompt: &text,
            max_tokens: OBSERVATION_TOKENS,
            schema_name: "observation",
            schema: observation_schema(),
        })?;
        let observation =
            read_observation(&answer.text).map_err(|error| unusable(error.to_string(), answer.usage))?;
        Ok(Compression { observation, usage: answer.usage, prompt_version: version })
    }

    /// Does not call the model if there is nothing to summarize.
    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError> {
        let Some(Prompt { text, version }) = summarize_prompt(material, delimiter()?) else {
            let summary = SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
            return Ok(Summarization { summary, usage: TokenUsage::default(), prompt_version: "none" });
        };
        let answer = self.ask(&Question {
            prompt: &text,
            max_tokens: SUMMARY_TOKENS,
            schema_name: "session_summary",
            schema: summary_schema(),
        })?;
        let summary =
            read_summary(&answer.text).map_err(|error| unusable(error.to_string(), answer.usage))?;
        Ok(Summarization { summary, usage: answer.usage, prompt_version: version })
    }
}

pub(crate) fn unusable(message: impl Into<String>, usage: TokenUsage) -> CompressError {
    CompressError::Unusable { message: message.into(), usage }
}

/// Creates random tags that the data between them cannot contain.
fn delimiter() -> Result<Delimiter, CompressError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| CompressError::Outage {
        message: format!("no random bits: {error}"),
        retry_after: None,
        needs_attention: false,
        may_be_caused_by_item: false,
    })?;
    Ok(Delimiter::new(u64::from_le_bytes(random)))
}
