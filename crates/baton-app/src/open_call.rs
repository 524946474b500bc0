//! A call between its start and its response. It is logged however it ends, also when the client disconnects.

use std::sync::Arc;

use baton_core::{ErrorCode, Fault, RequestRecord, Timestamp, printable};
use serde_json::Value;

use crate::any_operation::AnyOperation;
use crate::call::{Call, Face, Reply};
use crate::call_record::{add_session, record_of_call};
use crate::effects::CallEffects;
use crate::execution::Submission;
use crate::operation::RequestLogging;
use crate::request_log::MAX_MESSAGE;
use crate::shared::Shared;
use crate::transact::Stored;

pub(crate) struct OpenCall {
    shared: Arc<Shared>,
    pub(crate) call: Call,
    started_at: Timestamp,
    /// Taken when the call is logged.
    record: Option<RequestRecord>,
    logging: RequestLogging,
    /// True if the transaction of the call writes its record.
    logs_in_transaction: bool,
    pub(crate) effects: CallEffects,
}

impl OpenCall {
    pub(crate) fn new(
        shared: Arc<Shared>,
        call: Call,
        operation: &'static AnyOperation,
        params: &Value,
    ) -> Self {
        let started_at = shared.clock.now();
        let record = record_of_call(&call, operation, started_at, params);
        Self {
            shared,
            call,
            started_at,
            record: Some(record),
            logging: operation.request_logging,
            logs_in_transaction: false,
            effects: CallEffects::default(),
        }
    }

    /// Lets the transaction of the call write its record, if that saves a commit. Only for callers that wait
    /// for the response: the call of a client that disconnects is logged in any case.
    pub(crate) fn log_in_transaction(&mut self) {
        self.logs_in_transaction = self.shared.log.is_written_with_calls();
    }

    /// Returns the parts of the call that the operation needs.
    pub(crate) fn submission(&self) -> Submission {
        Submission {
            store: self.shared.store.clone(),
            environment: self.shared.environment.clone(),
            call: self.call.clone(),
            now: self.started_at,
            effects: self.effects.clone(),
            record: self.record.clone().filter(|_| self.logs_in_transaction),
        }
    }

    /// Ends the call with its response.
    pub(crate) fn close(mut self, answer: Result<Stored, Fault>) -> Reply {
        self.effects.write_deferred(&self.shared.store);
        let correlation_id = self.call.correlation_id.clone();
        let (reply, message) = match answer {
            Ok(stored) => {
                let Stored { status, error, body, replayed, truncated, message, is_logged } = stored;
                self.record = self.record.take().filter(|_| !is_logged);
                (Reply { status, error, body, replayed, truncated, correlation_id }, message)
            }
            Err(fault) => {
                self.shared.store_errors.count(&fault);
                // A command prints its failure, and the cause of an internal error is only in the log. A failed replay is
                // repeated; the call that was saved to the outbox logged the cause.
                let is_printed = self.call.face == Face::Cli && fault.code != ErrorCode::Internal;
                let is_failed_replay = self.call.is_replay() && fault.code.status() >= 500;
                if is_failed_replay {
                    self.record = None;
                } else if fault.code.status() >= 500 && !is_printed {
                    let source = fault.source.as_ref().map(|source| format!("{source:?}"));
                    tracing::error!(%correlation_id, code = %fault.code, message = %fault.message, source, "a call failed");
                }
                (Reply::fault(&fault, correlation_id), Some(fault.to_string()))
            }
        };
        if let Some(record) = &mut self.record {
            record.status_code = reply.status;
            record.error_message = message.map(|message| printable(&message, MAX_MESSAGE));
            record.idempotency_hit = reply.replayed;
        }
        reply
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        let Shared { store, log, clock, .. } = &*self.shared;
        record.duration_ms = (clock.now().as_millis() - self.started_at.as_millis()).max(0);
        add_session(&mut record, &self.effects);
        let succeeded = record.status_code == 200;
        if self.call.face == Face::Page && succeeded {
            return;
        }
        if self.logging == RequestLogging::Counted && succeeded {
            log.record_repeated(store, None, record);
        } else {
            log.record(store, record);
        }
    }
}
