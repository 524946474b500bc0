//! What every compressor with a model does alike: write the prompt, ask, read the answer strictly.
//!
//! Owns the limits of answers in tokens and the random tags. How an endpoint is asked is the compressor's own.

use baton_core::observation::{
    COMPRESS_PROMPT_VERSION, Delimiter, SUMMARIZE_PROMPT_VERSION, SessionMaterial, SessionSummary, ToolUse,
    compress_prompt, observation_schema, read_observation, read_summary, summarize_prompt, summary_schema,
};
use serde_json::Value;

use crate::compressor::{CompressError, Compression, Summarization, TokenUsage};

const OBSERVATION_TOKENS: u32 = 1_024;
const SUMMARY_TOKENS: u32 = 512;

/// What is said of a session in which nothing was observed.
const NOTHING_OBSERVED: &str = "No observations captured.";

/// What a model is asked.
pub(crate) struct Question<'a> {
    /// The whole prompt: every call stands alone.
    pub(crate) prompt: &'a str,
    /// How many tokens the answer may have.
    pub(crate) max_tokens: u32,
    /// What the schema is called.
    pub(crate) schema_name: &'static str,
    /// What the answer must look like.
    pub(crate) schema: Value,
}

/// What a model said.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) usage: TokenUsage,
}

/// An endpoint with a model behind it.
pub(crate) trait Model {
    /// Asks once.
    fn ask(&self, question: &Question<'_>) -> Result<Said, CompressError>;
}

/// Makes an observation of one use of a tool.
pub(crate) fn compress(model: &impl Model, tool_use: &ToolUse) -> Result<Compression, CompressError> {
    let prompt = compress_prompt(tool_use, delimiter()?);
    let said = model.ask(&Question {
        prompt: &prompt,
        max_tokens: OBSERVATION_TOKENS,
        schema_name: "observation",
        schema: observation_schema(),
    })?;
    let observation =
        read_observation(&said.text).map_err(|error| unusable(error.to_string(), said.usage))?;
    Ok(Compression { observation, usage: said.usage, prompt_version: COMPRESS_PROMPT_VERSION })
}

/// Makes the summary of a session. With nothing new to tell, the model is not asked.
pub(crate) fn summarize(
    model: &impl Model,
    material: &SessionMaterial,
) -> Result<Summarization, CompressError> {
    let answer = |summary, usage| Summarization { summary, usage, prompt_version: SUMMARIZE_PROMPT_VERSION };
    let Some(prompt) = summarize_prompt(material, delimiter()?) else {
        let nothing = || SessionSummary { summary: NOTHING_OBSERVED.to_owned(), ..SessionSummary::default() };
        return Ok(answer(material.previous.clone().unwrap_or_else(nothing), TokenUsage::default()));
    };
    let said = model.ask(&Question {
        prompt: &prompt,
        max_tokens: SUMMARY_TOKENS,
        schema_name: "session_summary",
        schema: summary_schema(),
    })?;
    let summary = read_summary(&said.text).map_err(|error| unusable(error.to_string(), said.usage))?;
    Ok(answer(summary, said.usage))
}

pub(crate) fn unusable(message: impl Into<String>, usage: TokenUsage) -> CompressError {
    CompressError::Unusable { message: message.into(), usage }
}

/// Draws what makes the tags around data unlike anything in it.
fn delimiter() -> Result<Delimiter, CompressError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| CompressError::Outage {
        message: format!("no random bits: {error}"),
        retry_after: None,
        needs_attention: false,
        may_be_the_item: false,
    })?;
    Ok(Delimiter::new(u64::from_le_bytes(random)))
}
