//! Behaviours of the server.

use std::time::Duration;

use super::agent::AgentScript;

/// How the server answers a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// A valid observation or summary, whose title or summary names the first `item-<n>` in the request.
    #[default]
    Good,
    /// A valid answer after a delay.
    Slow(Duration),
    /// A valid answer after a random delay of at most this time.
    SlowUpTo(Duration),
    /// This status for requests that contain this text, a valid answer for others.
    StatusOn(u16, String),
    /// A valid answer inside a code fence, with surrounding text.
    Fenced,
    /// Status 429 with this `Retry-After`.
    RateLimited {
        /// Seconds or a date; see [`Behaviour::DATE`].
        retry_after: Option<String>,
    },
    /// Status 401, with the key of the request in the message.
    Unauthorized,
    /// Status 403.
    Forbidden,
    /// Status 500.
    ServerError,
    /// Status 529, Anthropic's overload error.
    Overloaded,
    /// Status 400 because of the content.
    BadRequest,
    /// Status 400 if the request asks for structured output in any form, otherwise a valid answer.
    RefuseStructuredOutput,
    /// Status 400 if the request asks for a JSON Schema, otherwise a valid answer.
    RefuseJsonSchema,
    /// Status 400 if the request has `max_tokens`, like newer models of OpenAI, otherwise a valid answer.
    RefuseMaxTokens,
    /// Status 400 with Anthropic's message that the account has no credit.
    OutOfCredit,
    /// Any other status, with an error object.
    Status(u16),
    /// Status 302 to this address.
    Redirect(String),
    /// Status 200 with an HTML page.
    Garbage,
    /// Status 200 with this body.
    Body(String),
    /// A valid envelope with this text as the model's answer.
    Says(String),
    /// An observation without a title.
    MissingTitle,
    /// An observation whose fields have wrong types.
    WrongTypes,
    /// Half an observation with the stop reason of a complete answer.
    TruncatedJson,
    /// Half an observation with the stop reason `max_tokens`.
    MaxTokens,
    /// A refusal of the model.
    Refusal,
    /// The model of a coding agent, which calls tools.
    Agent(AgentScript),
    /// No answer until the server is dropped.
    Hang,
    /// The connection is closed instead of an answer.
    CloseConnection,
}

impl Behaviour {
    /// `Date` of every answer; a `Retry-After` date is relative to it.
    pub const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    /// Returns status 429 with `Retry-After` in seconds.
    #[must_use]
    pub fn rate_limited(seconds: u64) -> Self {
        Self::RateLimited { retry_after: Some(seconds.to_string()) }
    }
}
