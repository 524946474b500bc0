//! Turns of a chat: a request of the user, and the closing message of the agent.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{wire_names, wire_text};
use crate::{SessionId, Timestamp, without_control_characters};

const PREFIX: &str = "turn_";
/// Maximum length of a stored closing message in bytes. Longer ones lose their middle.
const MAX_CLOSING_BYTES: usize = 20_000;
/// Number of bytes kept from the end of a long closing message. The end usually contains the conclusions.
const CLOSING_TAIL_BYTES: usize = 13_000;

/// Id of a turn: `turn_` and its number in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TurnId(i64);

impl TurnId {
    /// Creates the id of a row.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number of the row.
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// The text is not the id of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be turn_ and a number, for example turn_42")]
pub struct TurnIdError;

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl FromStr for TurnId {
    type Err = TurnIdError;

    fn from_str(text: &str) -> Result<Self, TurnIdError> {
        let number =
            text.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        number.and_then(|digits| digits.parse().ok()).map(Self).ok_or(TurnIdError)
    }
}

wire_text!(TurnId, TurnIdError, { "type": "string", "pattern": "^turn_[0-9]{1,19}$" });

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum TurnStatus {
    /// The agent is working on it.
    Open,
    /// The agent finished its response.
    Done,
    /// The agent stopped because of an error, for example a usage limit.
    Failed,
    /// The user interrupted the agent.
    Interrupted,
    /// The next request or the end of the chat came before the agent finished.
    Unfinished,
    /// Recorded before turns had a status.
    Unknown,
}

wire_names!(TurnStatus);

/// Turn of a chat. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Turn id, for example `turn_42`.
    pub id: TurnId,
    /// Session in which the user made the request.
    pub session_id: SessionId,
    /// Request of the user; empty if it was not reported.
    pub prompt: String,
    /// Closing message of the agent.
    #[serde(rename = "closing_message")]
    pub closing: Option<String>,
    /// Summary that the agent wrote when its context was compacted during the turn.
    pub compact_summary: Option<String>,
    /// How the turn ended: `open`, `done`, `failed`, `interrupted`, `unfinished`, or `unknown` for turns recorded before
    /// this was stored.
    pub status: TurnStatus,
    /// Error that ended the turn.
    pub failure: Option<String>,
    /// Time of the request.
    pub started_at: Timestamp,
    /// Time of the end.
    pub ended_at: Option<Timestamp>,
}

/// Prepares a closing message for storage: removes control characters and truncates the middle of a long message.
/// Returns `None` for an empty message.
pub fn closing_message(text: &str) -> Option<String> {
    let clean = without_control_characters(text);
    let clean = clean.trim();
    if clean.is_empty() {
        return None;
    }
    if clean.len() <= MAX_CLOSING_BYTES {
        return Some(clean.to_owned());
    }
    let head_end = clean.floor_char_boundary(MAX_CLOSING_BYTES - CLOSING_TAIL_BYTES);
    let tail_start = clean.ceil_char_boundary(clean.len() - CLOSING_TAIL_BYTES);
    let cut = clean[head_end..tail_start].chars().count();
    Some(format!("{}\n[… {cut} characters left out …]\n{}", &clean[..head_end], &clean[tail_start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_formatted_ids() {
        assert_eq!(TurnId::new(42).to_string().parse(), Ok(TurnId::new(42)));
        for wrong in ["", "turn_", "42", "turn_-1", "turn_x", "turn_99999999999999999999", "obs_1"] {
            assert_eq!(wrong.parse::<TurnId>(), Err(TurnIdError), "{wrong}");
        }
    }

    #[test]
    fn long_closing_messages_keep_both_ends_and_count_missing_characters() {
        assert_eq!(closing_message(" \n\u{1b}"), None);
        assert_eq!(closing_message(" Done.\u{7} ").as_deref(), Some("Done."));
        let long = format!("Start {} End", "é".repeat(500_000));
        let kept = closing_message(&long).unwrap();
        assert!(kept.starts_with("Start é") && kept.ends_with("é End"), "{}", kept.len());
        let cut: usize = kept.split_once("[… ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
        let marker = format!("\n[… {cut} characters left out …]\n");
        assert_eq!(kept.chars().count() - marker.chars().count() + cut, long.chars().count());
    }
}
