//! The request log: calls, their actors and their results. It never contains request content.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::ActorKeyId;
use crate::id::SessionId;
use crate::name::CorrelationId;
use crate::time::Timestamp;
use crate::wire::wire_text;

/// A record of the request log. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedRequest {
    /// Id of the record. Later records have higher ids.
    pub id: i64,
    #[serde(flatten)]
    pub record: RequestRecord,
}

/// One call in the request log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Time at which the request arrived.
    pub timestamp: Timestamp,
    /// Correlation id of the request and its response.
    #[schemars(with = "String")]
    pub correlation_id: CorrelationId,
    /// Path of an HTTP request, or operation of any other call.
    pub endpoint: String,
    /// HTTP method, or `MCP`, `CLI`, `PAGE` (a page of the dashboard) or `INTERNAL`.
    pub method: String,
    /// Credential; `null` for a request without a valid one.
    #[schemars(with = "Option<String>")]
    pub actor_key_id: Option<ActorKeyId>,
    /// Session that the request named, started or resumed (`sess_…`).
    pub session_id: Option<SessionId>,
    /// Agent given in the request, otherwise the agent of the session.
    pub agent: Option<String>,
    /// Venture given in the request, otherwise the venture of the session.
    pub venture: Option<String>,
    /// Repository given in the request, otherwise the repository of the session.
    pub repo: Option<String>,
    /// Track given in the request, otherwise the track of the session.
    pub track: Option<i64>,
    /// Issue given in the request.
    pub issue_number: Option<i64>,
    /// HTTP status of the response. Calls over MCP or the command line have the status that the same response
    /// would have over HTTP. 499 means that the client closed the connection before the response.
    pub status_code: u16,
    /// Time from the request to its response, in milliseconds.
    pub duration_ms: i64,
    /// Error code and message of the response.
    pub error_message: Option<String>,
    /// Idempotency key that the client sent, or null.
    pub idempotency_key: Option<String>,
    /// True if the response was the stored response to an earlier request with the same idempotency key.
    pub idempotency_hit: bool,
    /// Number of requests that the record counts. It exceeds 1 for requests without a valid credential and
    /// for repeated requests to endpoints such as `/healthz`, which are combined for up to a minute.
    pub request_count: u32,
}

/// A filter by status code: one code (`404`), a class (`4xx`), or every failure (`error`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum StatusFilter {
    /// One status code.
    Code(u16),
    /// All codes with this first digit.
    Class(u16),
    /// All codes from 400.
    Failed,
}

impl StatusFilter {
    /// Returns the status codes that match.
    pub const fn codes(self) -> RangeInclusive<u16> {
        match self {
            Self::Code(code) => code..=code,
            Self::Class(digit) => digit * 100..=digit * 100 + 99,
            Self::Failed => 400..=599,
        }
    }
}

/// Reason why a text is not a status filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a status code like 404, a class like 4xx, or error")]
pub struct StatusFilterError;

impl FromStr for StatusFilter {
    type Err = StatusFilterError;

    fn from_str(text: &str) -> Result<Self, StatusFilterError> {
        let number = |digits: &str| digits.parse::<u16>().map_err(|_| StatusFilterError);
        let filter = match (text, text.strip_suffix("xx")) {
            ("error", _) => Self::Failed,
            (_, Some(digit)) => Self::Class(number(digit)?),
            (code, None) => Self::Code(number(code)?),
        };
        let is_valid = match filter {
            Self::Code(code) => (100..=599).contains(&code),
            Self::Class(digit) => (1..=5).contains(&digit),
            Self::Failed => true,
        };
        if is_valid { Ok(filter) } else { Err(StatusFilterError) }
    }
}

impl fmt::Display for StatusFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(digit) => write!(f, "{digit}xx"),
            Self::Failed => f.write_str("error"),
        }
    }
}

wire_text!(StatusFilter, StatusFilterError, { "type": "string", "pattern": "^([1-5][0-9]{2}|[1-5]xx|error)$" });

/// The earliest time of a list: a point in time, or a duration before now (`90s`, `15m`, `2h`, `7d`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Since {
    /// From this point in time.
    Time(Timestamp),
    /// From this long before now, in seconds.
    SecondsAgo(u32),
}

impl Since {
    /// Returns the point in time. Durations are counted back from `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => time,
            Self::SecondsAgo(seconds) => now.minus(Duration::from_secs(u64::from(seconds))),
        }
    }
}

/// Reason why a text is neither a timestamp nor a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a time like 2026-01-17T10:00:00Z or a duration like 15m, 2h or 7d")]
pub struct SinceError;

impl FromStr for Since {
    type Err = SinceError;

    fn from_str(text: &str) -> Result<Self, SinceError> {
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
        let seconds = units.into_iter().find_map(|(unit, seconds)| {
            let digits = text.strip_suffix(unit)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u32>().ok()?.checked_mul(seconds))?
        });
        seconds.map(Self::SecondsAgo).ok_or(SinceError)
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time}"),
            Self::SecondsAgo(seconds) => write!(f, "{seconds}s"),
        }
    }
}

wire_text!(Since, SinceError, { "type": "string" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_filters_are_codes_classes_or_every_failure() {
        let codes = |text: &str| text.parse::<StatusFilter>().map(StatusFilter::codes);
        assert_eq!(codes("404"), Ok(404..=404));
        assert_eq!(codes("4xx"), Ok(400..=499));
        assert_eq!(codes("error"), Ok(400..=599));
        for bad in ["", "99", "600", "6xx", "0xx", "xx", "4x", "404.0", "+404x", "ERROR"] {
            assert_eq!(codes(bad), Err(StatusFilterError), "{bad}");
        }
        for text in ["404", "5xx", "error"] {
            assert_eq!(text.parse::<StatusFilter>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn since_is_a_time_or_a_duration_before_now() {
        let now = Timestamp::from_millis(1_768_644_000_000);
        let before = |text: &str| text.parse::<Since>().map(|since| since.resolve(now).as_millis());
        assert_eq!(before("2026-01-17T09:00:00Z"), Ok(1_768_640_400_000));
        assert_eq!(before("90s"), Ok(1_768_644_000_000 - 90_000));
        assert_eq!(before("2h"), Ok(1_768_636_800_000));
        assert_eq!(before("7d"), Ok(1_768_644_000_000 - 7 * 86_400_000));
        for bad in ["", "h", "-1h", "1", "1w", "1.5h", "+1h", "99999999999d", "yesterday"] {
            assert_eq!(before(bad), Err(SinceError), "{bad}");
        }
    }
}
