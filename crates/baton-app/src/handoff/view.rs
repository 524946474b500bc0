//! Handoffs as they look on the wire.

use baton_core::{ErrorCode, Fault, Handoff, HandoffId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A handoff in short; `handoff.show` has all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffSummary {
    /// Its id.
    pub id: HandoffId,
    /// The session that wrote it.
    pub session_id: SessionId,
    /// Who wrote it.
    pub from_agent: String,
    /// For whom.
    pub to_agent: Option<String>,
    /// What there is to know.
    pub summary: String,
    /// How things stand.
    pub status_label: Option<String>,
    /// What is to be done next.
    pub next_actions: Vec<String>,
    /// When it was written.
    pub created_at: Timestamp,
}

impl From<Handoff> for HandoffSummary {
    fn from(handoff: Handoff) -> Self {
        Self {
            next_actions: handoff.next_actions(),
            id: handoff.id,
            session_id: handoff.session_id,
            from_agent: handoff.from_agent.into(),
            to_agent: handoff.to_agent.map(Into::into),
            summary: handoff.summary,
            status_label: handoff.status_label,
            created_at: handoff.created_at,
        }
    }
}

/// A handoff, whole. What is absent is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffView {
    /// Its id.
    pub id: HandoffId,
    /// The session that wrote it.
    pub session_id: SessionId,
    /// The undertaking.
    pub venture: String,
    /// The repository, `owner/name`.
    pub repo: String,
    /// The lane.
    pub track: Option<i64>,
    /// The issue that was worked on.
    pub issue_number: Option<i64>,
    /// The branch that was worked on.
    pub branch: Option<String>,
    /// The commit that was reached.
    pub commit_sha: Option<String>,
    /// Who wrote it.
    pub from_agent: String,
    /// For whom.
    pub to_agent: Option<String>,
    /// How things stand.
    pub status_label: Option<String>,
    /// What there is to know.
    pub summary: String,
    /// All that was handed over.
    pub payload: Map<String, Value>,
    /// The SHA-256 of the payload's canonical JSON (RFC 8785).
    pub payload_hash: String,
    /// The size of the payload's canonical JSON.
    pub payload_size_bytes: i64,
    /// The version of the payload's schema.
    pub schema_version: String,
    /// Whether its session was ended with it.
    pub ends_session: bool,
    /// Whether it came after its session had been given up.
    pub late: bool,
    /// When the next agent said that it took the work.
    pub acknowledged_at: Option<Timestamp>,
    /// Who said so.
    pub acknowledged_by: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// The credential that wrote it.
    pub actor_key_id: String,
    /// The request that wrote it.
    pub creation_correlation_id: String,
}

impl TryFrom<Handoff> for HandoffView {
    type Error = Fault;

    fn try_from(handoff: Handoff) -> Result<Self, Fault> {
        let payload = match handoff.payload() {
            Ok(Value::Object(payload)) => payload,
            _ => {
                let message = format!("the stored payload of {} is damaged", handoff.id);
                return Err(Fault::new(ErrorCode::Internal, message).hint("baton doctor checks the database"));
            }
        };
        Ok(Self {
            id: handoff.id,
            session_id: handoff.session_id,
            venture: handoff.venture.into(),
            repo: handoff.repo.into(),
            track: handoff.track.map(Into::into),
            issue_number: handoff.issue_number,
            branch: handoff.branch,
            commit_sha: handoff.commit_sha,
            from_agent: handoff.from_agent.into(),
            to_agent: handoff.to_agent.map(Into::into),
            status_label: handoff.status_label,
            summary: handoff.summary,
            payload,
            payload_hash: handoff.payload_hash.to_string(),
            payload_size_bytes: i64::try_from(handoff.payload_json.len()).unwrap_or(i64::MAX),
            schema_version: handoff.schema_version,
            ends_session: handoff.ends_session,
            late: handoff.late,
            acknowledged_at: handoff.acknowledged_at,
            acknowledged_by: handoff.acknowledged_by.map(Into::into),
            created_at: handoff.created_at,
            actor_key_id: handoff.actor_key_id.into(),
            creation_correlation_id: handoff.creation_correlation_id.into(),
        })
    }
}
