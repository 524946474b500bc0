//! Turns on the wire.

use baton_core::observation::{Turn, TurnId, TurnStatus};
use baton_core::{ObservationId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Turn of a chat. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnView {
    /// Turn id, for example `turn_42`.
    pub id: TurnId,
    /// Session of the turn.
    pub session_id: SessionId,
    /// Request of the user; empty if it was not reported.
    pub prompt: String,
    /// Closing message of the agent.
    pub closing_message: Option<String>,
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

impl From<Turn> for TurnView {
    fn from(turn: Turn) -> Self {
        Self {
            id: turn.id,
            session_id: turn.session_id,
            prompt: turn.prompt,
            closing_message: turn.closing,
            compact_summary: turn.compact_summary,
            status: turn.status,
            failure: turn.failure,
            started_at: turn.started_at,
            ended_at: turn.ended_at,
        }
    }
}

/// Number of uses of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCount {
    /// Tool name, for example `Bash` or `Edit`.
    pub tool: String,
    /// Number of times the tool was used.
    pub uses: u32,
}

/// One tool use of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnAction {
    /// Observation id. Read it with observation.show.
    pub observation_id: ObservationId,
    /// Title: what was done and the result, for example "Run cargo test: 14 passed".
    pub title: String,
}
