//! The transaction of a call: claim its key, run the operation, store the response for the key.

use baton_core::{
    CorrelationId, ErrorCode, Fault, KeyClaim, KeyRecord, RequestRecord, Sha256Hash, printable,
    require_same_request,
};
use baton_store::{Outcome, StoreError, Tx};
use serde::Serialize;
use serde_json::Value;

use crate::call::error_body;
use crate::context::Context;
use crate::request_log::MAX_MESSAGE;

/// The response to a call after its transaction.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    pub(crate) error: Option<ErrorCode>,
    pub(crate) body: String,
    pub(crate) replayed: bool,
    pub(crate) truncated: bool,
    pub(crate) message: Option<String>,
    pub(crate) is_logged: bool,
}

/// The output of an operation.
pub(crate) struct Done {
    /// The output as JSON.
    pub(crate) body: String,
    /// The part that is stored for the key of the call, if the body is too large for that.
    pub(crate) compact: Option<Value>,
}

impl Done {
    /// Serializes an output. `compact` returns the part that is stored if the whole is too large.
    pub(crate) fn of<T: Serialize>(output: &T, compact: fn(&T) -> Value) -> Result<Self, Fault> {
        let body = serde_json::to_string(output).map_err(|error| {
            Fault::new(ErrorCode::Internal, "cannot serialize the response").caused_by(error)
        })?;
        let compact = (body.len() > KeyRecord::MAX_BODY_BYTES).then(|| compact(output));
        Ok(Self { body, compact })
    }
}

/// Runs the transaction of a call with or without a key. Fails if nothing was stored; an error that is stored for the key
/// is a response.
pub(crate) fn transact(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    run: &dyn Fn(&mut dyn Tx) -> Result<Done, Fault>,
) -> Result<Stored, Fault> {
    context.effects.roll_back();
    let Some((scope, request_hash)) = context.key else { return Ok(Stored::ok(run(tx)?.body)) };
    if let KeyClaim::Answered(record) = tx.claim_key(scope, context.now)? {
        require_same_request(record.request_hash, *request_hash)?;
        return Stored::replay(record);
    }
    let mut result = None;
    tx.nested(&mut |tx| {
        let done = run(tx);
        let outcome = if done.is_ok() { Outcome::Commit } else { Outcome::RollBack };
        result = Some(done);
        outcome
    })?;
    let done = result.unwrap_or_else(|| Err(Fault::new(ErrorCode::Internal, "the operation did not run")));
    let (stored, compact) = match done {
        Ok(Done { body, compact }) => (Stored::ok(body), compact),
        // An internal error is not a response to replay.
        Err(fault) if fault.code.status() >= 500 => return Err(fault),
        Err(fault) => {
            context.effects.roll_back();
            (Stored::error(&fault, context.correlation_id), None)
        }
    };
    tx.record_key(scope, &key_record(&stored, compact, *request_hash, context))?;
    Ok(stored)
}

fn key_record(
    stored: &Stored,
    compact: Option<Value>,
    request_hash: Sha256Hash,
    context: &Context<'_>,
) -> KeyRecord {
    let truncated = stored.body.len() > KeyRecord::MAX_BODY_BYTES;
    KeyRecord {
        request_hash,
        response_status: stored.status,
        response_code: stored.error.map(|code| code.to_string()),
        response_hash: Sha256Hash::of(stored.body.as_bytes()),
        response_body: match compact {
            Some(compact) if truncated => compact.to_string(),
            _ => stored.body.clone(),
        },
        response_size_bytes: stored.body.len() as u64,
        response_truncated: truncated,
        created_at: context.now,
        expires_at: context.now.plus(context.settings.idempotency_ttl),
        correlation_id: context.correlation_id.clone(),
    }
}

impl Stored {
    pub(crate) const fn ok(body: String) -> Self {
        Self {
            status: 200,
            error: None,
            body,
            replayed: false,
            truncated: false,
            message: None,
            is_logged: false,
        }
    }

    fn error(fault: &Fault, correlation_id: &CorrelationId) -> Self {
        Self {
            status: fault.code.status(),
            error: Some(fault.code),
            message: Some(fault.to_string()),
            ..Self::ok(error_body(fault, correlation_id))
        }
    }

    fn replay(record: KeyRecord) -> Result<Self, Fault> {
        let known = |code: &str| {
            let unknown = || StoreError::corrupt("idempotency_keys", format!("unknown error code {code}"));
            ErrorCode::from_wire(code).ok_or_else(unknown)
        };
        let error = record.response_code.as_deref().map(known).transpose()?;
        Ok(Self {
            status: record.response_status,
            error,
            message: error.map(|code| format!("{code}: replayed")),
            replayed: true,
            truncated: record.response_truncated,
            ..Self::ok(record.response_body)
        })
    }

    /// Adds the outcome of the call to its record in the request log.
    pub(crate) fn complete(&self, record: &RequestRecord) -> RequestRecord {
        RequestRecord {
            status_code: self.status,
            error_message: self.message.as_deref().map(|message| printable(message, MAX_MESSAGE)),
            idempotency_hit: self.replayed,
            ..record.clone()
        }
    }
}
