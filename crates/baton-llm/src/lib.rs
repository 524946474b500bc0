//! Compressors: they create observations from tool output, and session summaries from observations.
//!
//! One trait with three implementations: the Anthropic Messages API, OpenAI-compatible chat completions, and rules
//! without a model. Also vectors of texts for search. Each call is stateless and blocks; the worker decides how many run
//! at a time.

mod answer;
mod anthropic;
mod api_key;
mod compressor;
mod embedder;
mod endpoint;
mod error_response;
mod model_call;
mod offline;
mod openai;
mod price;
mod prompt;
mod retry_after;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use api_key::ApiKey;
pub use compressor::{CompressError, Compression, Compressor, Summarization, TokenUsage};
pub use embedder::{Embedded, Embedder};
pub use endpoint::{DEFAULT_TIMEOUT, EndpointError};
pub use offline::{Offline, OpenWork, completed_step};
pub use openai::{OpenAi, OpenAiConfig};
pub use price::Price;
