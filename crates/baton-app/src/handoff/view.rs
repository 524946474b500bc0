//! Wire representation of handoffs.

use baton_core::checkpoint::WorkflowId;
use baton_core::{
    CheckpointId, ErrorCode, Fault, Handoff, HandoffAuthor, HandoffFields, HandoffId, SessionId, Timestamp,
};
use baton_store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::store_errors::corrupt_handoff;

/// Summary of a handoff. `handoff_show` returns the full handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffSummary {
    /// Handoff id (`ho_…`).
    pub id: HandoffId,
    /// Session that wrote the handoff.
    pub session_id: SessionId,
    /// Agent that wrote the handoff.
    pub from_agent: String,
    /// Agent that should take over; null for any agent.
    pub to_agent: Option<String>,
    /// Summary of the work.
    pub summary: String,
    /// Short status of the work, for example `in-progress` or `blocked`, or null.
    pub status_label: Option<String>,
    /// Named fields of the handoff.
    #[serde(flatten)]
    pub fields: HandoffFields,
    /// Author: `agent`, `person`, or `hook` if Baton created the handoff when the chat ended.
    pub written_by: HandoffAuthor,
    /// Summary of what Baton captured in the session, not written by the agent. Null without captures and for an automatic
    /// handoff, whose `summary` it is.
    pub automatic_summary: Option<String>,
    /// True while captured tool uses of the session are not processed. The handoff is updated when they are.
    pub incomplete: bool,
    /// Time when the handoff was created.
    pub created_at: Timestamp,
}

impl TryFrom<Handoff> for HandoffSummary {
    type Error = Fault;

    fn try_from(handoff: Handoff) -> Result<Self, Fault> {
        let fields = handoff.fields().map_err(|error| corrupt_handoff(&handoff, &error));
        let automatic = stored_automatic_content(&handoff).map_err(|error| damaged(&handoff, error))?;
        Ok(Self {
            fields: fields.map_err(|error| damaged(&handoff, error))?,
            automatic_summary: automatic
                .and_then(|content| content.get("summary")?.as_str().map(str::to_owned)),
            written_by: handoff.written_by,
            incomplete: handoff.incomplete,
            id: handoff.id,
            session_id: handoff.session_id,
            from_agent: handoff.from_agent.into(),
            to_agent: handoff.to_agent.map(Into::into),
            summary: handoff.summary,
            status_label: handoff.status_label,
            created_at: handoff.created_at,
        })
    }
}

/// Returns what was captured in the session of a handoff that an agent wrote, if anything was.
pub(crate) fn stored_automatic_content(handoff: &Handoff) -> Result<Option<Map<String, Value>>, StoreError> {
    let parsed = handoff.automatic_json.as_deref().map(serde_json::from_str).transpose();
    parsed.map_err(|error| corrupt_handoff(handoff, &error))
}

fn damaged(handoff: &Handoff, error: StoreError) -> Fault {
    let message = format!("the stored content of {} is damaged", handoff.id);
    Fault::new(ErrorCode::Internal, message).hint("check the database with baton doctor").caused_by(error)
}

/// A handoff. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffView {
    /// Handoff id (`ho_…`).
    pub id: HandoffId,
    /// Session that wrote the handoff.
    pub session_id: SessionId,
    /// Venture, for example `acme`.
    pub venture: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Track number, for example 2.
    pub track: Option<i64>,
    /// Issue number, for example 185.
    pub issue_number: Option<i64>,
    /// Branch at the time of the handoff.
    pub branch: Option<String>,
    /// Commit at the time of the handoff.
    pub commit_sha: Option<String>,
    /// Agent that wrote the handoff.
    pub from_agent: String,
    /// Agent that should take over; null for any agent.
    pub to_agent: Option<String>,
    /// Short status of the work, for example `in-progress` or `blocked`, or null.
    pub status_label: Option<String>,
    /// Summary of the work.
    pub summary: String,
    /// Fields of the handoff other than `summary`, `status_label` and `to_agent`.
    pub payload: Map<String, Value>,
    /// SHA-256 hash of the payload's canonical JSON (RFC 8785).
    pub payload_hash: String,
    /// Size of the payload's canonical JSON in bytes.
    pub payload_size_bytes: i64,
    /// Schema version of the payload.
    pub schema_version: String,
    /// Author: `agent`, `person`, or `hook` if Baton created the handoff when the chat ended.
    pub written_by: HandoffAuthor,
    /// Workflow of the linked checkpoint.
    pub workflow_id: Option<WorkflowId>,
    /// Latest checkpoint of the workflow that the session saved to last.
    pub checkpoint_id: Option<CheckpointId>,
    /// What Baton captured in the session, not written by the agent. Null without captures and for an automatic handoff,
    /// whose `payload` it is.
    pub automatic: Option<Map<String, Value>>,
    /// True while captured tool uses of the session are not processed. The handoff is updated when they are.
    pub incomplete: bool,
    /// Time when the handoff was withdrawn. A withdrawn handoff is not listed.
    pub withdrawn_at: Option<Timestamp>,
    /// True if the handoff ended its session.
    pub ends_session: bool,
    /// True if the handoff was written after its session had ended or been abandoned.
    pub late: bool,
    /// Time when an agent acknowledged the handoff.
    pub acknowledged_at: Option<Timestamp>,
    /// Agent that acknowledged the handoff.
    pub acknowledged_by: Option<String>,
    /// Session that continues the work, if `baton relay` started it.
    pub acknowledged_session_id: Option<SessionId>,
    /// Time when the handoff was created.
    pub created_at: Timestamp,
    /// Id of the credential that wrote the handoff.
    pub actor_key_id: String,
    /// Correlation id of the creating request.
    pub creation_correlation_id: String,
}

impl TryFrom<Handoff> for HandoffView {
    type Error = Fault;

    fn try_from(handoff: Handoff) -> Result<Self, Fault> {
        let payload = handoff.payload().map_err(|error| corrupt_handoff(&handoff, &error));
        let payload = payload.map_err(|error| damaged(&handoff, error))?;
        Ok(Self {
            automatic: stored_automatic_content(&handoff).map_err(|error| damaged(&handoff, error))?,
            written_by: handoff.written_by,
            workflow_id: handoff.workflow_id,
            checkpoint_id: handoff.checkpoint_id,
            incomplete: handoff.incomplete,
            withdrawn_at: handoff.withdrawn_at,
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
            acknowledged_session_id: handoff.acknowledged_session_id,
            created_at: handoff.created_at,
            actor_key_id: handoff.actor_key_id.into(),
            creation_correlation_id: handoff.creation_correlation_id.into(),
        })
    }
}
