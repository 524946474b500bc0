//! Compressors: they turn what a tool said into an observation, and observations into the summary of a session.
//!
//! One trait, three kinds: the Anthropic Messages API, any endpoint that speaks OpenAI's chat completions, and one that
//! needs no model at all. Each call is stateless and blocks; the worker decides how many run at a time.

mod anthropic;
mod api_key;
mod asking;
mod compressor;
mod endpoint;
mod offline;
mod openai;
mod refusal;
mod retry_after;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use api_key::ApiKey;
pub use compressor::{CompressError, Compression, Compressor, Summarization, TokenUsage};
pub use endpoint::{DEFAULT_TIMEOUT, EndpointError};
pub use offline::Offline;
pub use openai::{OpenAi, OpenAiConfig};
