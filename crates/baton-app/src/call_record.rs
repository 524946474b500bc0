//! The record of a call in the request log: what is known of the call when it arrives, and the session that it concerns.
//!
//! Owns which fields of a call are logged. Records are written by `request_log`.

use std::net::IpAddr;

use baton_core::{ActorKeyId, CorrelationId, RequestRecord, Timestamp, printable};
use baton_observation::without_private;
use serde_json::Value;

use crate::any_operation::AnyOperation;
use crate::call::{Call, Face};
use crate::effects::CallEffects;
use crate::operation::RequestLogging;

/// Parameters that name a session. `sessionId` of a checkpoint is the id of a workflow.
const SESSION_PARAMS: [&str; 2] = ["session_id", "agentSessionId"];

/// A request for a page about the server itself, such as `/healthz`, that was answered.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// Method and path.
    pub face: Face,
    pub correlation_id: CorrelationId,
    /// The credential, for a page that needs one.
    pub actor_key_id: Option<ActorKeyId>,
    /// The address of the client, where there is one.
    pub peer: Option<IpAddr>,
    /// The status of the response.
    pub status: u16,
    /// When the request arrived.
    pub started_at: Timestamp,
}

/// Makes the record of a call that is not answered yet.
pub(crate) fn record_of_call(
    call: &Call,
    operation: &AnyOperation,
    started_at: Timestamp,
    params: &Value,
) -> RequestRecord {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(without_secrets);
    let number = |name: &str| params.get(name).and_then(Value::as_i64);
    // A filter of the request log names a session too, but reading the log is not a request of that session.
    let names_session = operation.request_logging != RequestLogging::Counted;
    let session_id = |name: &str| params.get(name).and_then(Value::as_str)?.parse().ok();
    RequestRecord {
        actor_key_id: Some(call.actor.key_id.clone()),
        session_id: SESSION_PARAMS.into_iter().filter(|_| names_session).find_map(session_id),
        agent: text("agent"),
        venture: text("venture"),
        repo: text("repo"),
        track: number("track"),
        issue_number: number("issue_number"),
        status_code: 499,
        error_message: Some("the client disconnected before the response".into()),
        idempotency_key: call.idempotency_key.as_ref().map(ToString::to_string),
        ..blank_record(started_at, call.correlation_id.clone(), &call.face, operation.name)
    }
}

/// Adds the session that the call concerns to its record.
pub(crate) fn add_session(record: &mut RequestRecord, effects: &CallEffects) {
    if let Some((id, venture)) = effects.session() {
        record.session_id = Some(id);
        record.venture.get_or_insert_with(|| venture.to_string());
    }
}

/// Makes a record that says when and where a request arrived.
pub(crate) fn blank_record(
    timestamp: Timestamp,
    correlation_id: CorrelationId,
    face: &Face,
    operation: &str,
) -> RequestRecord {
    let (endpoint, method) = match face {
        Face::Http { method, path } => (printable(path, 255), printable(method, 16)),
        Face::Mcp => (operation.to_owned(), "MCP".to_owned()),
        Face::Cli => (operation.to_owned(), "CLI".to_owned()),
        Face::Page => (operation.to_owned(), "PAGE".to_owned()),
        Face::Internal => (operation.to_owned(), "INTERNAL".to_owned()),
    };
    RequestRecord {
        timestamp,
        correlation_id,
        endpoint,
        method,
        actor_key_id: None,
        session_id: None,
        agent: None,
        venture: None,
        repo: None,
        track: None,
        issue_number: None,
        status_code: 200,
        duration_ms: 0,
        error_message: None,
        idempotency_key: None,
        idempotency_hit: false,
        request_count: 1,
    }
}

/// Removes secrets from a name: it was not validated yet and may be any text.
fn without_secrets(name: &str) -> String {
    printable(&baton_secrets::redact(&without_private(name)), 257)
}
