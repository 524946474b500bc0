//! How the server answers.

use std::time::Duration;

/// How the server answers a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Behaviour {
    /// An observation or a summary, whose title or summary names the first `item-<n>` in the request.
    #[default]
    Good,
    /// The same, later.
    Slow(Duration),
    /// The same, after a time that nobody knows before and that is at most this.
    SlowUpTo(Duration),
    /// This status to a request that has this text, the same to all others.
    StatusOn(u16, String),
    /// The same, between fences and polite words.
    Fenced,
    /// 429, with this as `Retry-After`.
    RateLimited {
        /// Seconds or a date; see [`Behaviour::DATE`].
        retry_after: Option<String>,
    },
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 500.
    ServerError,
    /// 529, as Anthropic says that it is overloaded.
    Overloaded,
    /// 400 for a reason that lies in the content.
    BadRequest,
    /// 400 when the request asks for structured output in any form, else good.
    RefuseStructuredOutput,
    /// 400 when the request asks for a JSON Schema, else good.
    RefuseJsonSchema,
    /// 400 when the request has `max_tokens`, as newer models of OpenAI do, else good.
    RefuseMaxTokens,
    /// 400 that says the account has no credit left, as Anthropic does.
    OutOfCredit,
    /// Any other status, with an error object.
    Status(u16),
    /// 302 to this address.
    Redirect(String),
    /// 200 and a page of HTML.
    Garbage,
    /// 200 and this body.
    Body(String),
    /// A proper answer with these words of the model.
    Says(String),
    /// An observation without its title.
    MissingTitle,
    /// An observation whose fields have wrong types.
    WrongTypes,
    /// Half an observation, with nothing that says so.
    TruncatedJson,
    /// Half an observation, with the reason that it was cut off by `max_tokens`.
    MaxTokens,
    /// The model declines.
    Refusal,
    /// No answer, until the server is dropped.
    Hang,
    /// The connection is closed in place of an answer.
    CloseConnection,
}

impl Behaviour {
    /// The `Date` of every answer: a `Retry-After` that is a date is seen from here.
    pub const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    /// 429 with `Retry-After` in seconds.
    #[must_use]
    pub fn rate_limited(seconds: u64) -> Self {
        Self::RateLimited { retry_after: Some(seconds.to_string()) }
    }
}
