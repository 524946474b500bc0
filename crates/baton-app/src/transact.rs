//! The second part of a call: claim its key, run the operation and keep the answer, all in one transaction.

use std::sync::Mutex;

use baton_core::{
    CorrelationId, ErrorCode, Fault, KeyClaim, KeyRecord, RequestRecord, Sha256Hash, Timestamp, UlidSequence,
};
use baton_store::{Outcome, StoreError, Tx};
use serde_json::Value;

use crate::after_transaction::AfterTransaction;
use crate::afterthought::Afterthoughts;
use crate::call::{Call, error_body};
use crate::call_record::CallSession;
use crate::clock::Entropy;
use crate::operation::{Attempt, Context, Operation, store_fault};
use crate::prepare::{MAX_MESSAGE, Prepared, clip};
use crate::settings::Settings;

/// What operations go by. Work that waits in the store holds this alone, so that the store never keeps itself alive.
pub(crate) struct Surroundings {
    pub(crate) settings: Settings,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) sequence: Mutex<UlidSequence>,
}

/// What the store's part of a call comes to.
#[derive(Debug)]
pub struct Stored {
    pub(crate) status: u16,
    pub(crate) error: Option<ErrorCode>,
    pub(crate) body: String,
    pub(crate) replayed: bool,
    pub(crate) truncated: bool,
    pub(crate) message: Option<String>,
    pub(crate) logged: bool,
}

/// A failure of the transaction itself, as opposed to an answer that says no.
#[derive(Debug)]
pub struct Failed(pub(crate) Fault);

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(store_fault(error))
    }
}

impl Surroundings {
    pub(crate) fn transact<O: Operation>(
        &self,
        context: &Context<'_>,
        prepared: &Prepared<O::Params>,
        tx: &mut dyn Tx,
    ) -> Result<Stored, Failed> {
        context.after.roll_back();
        let Some((scope, request_hash)) = &prepared.key else {
            let output = O::run(context, tx, &prepared.params).map_err(Failed)?;
            return Ok(Stored::ok(body_of(&output)?));
        };
        if let KeyClaim::Answered(record) = tx.claim_key(scope, context.now)? {
            record.require_same_request(*request_hash).map_err(Failed)?;
            return Ok(Stored::replay(record));
        }
        let mut result = None;
        tx.nested(&mut |tx| {
            let output = O::run(context, tx, &prepared.params);
            let outcome = if output.is_ok() { Outcome::Keep } else { Outcome::Undo };
            result = Some(output);
            outcome
        })?;
        let output =
            result.unwrap_or_else(|| Err(Fault::new(ErrorCode::Internal, "the operation did not run")));
        let (stored, compact) = match output {
            Ok(output) => (Stored::ok(body_of(&output)?), Some(O::compact(&output))),
            // What went wrong inside is not an answer to be remembered.
            Err(fault) if fault.code.status() >= 500 => return Err(Failed(fault)),
            Err(fault) => {
                context.after.roll_back();
                (Stored::refused(&fault, context.correlation_id), None)
            }
        };
        tx.record_key(scope, &self.key_record(&stored, compact, *request_hash, context))?;
        Ok(stored)
    }

    /// Lets an operation answer without the store.
    pub(crate) fn rescue<O: Operation>(
        &self,
        call: &Call,
        now: Timestamp,
        prepared: &Prepared<O::Params>,
    ) -> Option<Result<Stored, Fault>> {
        let (afterthoughts, after) = (Afterthoughts::default(), AfterTransaction::default());
        let session = CallSession::default();
        let output = O::rescue(&self.context(call, now, &afterthoughts, &after, &session), &prepared.params)?;
        Some(output.and_then(|output| Ok(Stored::ok(body_of(&output).map_err(|Failed(fault)| fault)?))))
    }

    pub(crate) fn context<'a>(
        &'a self,
        call: &'a Call,
        now: Timestamp,
        afterthoughts: &'a Afterthoughts,
        after: &'a AfterTransaction,
        session: &'a CallSession,
    ) -> Context<'a> {
        Context {
            actor: &call.actor,
            correlation_id: &call.correlation_id,
            attachment: call.attachment.as_ref(),
            now,
            settings: &self.settings,
            entropy: self.entropy.as_ref(),
            sequence: &self.sequence,
            afterthoughts,
            after,
            attempt: Attempt::First,
            store: None,
            session,
        }
    }

    /// Fills a record of the request log in with how the call went.
    pub(crate) fn filled_in(&self, record: &RequestRecord, stored: &Stored) -> RequestRecord {
        RequestRecord {
            status_code: stored.status,
            error_message: stored.message.as_deref().map(|message| clip(message, MAX_MESSAGE)),
            idempotency_hit: stored.replayed,
            ..record.clone()
        }
    }

    fn key_record(
        &self,
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
            expires_at: context.now.plus(self.settings.idempotency_ttl),
            correlation_id: context.correlation_id.clone(),
        }
    }
}

impl Stored {
    const fn ok(body: String) -> Self {
        Self {
            status: 200,
            error: None,
            body,
            replayed: false,
            truncated: false,
            message: None,
            logged: false,
        }
    }

    fn refused(fault: &Fault, correlation_id: &CorrelationId) -> Self {
        Self {
            status: fault.code.status(),
            error: Some(fault.code),
            body: error_body(fault, correlation_id),
            replayed: false,
            truncated: false,
            message: Some(fault.to_string()),
            logged: false,
        }
    }

    fn replay(record: KeyRecord) -> Self {
        let error = record.response_code.as_deref().and_then(ErrorCode::from_wire);
        Self {
            status: record.response_status,
            error,
            message: error.map(|code| format!("{code}: replayed")),
            body: record.response_body,
            replayed: true,
            truncated: record.response_truncated,
            logged: false,
        }
    }
}

fn body_of(output: &impl serde::Serialize) -> Result<String, Failed> {
    serde_json::to_string(output).map_err(|error| {
        Failed(Fault::new(ErrorCode::Internal, "the answer could not be written").caused_by(error))
    })
}
