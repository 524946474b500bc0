//! The request log: what was called, by whom, how it went. Never what was sent.

use crate::actor::ActorKeyId;
use crate::id::RequestId;
use crate::name::CorrelationId;
use crate::time::Timestamp;

/// One call, as the request log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its id.
    pub id: RequestId,
    /// When it arrived.
    pub timestamp: Timestamp,
    /// Ties it to its answer and its log lines.
    pub correlation_id: CorrelationId,
    /// The path, or the operation when it did not come over HTTP.
    pub endpoint: String,
    /// The HTTP method, or the face (`MCP`, `CLI`).
    pub method: String,
    /// The credential; none when there was no valid one.
    pub actor_key_id: Option<ActorKeyId>,
    /// Who called, when the parameters say.
    pub agent: Option<String>,
    /// For which undertaking, when the parameters say.
    pub venture: Option<String>,
    /// In which repository, when the parameters say.
    pub repo: Option<String>,
    /// In which lane, when the parameters say.
    pub track: Option<i64>,
    /// On which issue, when the parameters say.
    pub issue_number: Option<i64>,
    /// How it was answered.
    pub status_code: u16,
    /// How long it took.
    pub duration_ms: i64,
    /// The error code and message that were answered.
    pub error_message: Option<String>,
    /// The idempotency key it carried.
    pub idempotency_key: Option<String>,
    /// Whether the answer was a stored one.
    pub idempotency_hit: bool,
}
