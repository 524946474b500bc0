//! The meaning of error answers of an endpoint.
//!
//! Messages of the endpoint are repeated only in part, because some of them contain the request or part of the key.

use baton_core::is_any;
use serde_json::Value;

use crate::compressor::{CompressError, TokenUsage};
use crate::endpoint::HttpAnswer;

/// Maximum number of characters of an endpoint's message that are repeated.
const MAX_SHOWN_CHARS: usize = 200;

/// A common substring of this length counts as a repetition of the request.
const MIN_ECHO_CHARS: usize = 24;

/// Error kinds that concern the account or the configuration, for any status.
const ACCOUNT_KINDS: &str = "authentication_error|permission_error|billing_error|billing_not_active|\
    insufficient_quota|invalid_api_key|model_not_found|not_found_error|account_deactivated";

/// A parsed error answer.
pub(crate) struct ErrorResponse {
    status: u16,
    /// Machine-readable kind, for example `rate_limit_error`.
    kind: Option<String>,
    /// Message of the endpoint.
    message: String,
}

impl ErrorResponse {
    /// Parses the body of an error answer, in either wire format or a variant of it.
    pub(crate) fn read(answered: &HttpAnswer) -> Self {
        let body: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
        let error = body.get("error").unwrap_or(&body);
        let kind =
            ["code", "type"].iter().filter_map(|name| error.get(name)?.as_str()).find(|kind| is_word(kind));
        let message = match error {
            Value::String(message) => message.as_str(),
            _ => ["message", "detail"].iter().find_map(|name| error.get(name)?.as_str()).unwrap_or_default(),
        };
        Self { status: answered.status, kind: kind.map(str::to_owned), message: message.to_owned() }
    }

    /// Returns the error status inside a 200 answer, which brokers send if the endpoint behind them failed.
    pub(crate) fn hidden_status(body: &[u8]) -> Option<u16> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let status = body.get("error")?.get("code")?.as_u64()?;
        u16::try_from(status).ok().filter(|status| (400..600).contains(status))
    }

    /// Returns true if the format of the request, rather than its content, may have been rejected.
    pub(crate) fn may_reject_format(&self) -> bool {
        matches!(self.status, 400 | 422) && !self.is_about_the_account()
    }

    /// Returns true if the message contains one of these texts.
    pub(crate) fn mentions(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.message.contains(text))
    }

    /// Converts to an error. `prompt` is the request, which the message must not repeat.
    pub(crate) fn into_error(self, place: &str, answered: &HttpAnswer, prompt: &str) -> CompressError {
        let status = self.status;
        let kind = self.kind.as_deref().map_or_else(String::new, |kind| format!(" ({kind})"));
        let outage = |why: &str, needs_attention: bool| CompressError::Outage {
            message: format!("{place} answered {status}{kind}{why}"),
            retry_after: answered.retry_after,
            needs_attention,
            // An overload, or an error with a retry delay, affects all items.
            may_be_caused_by_item: matches!(status, 408 | 500..=528 | 530..=599)
                && answered.retry_after.is_none(),
        };
        match status {
            401 => outage(": the key is missing or invalid", true),
            403 => outage(": the key has no permission", true),
            404 => outage(": the address or the model does not exist", true),
            402 => outage(": the account has no credit", true),
            300..=399 => outage(": redirects are not followed, the base URL must be the final one", true),
            _ if self.is_about_the_account() => outage(": the account or the model needs attention", true),
            408 | 429 | 500..=599 => outage("", false),
            400..=499 => {
                let message = self.shown(prompt).map_or_else(String::new, |message| format!(": {message}"));
                let message = format!("{place} answered {status}{kind}{message}");
                CompressError::Unusable { message, usage: TokenUsage::default() }
            }
            _ => {
                let message = format!("{place} answered with the unexpected status {status}");
                CompressError::Unusable { message, usage: TokenUsage::default() }
            }
        }
    }

    /// Returns true if every item would be rejected until the account or configuration is changed. An account without
    /// credit gets a plain 400.
    fn is_about_the_account(&self) -> bool {
        let is_client_error = (400..500).contains(&self.status);
        let kind = self.kind.as_deref().is_some_and(|kind| is_any(kind, ACCOUNT_KINDS));
        is_client_error && (kind || self.mentions(&["credit balance is too low"]))
    }

    /// Returns the message, unless it repeats the request.
    fn shown(&self, prompt: &str) -> Option<String> {
        let shown: String = self.message.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect();
        (!shown.is_empty() && !repeats(&shown, prompt)).then_some(shown)
    }
}

fn is_word(kind: &str) -> bool {
    !kind.is_empty() && kind.len() <= 64 && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns true if a text contains a long enough substring of another.
fn repeats(text: &str, other: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    characters.windows(MIN_ECHO_CHARS).any(|window| other.contains(&window.iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> CompressError {
        let answered = HttpAnswer { status, retry_after: None, body: body.as_bytes().to_vec() };
        ErrorResponse::read(&answered).into_error(
            "test endpoint x",
            &answered,
            "the password of the user is hunter2, keep it",
        )
    }

    #[test]
    fn message_is_repeated_unless_it_echoes_the_request() {
        let message = r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
        let expected = "test endpoint x answered 400 (invalid_request_error): prompt is too long: 9 > 8";
        assert_eq!(error(400, message).to_string(), expected);
        let echo = r#"{"error":{"message":"bad input 'the password of the user is hunter2'"}}"#;
        assert_eq!(error(400, echo).to_string(), "test endpoint x answered 400");
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(300));
        assert_eq!(error(422, &long).to_string().chars().filter(|c| *c == 'é').count(), MAX_SHOWN_CHARS);
    }

    #[test]
    fn account_errors_are_outages_that_need_attention() {
        let credit = r#"{"type":"error","error":{"type":"invalid_request_error",
            "message":"Your credit balance is too low to access the Anthropic API."}}"#;
        let quota = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m"}}"#;
        for (status, body) in
            [(400, credit), (429, quota), (402, "{}"), (400, r#"{"error":{"code":"model_not_found"}}"#)]
        {
            assert!(
                matches!(error(status, body), CompressError::Outage { needs_attention: true, .. }),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn error_status_inside_a_200_answer_is_found() {
        let hidden = |body: &str| ErrorResponse::hidden_status(body.as_bytes());
        assert_eq!(hidden(r#"{"error":{"code":502,"message":"m"}}"#), Some(502));
        for body in [
            r#"{"choices":[]}"#,
            r#"{"error":null}"#,
            r#"{"error":{"code":"x"}}"#,
            r#"{"error":{"code":200}}"#,
            "<",
        ] {
            assert_eq!(hidden(body), None, "{body}");
        }
    }

    #[test]
    fn unexpected_error_bodies_are_handled() {
        for body in
            ["", "<html>", "[]", "null", r#"{"error":"model is loading"}"#, r#"{"error":{"code":400}}"#]
        {
            assert!(matches!(error(400, body), CompressError::Unusable { .. }), "{body}");
        }
        assert!(error(400, r#"{"error":"model is loading"}"#).to_string().ends_with(": model is loading"));
    }
}
