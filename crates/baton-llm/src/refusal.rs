//! What it means when an endpoint answers with anything but 200.
//!
//! The endpoint's own words are repeated sparingly: some echo the request, some a part of the key.

use serde_json::Value;

use crate::compressor::{CompressError, TokenUsage};
use crate::endpoint::Answered;

/// How much of what an endpoint says about a refusal is repeated.
const SHOWN_CHARS: usize = 200;

/// As much of the request in a row counts as repeating it.
const ECHO_CHARS: usize = 24;

/// Kinds of refusal that concern the account or the configuration, whatever their status.
const ACCOUNT_KINDS: [&str; 9] = [
    "authentication_error",
    "permission_error",
    "billing_error",
    "billing_not_active",
    "insufficient_quota",
    "invalid_api_key",
    "model_not_found",
    "not_found_error",
    "account_deactivated",
];

/// A refusal, as far as it can be read.
pub(crate) struct Refusal {
    status: u16,
    /// The machine-readable kind, like `rate_limit_error`.
    kind: Option<String>,
    /// The explanation.
    said: String,
}

impl Refusal {
    /// Reads the body of a refusal; both wire formats, and what their imitators make of them.
    pub(crate) fn read(answered: &Answered) -> Self {
        let body: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
        let error = body.get("error").unwrap_or(&body);
        let kind =
            ["code", "type"].iter().filter_map(|name| error.get(name)?.as_str()).find(|kind| is_word(kind));
        let said = match error {
            Value::String(said) => said.as_str(),
            _ => ["message", "detail"].iter().find_map(|name| error.get(name)?.as_str()).unwrap_or_default(),
        };
        Self { status: answered.status, kind: kind.map(str::to_owned), said: said.to_owned() }
    }

    /// The status of a refusal that came with 200 around it, as brokers send when the endpoint behind them failed.
    pub(crate) fn hidden_status(body: &[u8]) -> Option<u16> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let status = body.get("error")?.get("code")?.as_u64()?;
        u16::try_from(status).ok().filter(|status| (400..600).contains(status))
    }

    /// Whether the endpoint may have refused the form of the request rather than its content.
    pub(crate) fn is_about_form(&self) -> bool {
        matches!(self.status, 400 | 422) && !self.is_about_the_account()
    }

    /// Whether the explanation names one of these.
    pub(crate) fn names(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.said.contains(word))
    }

    /// Makes an error of it. `prompt` is what was sent, none of which may be repeated.
    pub(crate) fn into_error(self, place: &str, answered: &Answered, prompt: &str) -> CompressError {
        let status = self.status;
        let kind = self.kind.as_deref().map_or_else(String::new, |kind| format!(" ({kind})"));
        let outage = |why: &str, needs_attention: bool| CompressError::Outage {
            message: format!("{place} answered {status}{kind}{why}"),
            retry_after: answered.retry_after,
            needs_attention,
            // Overloaded, and whoever says when to come back, is so for everybody.
            may_be_the_item: matches!(status, 408 | 500..=528 | 530..=599) && answered.retry_after.is_none(),
        };
        match status {
            401 => outage(": the key is missing or refused", true),
            403 => outage(": the key may not do this", true),
            404 => outage(": it knows no such address or model", true),
            402 => outage(": the account cannot pay for it", true),
            300..=399 => outage(": redirects are not followed, the base URL must be the final one", true),
            _ if self.is_about_the_account() => outage(": the account or the model needs attention", true),
            408 | 429 | 500..=599 => outage("", false),
            400..=499 => {
                let said = self.shown(prompt).map_or_else(String::new, |said| format!(": {said}"));
                let message = format!("{place} answered {status}{kind}{said}");
                CompressError::Unusable { message, usage: TokenUsage::default() }
            }
            _ => {
                let message = format!("{place} answered {status}, which means nothing here");
                CompressError::Unusable { message, usage: TokenUsage::default() }
            }
        }
    }

    /// Whether every other item would be refused alike until somebody acts: an account without credit is told so with
    /// a plain 400.
    fn is_about_the_account(&self) -> bool {
        let is_client_error = (400..500).contains(&self.status);
        let kind = self.kind.as_deref().is_some_and(|kind| ACCOUNT_KINDS.contains(&kind));
        is_client_error && (kind || self.names(&["credit balance is too low"]))
    }

    /// The explanation, unless it repeats what was sent.
    fn shown(&self, prompt: &str) -> Option<String> {
        let shown: String = self.said.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
        (!shown.is_empty() && !repeats(&shown, prompt)).then_some(shown)
    }
}

fn is_word(kind: &str) -> bool {
    !kind.is_empty() && kind.len() <= 64 && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a text has a stretch of another in it.
fn repeats(text: &str, other: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    characters.windows(ECHO_CHARS).any(|window| other.contains(&window.iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> CompressError {
        let answered = Answered { status, retry_after: None, body: body.as_bytes().to_vec() };
        Refusal::read(&answered).into_error(
            "test endpoint x",
            &answered,
            "the password of the user is hunter2, keep it",
        )
    }

    #[test]
    fn an_explanation_is_repeated_unless_it_echoes_the_request() {
        let said = r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
        let expected = "test endpoint x answered 400 (invalid_request_error): prompt is too long: 9 > 8";
        assert_eq!(error(400, said).to_string(), expected);
        let echo = r#"{"error":{"message":"bad input 'the password of the user is hunter2'"}}"#;
        assert_eq!(error(400, echo).to_string(), "test endpoint x answered 400");
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(300));
        assert_eq!(error(422, &long).to_string().chars().filter(|c| *c == 'é').count(), SHOWN_CHARS);
    }

    #[test]
    fn an_account_that_cannot_pay_is_no_fault_of_the_item() {
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
    fn a_refusal_within_a_good_answer_is_found() {
        let hidden = |body: &str| Refusal::hidden_status(body.as_bytes());
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
    fn bodies_that_are_no_error_objects_are_endured() {
        for body in
            ["", "<html>", "[]", "null", r#"{"error":"model is loading"}"#, r#"{"error":{"code":400}}"#]
        {
            assert!(matches!(error(400, body), CompressError::Unusable { .. }), "{body}");
        }
        assert!(error(400, r#"{"error":"model is loading"}"#).to_string().ends_with(": model is loading"));
    }
}
