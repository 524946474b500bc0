//! Vectors of texts from an OpenAI-compatible endpoint: OpenAI, Ollama, vLLM, LM Studio and many others.

use std::sync::OnceLock;
use std::time::Duration;

use baton_core::recall::{Embedding, Vector};
use serde::Deserialize;
use serde_json::json;

use crate::compressor::{CompressError, TokenUsage};
use crate::endpoint::{Endpoint, EndpointSettings};
use crate::error_response::ErrorResponse;
use crate::model_call::unusable;
use crate::openai::OpenAiConfig;

const NAME: &str = "embedding";
/// Maximum size of an answer. A number has up to 20 characters, so this is enough for 16 texts and 16,384 dimensions.
const MAX_BODY_BYTES: u64 = 8 * 1024 * 1024;
/// Text that every endpoint accepts. If it is rejected too, the endpoint is at fault and not a text.
const PROBE: &str = "test";

/// Requests vectors of texts. Connects on first use, because most processes never use it.
pub struct Embedder {
    config: OpenAiConfig,
    query_timeout: Duration,
    endpoint: OnceLock<Result<Endpoint, String>>,
}

/// Vectors in the order of the texts, and the token usage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Embedded {
    pub vectors: Vec<Vector>,
    /// Token usage that the endpoint reported.
    pub usage: TokenUsage,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
struct Entry {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize, Default)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
}

impl Embedder {
    /// Uses this endpoint. `query_timeout` is the timeout for the query of a search, which waits for the answer.
    pub const fn new(config: OpenAiConfig, query_timeout: Duration) -> Self {
        Self { config, query_timeout, endpoint: OnceLock::new() }
    }

    pub fn model(&self) -> &str {
        &self.config.model
    }

    /// Requests the vector of a query.
    ///
    /// # Errors
    ///
    /// Fails if there is no valid answer within the timeout for queries.
    pub fn embed_query(&self, text: &str) -> Result<Embedding, CompressError> {
        let vector = self.request(&[text], self.query_timeout)?.vectors.pop().unwrap_or_default();
        Ok(Embedding { model: self.config.model.clone(), vector })
    }

