//! Handoffs: what one session leaves for the next, and what it may consist of.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::actor::ActorKeyId;
use crate::canonical::{Canonical, Sha256Hash};
use crate::error::{ErrorCode, Fault};
use crate::id::{HandoffId, SessionId};
use crate::name::{Agent, CorrelationId, Repo, Track, Venture};
use crate::text::require_plain_text;
use crate::time::Timestamp;

/// The JSON Schema of what is handed over, version 1.0.
pub const HANDOFF_SCHEMA_1_0: &str = include_str!("handoff/schema-1.0.json");

/// The largest payload, as canonical JSON.
pub const MAX_PAYLOAD_BYTES: usize = 800 * 1024;

/// What one session leaves for the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    /// Its id.
    pub id: HandoffId,
    /// The session that wrote it.
    pub session_id: SessionId,
    /// The undertaking it belongs to.
    pub venture: Venture,
    /// The repository it belongs to.
    pub repo: Repo,
    /// The lane it belongs to.
    pub track: Option<Track>,
    /// The issue that was worked on.
    pub issue_number: Option<i64>,
    /// The branch that was worked on.
    pub branch: Option<String>,
    /// The commit that was reached.
    pub commit_sha: Option<String>,
    /// Who wrote it.
    pub from_agent: Agent,
    /// For whom, when it is for someone.
    pub to_agent: Option<Agent>,
    /// How things stand: `blocked`, `in-progress`, `ready`, or the writer's own word.
    pub status_label: Option<String>,
    /// What there is to know, in plain text.
    pub summary: String,
    /// All that was handed over, as canonical JSON.
    pub payload_json: String,
    /// The SHA-256 of the canonical payload.
    pub payload_hash: Sha256Hash,
    /// The version of the payload's schema.
    pub schema_version: String,
    /// Whether its session was ended with it.
    pub ends_session: bool,
    /// Whether it arrived after its session had been given up.
    pub late: bool,
    /// When the next agent said that it took the work.
    pub acknowledged_at: Option<Timestamp>,
    /// Who said so.
    pub acknowledged_by: Option<Agent>,
    /// When it was written.
    pub created_at: Timestamp,
    /// The credential that wrote it.
    pub actor_key_id: ActorKeyId,
    /// The request that wrote it.
    pub creation_correlation_id: CorrelationId,
}

impl Handoff {
    /// The payload as it was handed over.
    pub fn payload(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&self.payload_json)
    }

    /// Tells whether the same was handed over.
    pub fn says_the_same_as(&self, draft: &HandoffDraft) -> bool {
        self.summary == draft.summary
            && self.status_label == draft.status_label
            && self.to_agent == draft.to_agent
            && self.payload_hash == draft.payload.hash()
    }

    /// What it says stands in the way.
    pub fn blockers(&self) -> Vec<String> {
        self.texts("blockers")
    }

    /// What it says is to be done next.
    pub fn next_actions(&self) -> Vec<String> {
        self.texts("next_actions")
    }

    fn texts(&self, list: &str) -> Vec<String> {
        let payload = self.payload().unwrap_or_default();
        let texts = payload.get(list).and_then(Value::as_array);
        texts.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// What an agent wants to hand over, checked.
#[derive(Debug, Clone)]
pub struct HandoffDraft {
    /// What there is to know.
    pub summary: String,
    /// How things stand.
    pub status_label: Option<String>,
    /// For whom.
    pub to_agent: Option<Agent>,
    /// The rest, canonical.
    pub payload: Canonical,
}

impl HandoffDraft {
    /// Checks a handoff document against the schema: `summary`, `status_label` and `to_agent` are its head, everything
    /// else is its payload. `place` is where the document stands in the request, for messages.
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
        format!("the handoff payload is {actual} bytes of canonical JSON, {MAX_PAYLOAD_BYTES} are allowed"),
    )
    .hint("hand over what the next agent needs and refer to the rest by path or link")
    .details(json!({ "actual_bytes": actual, "allowed_bytes": MAX_PAYLOAD_BYTES }))
}

fn join(place: &str, field: &str) -> String {
    match (place, field) {
        ("", field) => field.to_owned(),
        (place, "") => place.to_owned(),
        (place, field) => format!("{place}.{field}"),
    }
}

/// Reports every field that does not fit, not only the first.
fn require_schema(document: &Value, place: &str) -> Result<(), Fault> {
    static VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(HANDOFF_SCHEMA_1_0).ok()?;
        jsonschema::validator_for(&schema).ok()
    });
    let validator = VALIDATOR
        .as_ref()
        .ok_or_else(|| Fault::new(ErrorCode::Internal, "the handoff schema built into baton is broken"))?;
    let problems: Vec<(String, String)> = validator
        .iter_errors(document)
        .map(|error| {
            let pointer = error.instance_path().to_string();
            let field = pointer.trim_start_matches('/').replace('/', ".");
            (join(place, &field), error.masked().to_string())
        })
        .collect();
    let Some((field, problem)) = problems.first() else { return Ok(()) };
    let fields: Vec<Value> =
        problems.iter().map(|(field, problem)| json!({ "field": field, "problem": problem })).collect();
    Err(Fault::new(ErrorCode::InvalidRequest, format!("{field}: {problem}"))
        .hint("details names every field that does not fit; the schema is in the API documentation")
        .details(json!({ "fields": fields, "schema_version": "1.0" })))
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
