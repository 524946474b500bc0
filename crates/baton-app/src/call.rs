//! Calls and replies of operations.

use baton_checkpoint::SavedContext;
use baton_core::{Actor, CorrelationId, ErrorCode, Fault, IdempotencyKey, Sha256Hash};
use baton_store::{BlobFolder, OutboxEntry, RawOutput, RawReader, StoreError};
use serde::Serialize;
use serde_json::Value;

use std::sync::Arc;

/// Interface of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Face {
    /// HTTP request.
    Http {
        /// HTTP method.
        method: String,
        /// Requested path without the query.
        path: String,
    },
    /// MCP tool call.
    Mcp,
    /// Command line, on the local store.
    Cli,
    /// Read for a page of the dashboard. The page is logged instead of its successful reads.
    Page,
    /// Scheduled call of Baton itself.
    Internal,
}

/// Caller, interface and ids of a call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Caller.
    pub actor: Actor,
    /// Interface of the call.
    pub face: Face,
    /// Id that connects the call with its log lines and records.
    pub correlation_id: CorrelationId,
    /// Idempotency key, if the client sent one.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Parameter that is too large for a JSON value.
    pub attachment: Option<Attachment>,
}

/// A parameter that was separated from the others while the request was read.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// Tool output of a hook report.
    Output(Arc<PackedOutput>),
    /// Context of a checkpoint.
    Context(Arc<SavedContext>),
    /// Write that is replayed from the outbox, with all its parameters.
    Spooled(Arc<OutboxEntry>),
}

impl Attachment {
    /// Returns the context of a checkpoint.
    pub fn context(&self) -> Option<&Arc<SavedContext>> {
        match self {
            Self::Output(_) | Self::Spooled(_) => None,
            Self::Context(context) => Some(context),
        }
    }
}

/// Redacted and compressed input and output of a tool, ready to be stored.
#[derive(Debug)]
pub struct PackedOutput {
    pub(crate) raw: RawOutput,
    /// Size of the tool output.
    pub(crate) raw_bytes: u64,
    /// Size of the content before compression.
    pub(crate) unpacked_bytes: u64,
    pub(crate) files: Vec<String>,
}

impl PackedOutput {
    /// Returns the hash of the uncompressed content.
    pub(crate) fn hash(&self, blobs: Option<&BlobFolder>) -> Result<Sha256Hash, Fault> {
        let raw = RawReader::open(self.raw.clone(), blobs)?;
        Sha256Hash::of_all(raw).map_err(|error| Fault::from(StoreError::corrupt("pending_queue", error)))
    }
}

impl Call {
    /// Returns true if the call is replayed from the outbox.
    pub(crate) const fn is_replay(&self) -> bool {
        matches!(self.attachment, Some(Attachment::Spooled(_)))
    }
}

/// Response of a call. All interfaces send the same body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200, or the status of the error code.
    pub status: u16,
    /// Error code, if the call failed.
    pub error: Option<ErrorCode>,
    /// Output of the operation or error, as JSON.
    pub body: String,
    /// True if the body was stored by an earlier request with the same idempotency key.
    pub replayed: bool,
    /// True if the body is the compact form of a response that was too large to store.
    pub truncated: bool,
    /// Correlation id of this call, also for replays.
    pub correlation_id: CorrelationId,
}

impl Reply {
    /// Returns true if retrying is useless until the user acts, for example frees disk space.
    pub fn must_not_retry(&self) -> bool {
        let body = || serde_json::from_str::<Value>(&self.body).ok();
        self.error.is_some() && body().is_some_and(|body| body["details"]["retryable"] == false)
    }

    /// Returns true if the call failed because the disk is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        let body = || serde_json::from_str::<Value>(&self.body).ok();
        self.error.is_some() && body().is_some_and(|body| body["details"]["reason"] == "disk_full")
    }

    /// Creates the reply of a fault, without its internal cause.
    pub fn fault(fault: &Fault, correlation_id: CorrelationId) -> Self {
        Self {
            status: fault.code.status(),
            error: Some(fault.code),
            body: error_body(fault, &correlation_id),
            replayed: false,
            truncated: false,
            correlation_id,
        }
    }
}

/// Error body of all interfaces. The fields are serialized in this order.
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorCode,
    message: &'a str,
    hint: Option<&'a str>,
    details: Option<&'a Value>,
    correlation_id: &'a CorrelationId,
}

/// Reads the error body of a reply. The hint and the details are optional.
pub fn read_error(code: ErrorCode, body: &str) -> Fault {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    Fault {
        hint: body["hint"].as_str().map(str::to_owned),
        details: Some(body["details"].clone()).filter(|details| !details.is_null()),
        ..Fault::new(code, body["message"].as_str().unwrap_or("cannot read the error of the response"))
    }
}

/// Serializes a fault.
pub(crate) fn error_body(fault: &Fault, correlation_id: &CorrelationId) -> String {
    let body = ErrorBody {
        error: fault.code,
        message: &fault.message,
        hint: fault.hint.as_deref(),
        details: fault.details.as_ref(),
        correlation_id,
    };
    serde_json::to_string(&body).unwrap_or_default()
}