    /// Requests the vectors of texts. A text that the endpoint rejects while it accepts others gets a vector without
    /// dimensions.
    ///
    /// # Errors
    ///
    /// Fails if the endpoint is not usable at the moment, or gives no valid answers.
    pub fn embed(&self, texts: &[&str]) -> Result<Embedded, CompressError> {
        match self.request(texts, self.config.timeout) {
            Err(error) if may_be_caused_by_text(&error) => {}
            answer => return answer,
        }
        self.request(&[PROBE], self.config.timeout)?;
        let mut made = Embedded::default();
        for text in texts {
            match self.request(&[text], self.config.timeout) {
                Ok(one) => {
                    made.vectors.extend(one.vectors);
                    made.usage.tokens_in += one.usage.tokens_in;
                }
                Err(error) if may_be_caused_by_text(&error) => made.vectors.push(Vector::default()),
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    fn request(&self, texts: &[&str], timeout: Duration) -> Result<Embedded, CompressError> {
        let endpoint = self.endpoint()?;
        let request = json!({ "model": self.config.model, "input": texts });
        let mut answered = endpoint.post_within(&request, timeout)?;
        if let (200, Some(hidden)) = (answered.status, ErrorResponse::hidden_status(&answered.body)) {
            answered.status = hidden;
        }
        if answered.status != 200 {
            let error = ErrorResponse::read(&answered);
            return Err(error.into_error(endpoint.place(), &answered, &texts.join("\n")));
        }
        read(&answered.body, texts.len())
            .map_err(|problem| unusable(format!("{}: {problem}", endpoint.place()), TokenUsage::default()))
    }

    fn endpoint(&self) -> Result<&Endpoint, CompressError> {
        let connect = || {
            let url = self.config.url("embeddings");
            let settings =
                EndpointSettings { max_body_bytes: MAX_BODY_BYTES, ..self.config.endpoint(NAME, &url) };
            Endpoint::new(settings).map_err(|error| error.to_string())
        };
        let made = self.endpoint.get_or_init(connect);
        made.as_ref().map_err(|message| CompressError::Outage {
            message: message.clone(),
            retry_after: None,
            needs_attention: true,
            may_be_caused_by_item: false,
        })
    }
}

/// Returns true if one of the texts, and not the endpoint, may be the reason for an error.
const fn may_be_caused_by_text(error: &CompressError) -> bool {
    match error {
        CompressError::Unusable { .. } => true,
        CompressError::Outage { may_be_caused_by_item, .. } => *may_be_caused_by_item,
    }
}

/// Reads the vectors of an answer in the order of the texts.
fn read(body: &[u8], count: usize) -> Result<Embedded, String> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| "the answer is not a list of embeddings".to_owned())?;
    let given = answer.data.len();
    let miscounted = || format!("the answer has {given} embeddings for {count} texts");
    if given != count {
        return Err(miscounted());
    }
    let mut vectors: Vec<Option<Vector>> = vec![None; count];
    for (place, entry) in answer.data.into_iter().enumerate() {
        let vector = Vector::from_numbers(&entry.embedding).ok_or("an embedding contains invalid numbers")?;
        if let Some(slot) = vectors.get_mut(entry.index.unwrap_or(place)) {
            *slot = Some(vector);
        }
    }
    let vectors: Option<Vec<Vector>> = vectors.into_iter().collect();
    let vectors = vectors.ok_or_else(miscounted)?;
    if vectors.windows(2).any(|pair| pair[0].dimension() != pair[1].dimension()) {
        return Err("the embeddings have different dimensions".to_owned());
    }
    let usage = TokenUsage { tokens_in: answer.usage.prompt_tokens, tokens_out: 0 };
    Ok(Embedded { vectors, usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_in_the_order_of_the_texts() {
        let body = br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}],
            "usage":{"prompt_tokens":7}}"#;
        let made = read(body, 2).unwrap();
        let expected = [[1.0, 0.0], [0.0, 1.0]].map(|numbers| Vector::from_numbers(&numbers).unwrap());
        assert_eq!((made.vectors.as_slice(), made.usage.tokens_in), (expected.as_slice(), 7));
        let unnumbered = br#"{"data":[{"embedding":[1,0]},{"embedding":[0,1]}]}"#;
        assert_eq!(read(unnumbered, 2).unwrap().vectors, expected);
    }

    #[test]
    fn invalid_answers_are_refused() {
        for (body, problem) in [
            ("<html>", "not a list"),
            ("[]", "not a list"),
            (r#"{"data":[{"embedding":[1,null]},{"embedding":[1,2]}]}"#, "not a list"),
            (r#"{"data":[{"embedding":[NaN,1]},{"embedding":[1,2]}]}"#, "not a list"),
            (r#"{"data":[{"embedding":"AAAA"},{"embedding":[1,2]}]}"#, "not a list"),
            (r#"{"data":[{"embedding":[1e39,1]},{"embedding":[1,2]}]}"#, "not a list"),
            (r#"{"data":[{"embedding":[]},{"embedding":[]}]}"#, "invalid numbers"),
            (r#"{"data":[{"embedding":[1,2]}]}"#, "1 embeddings for 2 texts"),
            (
                r#"{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}"#,
                "3 embeddings for 2 texts",
            ),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#,
                "2 embeddings for 2 texts",
            ),
            (r#"{"data":[{"index":0,"embedding":[1]},{"index":9,"embedding":[2]}]}"#, "for 2 texts"),
            (r#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#, "different dimensions"),
        ] {
            let refused = read(body.as_bytes(), 2).unwrap_err();
            assert!(refused.contains(problem), "{body}: {refused}");
        }
    }
}
