//! Handoffs: messages from one session to the next, and their schema.

mod fields;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::fields::{HandoffFields, HandoffReferences};

use crate::actor::ActorKeyId;
use crate::canonical::{Canonical, Sha256Hash};
use crate::checkpoint::WorkflowId;
use crate::error::{ErrorCode, Fault};
use crate::id::{CheckpointId, HandoffId, SessionId};
use crate::name::{Agent, CorrelationId, Repo, Track, Venture};
use crate::text::require_plain_text;
use crate::time::Timestamp;
use crate::violation::{Violation, ViolationKind, join, violations};
use crate::wire::wire_names;

/// JSON Schema 1.0 of the handoff payload.
pub const HANDOFF_SCHEMA_1_0: &str = include_str!("handoff/schema-1.0.json");

/// Maximum size of a payload as canonical JSON.
pub const MAX_PAYLOAD_BYTES: usize = 800 * 1024;

/// Author of a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum HandoffAuthor {
    /// An agent wrote the handoff.
    Agent,
    /// A person wrote the handoff.
    Person,
    /// Baton created the handoff from captured turns and observations when the chat ended.
    Hook,
}

wire_names!(HandoffAuthor);

/// Message that a session leaves for the next session.
#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    pub id: HandoffId,
    /// Session that wrote the handoff.
    pub session_id: SessionId,
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    pub track: Option<Track>,
    pub issue_number: Option<i64>,
    /// Branch at the time of the handoff.
    pub branch: Option<String>,
    /// Commit at the time of the handoff.
    pub commit_sha: Option<String>,
    /// Agent that wrote the handoff.
    pub from_agent: Agent,
    /// Agent that should take over, or none for any agent.
    pub to_agent: Option<Agent>,
    /// Status of the work, for example `blocked`, `in-progress` or `ready`.
    pub status_label: Option<String>,
    /// Summary of the work, in plain text.
    pub summary: String,
    /// Fields other than `summary`, `status_label` and `to_agent`, as canonical JSON.
    pub payload_json: String,
    /// SHA-256 hash of the canonical payload.
    pub payload_hash: Sha256Hash,
    /// Schema version of the payload.
    pub schema_version: String,
    /// True if the handoff ended its session.
    pub ends_session: bool,
    /// True if the handoff was written after its session had ended or been abandoned.
    pub late: bool,
    pub written_by: HandoffAuthor,
    /// Workflow of the linked checkpoint.
    pub workflow_id: Option<WorkflowId>,
    /// Latest checkpoint of the workflow that the session saved to last.
    pub checkpoint_id: Option<CheckpointId>,
    /// What Baton captured in the session, as a JSON object that is added to a handoff written by an agent.
    pub automatic_json: Option<String>,
    /// True while captured tool uses of the session are not processed. The handoff is updated when they are.
    pub incomplete: bool,
    /// Time when the handoff was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
    /// Time when an agent acknowledged the handoff.
    pub acknowledged_at: Option<Timestamp>,
    /// Agent that acknowledged the handoff.
    pub acknowledged_by: Option<Agent>,
    /// Session that continues the work, if it is known.
    pub acknowledged_session_id: Option<SessionId>,
    /// Time when the handoff was created.
    pub created_at: Timestamp,
    /// Id of the credential that wrote the handoff.
    pub actor_key_id: ActorKeyId,
    /// Correlation id of the creating request.
    pub creation_correlation_id: CorrelationId,
}

impl Handoff {
    /// Parses the payload, a JSON object.
    pub fn payload(&self) -> Result<Map<String, Value>, serde_json::Error> {
        serde_json::from_str(&self.payload_json)
    }

    pub fn has_same_content_as(&self, draft: &HandoffDraft) -> bool {
        self.summary == draft.summary
            && self.status_label == draft.status_label
            && self.to_agent == draft.to_agent
            && self.payload_hash == draft.payload.hash()
    }

