//! OpenAI-compatible chat completions: OpenAI, Ollama, vLLM, LM Studio and many others.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::header::AUTHORIZATION;

use crate::api_key::ApiKey;
use crate::compressor::{CompressError, TokenUsage};
use crate::endpoint::{DEFAULT_TIMEOUT, Endpoint, EndpointError, EndpointSettings, MAX_BODY_BYTES};
use crate::error_response::ErrorResponse;
use crate::model_call::{Model, ModelAnswer, Question, unusable};

/// Name of the token limit for newer models of OpenAI, which replaces `max_tokens`.
const COMPLETION_TOKENS: &str = "max_completion_tokens";

/// Address, key and model of an endpoint.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// Base URL, without a path such as `/chat/completions`. `/v1` is added if it has no path.
    pub base_url: String,
    /// API key; many local endpoints need none.
    pub api_key: Option<ApiKey>,
    pub model: String,
    /// Timeout of a call.
    pub timeout: Duration,
    /// PEM file of trusted certificates, instead of the public ones.
    pub ca_file: Option<PathBuf>,
}

impl OpenAiConfig {
    /// Uses this address and model without a key.
    pub fn new(base_url: &str, model: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            api_key: None,
            model: model.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            ca_file: None,
        }
    }

    /// Returns the URL of a path of the API.
    pub(crate) fn url(&self, path: &str) -> String {
        let base = self.base_url.trim().trim_end_matches('/');
        let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        format!("{base}{}/{path}", if has_path { "" } else { "/v1" })
    }

    /// Returns the settings of a client for a URL.
    pub(crate) fn endpoint<'a>(&'a self, name: &'static str, url: &'a str) -> EndpointSettings<'a> {
        EndpointSettings {
            compressor: name,
            url,
            key: self.api_key.as_ref().map(|key| (AUTHORIZATION, "Bearer ", key)),
            headers: Vec::new(),
            timeout: self.timeout,
            max_body_bytes: MAX_BODY_BYTES,
            ca_file: self.ca_file.as_deref(),
        }
    }
}

/// Compresses with a model behind chat completions: no system prompt, no tools, no streaming, one message per call.
pub struct OpenAi {
    endpoint: Endpoint,
    model: String,
    /// The strictest [`Format`] that the endpoint is not known to reject.
    format: AtomicU8,
    /// Whether the endpoint requires `max_completion_tokens`.
    wants_completion_tokens: AtomicBool,
}

/// How requests ask for JSON output, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Schema = 0,
    Object = 1,
    None = 2,
}

impl Format {
    const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Schema,
            1 => Self::Object,
            _ => Self::None,
        }
    }

    /// Returns the next less strict format.
    const fn looser(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Object),
            Self::Object => Some(Self::None),
            Self::None => None,
        }
    }
}

impl OpenAi {
    /// Checks the configuration without sending anything.
    ///
    /// # Errors
    ///
    /// Fails if the address, the key or the certificates are invalid.
    pub fn new(config: &OpenAiConfig) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::new(config.endpoint(Self::NAME, &config.url("chat/completions")))?;
        Ok(Self {
            endpoint,
            model: config.model.clone(),
            format: AtomicU8::new(Format::Schema as u8),
            wants_completion_tokens: AtomicBool::new(false),
        })
    }

    fn request(&self, question: &Question<'_>, format: Format, completion_tokens: bool) -> Value {
        let mut request = json!({
            "model": self.model,
            "messages": [{ "role": "user", "content": question.prompt }],
        });
        let limit = if completion_tokens { COMPLETION_TOKENS } else { "max_tokens" };
        request[limit] = json!(question.max_tokens);
        let schema = || json!({ "name": question.schema_name, "strict": true, "schema": question.schema });
        match format {
            Format::Schema => {
                request["response_format"] = json!({ "type": "json_schema", "json_schema": schema() });
            }
            Format::Object => request["response_format"] = json!({ "type": "json_object" }),
            Format::None => {}
        }
        request
    }

    fn read(&self, body: &[u8]) -> Result<ModelAnswer, CompressError> {
        let place = self.endpoint.place();
        let body: Value = serde_json::from_slice(body)
            .map_err(|_| unusable(format!("{place}: the answer is not JSON"), TokenUsage::default()))?;
        let tokens = |name| body["usage"][name].as_u64().unwrap_or_default();
        let usage =
            TokenUsage { tokens_in: tokens("prompt_tokens"), tokens_out: tokens("completion_tokens") };
        let choice = &body["choices"][0];
        let message = &choice["message"];
        match choice["finish_reason"].as_str() {
            Some("length") => {
                return Err(unusable(format!("{place}: the answer was cut off by max_tokens"), usage));
            }
            Some("content_filter") => {
                return Err(unusable(format!("{place}: a content filter withheld the answer"), usage));
            }
            _ if message["refusal"].is_string() => {
                return Err(unusable(format!("{place}: the model declined to answer"), usage));
            }
            _ => {}
        }
        match message["content"].as_str() {
            Some(text) if !text.trim().is_empty() => Ok(ModelAnswer { text: text.to_owned(), usage }),
            _ => Err(unusable(format!("{place}: the answer contains no text"), usage)),
        }
    }
}

impl Model for OpenAi {
    const NAME: &'static str = "openai";

    fn model(&self) -> &str {
        &self.model
    }

    fn ask(&self, question: &Question<'_>) -> Result<ModelAnswer, CompressError> {
        let mut format = Format::from_number(self.format.load(Ordering::Relaxed));
        let mut completion_tokens = self.wants_completion_tokens.load(Ordering::Relaxed);
        loop {
            let mut answered = self.endpoint.post(&self.request(question, format, completion_tokens))?;
            if let (200, Some(hidden)) = (answered.status, ErrorResponse::hidden_status(&answered.body)) {
                answered.status = hidden;
            }
            if answered.status == 200 {
                // The format is stored only after a success: if every format is rejected, the format was not the reason.
                self.format.fetch_max(format as u8, Ordering::Relaxed);
                self.wants_completion_tokens.fetch_or(completion_tokens, Ordering::Relaxed);
                return self.read(&answered.body);
            }
            let error = ErrorResponse::read(&answered);
            if error.may_reject_format() {
                if !completion_tokens && error.mentions(&[COMPLETION_TOKENS]) {
                    completion_tokens = true;
                    continue;
                }
                if let Some(looser) = format.looser() {
                    format = looser;
                    continue;
                }
            }
            return Err(error.into_error(self.endpoint.place(), &answered, question.prompt));
        }
    }
}
