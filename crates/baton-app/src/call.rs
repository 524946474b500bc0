//! A call as it enters, and the reply as it leaves.

use baton_core::checkpoint::SavedContext;
use baton_core::{Actor, CheckpointId, CorrelationId, ErrorCode, Fault, IdempotencyKey, Timestamp};
use serde::Serialize;
use serde_json::Value;

use std::sync::Arc;

use crate::observation::LargeOutput;

/// Through which face a call came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Face {
    /// Over HTTP.
    Http {
        /// The method.
        method: String,
        /// The path as it was asked for, without the query.
        path: String,
    },
    /// As an MCP tool call.
    Mcp,
    /// From the command line, on the local store.
    Cli,
    /// From Baton itself, on a schedule.
    Internal,
}

/// Who calls, from where, and how the call is told from others.
#[derive(Debug, Clone)]
pub struct Call {
    /// The credential behind it.
    pub actor: Actor,
    /// The face it came through.
    pub face: Face,
    /// Ties the call, its log lines and what it makes together.
    pub correlation_id: CorrelationId,
    /// The client's own name for the request, if it gave one.
    pub idempotency_key: Option<IdempotencyKey>,
    /// A parameter that is too large to be passed as a tree.
    pub attachment: Option<Attachment>,
}

/// A parameter that was taken out of the others while the request was read.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// The output of a tool, in a hook report.
    Output(LargeOutput),
    /// The context of a checkpoint.
    Context(Arc<SavedContext>),
    /// The context of a checkpoint that is replayed from the outbox.
    Spooled(Arc<SpooledContext>),
}

/// A context that was saved to the outbox, with the id and time of its checkpoint.
#[derive(Debug, Clone)]
pub struct SpooledContext {
    /// Id that the save returned.
    pub checkpoint_id: CheckpointId,
    /// Time of the save.
    pub saved_at: Timestamp,
    /// The context.
    pub context: Arc<SavedContext>,
}

impl Attachment {
    /// Returns the context of a checkpoint.
    pub fn context(&self) -> Option<&Arc<SavedContext>> {
        match self {
            Self::Output(_) => None,
            Self::Context(context) => Some(context),
            Self::Spooled(spooled) => Some(&spooled.context),
        }
    }
}

impl Call {
    /// Returns true if the call is replayed from the outbox.
    pub(crate) const fn is_replay(&self) -> bool {
        matches!(self.attachment, Some(Attachment::Spooled(_)))
    }
}

/// How a call was answered. Every face sends the same body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200, or the status of the error code.
    pub status: u16,
    /// The error code, when it is an error.
    pub error: Option<ErrorCode>,
    /// The answer as JSON: the operation's output, or the error.
    pub body: String,
    /// Whether the body was stored by an earlier request with the same idempotency key.
    pub replayed: bool,
    /// Whether the body is the compact form of a stored one that was too large to keep.
    pub truncated: bool,
    /// The correlation id of this call, also on replays.
    pub correlation_id: CorrelationId,
}

impl Reply {
    /// Returns true when the error says that repeating the request does not help until a person has done something, such as
    /// freeing disk space.
    pub fn must_not_retry(&self) -> bool {
        let body = || serde_json::from_str::<Value>(&self.body).ok();
        self.error.is_some() && body().is_some_and(|body| body["details"]["retryable"] == false)
    }

    /// Returns true if the call failed because the disk is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        let body = || serde_json::from_str::<Value>(&self.body).ok();
        self.error.is_some() && body().is_some_and(|body| body["details"]["reason"] == "disk_full")
    }

    /// Makes the reply of a fault. Its cause stays inside.
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

/// An error as every face answers it, in this order: what a reader needs comes first.
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorCode,
    message: &'a str,
    hint: Option<&'a str>,
    details: Option<&'a Value>,
    correlation_id: &'a CorrelationId,
}

/// Writes a fault as every face answers it.
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
