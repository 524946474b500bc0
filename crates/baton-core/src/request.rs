//! The request log: which calls were made, by which actor and with which result. Never what was sent.

use crate::actor::ActorKeyId;
use crate::name::CorrelationId;
use crate::time::Timestamp;

/// One call, as the request log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// When the call arrived.
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
    /// The number of calls that this record stands for. Calls without a valid credential are counted, not recorded one by
    /// one.
    pub request_count: u32,
}