    /// Returns the named fields of the payload. References that the payload lacks are filled in with the workflow,
    /// checkpoint, branch and commit that were stored with the handoff.
    pub fn fields(&self) -> Result<HandoffFields, serde_json::Error> {
        let mut fields = HandoffFields::of(&self.payload()?);
        let references = &mut fields.references;
        if references.workflow.is_none() && references.checkpoint.is_none() {
            references.workflow = self.workflow_id.as_ref().map(ToString::to_string);
            references.checkpoint = self.checkpoint_id.map(|id| id.to_string());
        }
        references.branch = references.branch.take().or_else(|| self.branch.clone());
        references.commit = references.commit.take().or_else(|| self.commit_sha.clone());
        Ok(fields)
    }
}

/// A validated handoff that is not stored yet.
#[derive(Debug, Clone)]
pub struct HandoffDraft {
    /// Summary of the work.
    pub summary: String,
    /// Status of the work.
    pub status_label: Option<String>,
    /// Agent that should take over.
    pub to_agent: Option<Agent>,
    /// All other fields, as canonical JSON.
    pub payload: Canonical,
}

impl HandoffDraft {
    /// Validates a handoff document against the schema. `summary`, `status_label` and `to_agent` become fields of the
    /// draft, all other members are its payload. `place` is the path of the document in the request, for messages.
    pub fn read(mut document: Map<String, Value>, place: &str) -> Result<Self, Fault> {
        require_plain_text(place, &document)?;
        let whole = Value::Object(document);
        require_schema(&whole, place)?;
        document = match whole {
            Value::Object(document) => document,
            _ => Map::new(),
        };
        let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
        let summary = text(document.remove("summary")).unwrap_or_default();
        let status_label = text(document.remove("status_label"));
        let to_agent = text(document.remove("to_agent"))
            .map(|name| name.parse())
            .transpose()
            .map_err(|error| Fault::invalid(&join(place, "to_agent"), error))?;
        let payload = Canonical::of(&Value::Object(document))
            .map_err(|rounded| Fault::invalid(&join(place, &rounded.path), &rounded))?;
        if payload.size_bytes() > MAX_PAYLOAD_BYTES {
            return Err(too_large(payload.size_bytes()));
        }
        Ok(Self { summary, status_label, to_agent, payload })
    }
}

fn too_large(actual: usize) -> Fault {
    Fault::new(
        ErrorCode::PayloadTooLarge,
        format!("the handoff payload has {actual} bytes of canonical JSON; the limit is {MAX_PAYLOAD_BYTES}"),
    )
    .hint("include what the next agent needs and refer to the rest by path or link")
    .details(json!({ "actual_bytes": actual, "allowed_bytes": MAX_PAYLOAD_BYTES }))
}

/// Rejects a document that does not match the schema and lists every invalid field.
fn require_schema(document: &Value, place: &str) -> Result<(), Fault> {
    static SCHEMA: LazyLock<Option<Value>> = LazyLock::new(|| serde_json::from_str(HANDOFF_SCHEMA_1_0).ok());
    let schema = SCHEMA
        .as_ref()
        .ok_or_else(|| Fault::new(ErrorCode::Internal, "the built-in handoff schema is invalid"))?;
    let mut violations = violations(schema, document);
    violations.iter_mut().for_each(|violation| violation.field = join(place, &violation.field));
    let Some(Violation { field, problem, kind }) = violations.first() else { return Ok(()) };
    let change = if *kind == ViolationKind::Missing { "add" } else { "correct" };
    let fields: Vec<Value> = violations
        .iter()
        .map(|violation| json!({ "field": violation.field, "problem": violation.problem }))
        .collect();
    Err(Fault::new(ErrorCode::InvalidRequest, format!("{field}: {problem}"))
        .hint(format!("{change} {field}, then send the handoff again"))
        .details(json!({ "fields": fields, "schema_version": "1.0" })))
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
