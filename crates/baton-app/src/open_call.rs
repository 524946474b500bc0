//! A call between its start and its answer: prepared, handed to the store, rescued where it can be, logged in any case.

use std::sync::Arc;

use baton_core::{ErrorCode, Fault, RequestRecord, Timestamp};
use baton_store::{Durability, Pending, Store, StoreError, Tx};
use serde_json::Value;

use crate::after_transaction::AfterTransaction;
use crate::afterthought::Afterthoughts;
use crate::app::App;
use crate::call::{Call, Reply};
use crate::call_record::CallSession;
use crate::operation::{Attempt, Context, Effect, Operation};
use crate::prepare::{MAX_MESSAGE, Prepared, clip, prepare};
use crate::transact::{Failed, Stored, Surroundings};

/// A call under way: refused before it reached the store, or waiting for it.
#[doc(hidden)]
pub enum Answered {
    Refused(Fault),
    Waiting(Pending<Stored, Failed>, Fallback),
}

/// What a call can still do when the store failed it.
#[doc(hidden)]
pub struct Fallback {
    /// Submits the same work once more.
    pub(crate) again: Box<dyn FnOnce(Attempt) -> Pending<Stored, Failed> + Send>,
    /// An answer without the store.
    pub(crate) rescue: Box<dyn FnOnce(Fault) -> Result<Stored, Fault> + Send>,
}

/// A call between its start and its answer. It is logged however it ends, also when the client goes away.
#[doc(hidden)]
pub struct OpenCall {
    pub(crate) app: App,
    pub(crate) call: Call,
    pub(crate) started_at: Timestamp,
    pub(crate) record: Option<RequestRecord>,
    /// Whether the transaction of its effect writes the log too, which saves a process that does one thing a commit.
    pub(crate) logs_with_effect: bool,
    /// Whether it is an attempt of our own, which the call that it was made for outlives.
    pub(crate) is_attempt: bool,
    /// Whether successful calls of the operation are counted in the request log.
    pub(crate) is_counted: bool,
    /// The session that the call concerns.
    pub(crate) session: CallSession,
    /// What is written once the answer is there.
    pub(crate) afterthoughts: Afterthoughts,
    /// What is done outside the database when the transaction has ended.
    pub(crate) after: AfterTransaction,
    /// Whether it may write.
    pub(crate) turn: Turn,
}

/// Whether it is the turn of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is.
    Come,
    /// What waits beside the database comes before it, and could not be taken in: as if the database were still away.
    Behind,
}

impl Turn {
    /// Tells it by what came of taking in what waits. On a full disk room may be made for the call all the same.
    pub(crate) fn after(taken_in: &Result<Stored, Fault>) -> Self {
        match taken_in {
            Err(fault)
                if fault.code == ErrorCode::StoreUnavailable
                    && !matches!(store_error(fault), Some(StoreError::Full)) =>
            {
                Self::Behind
            }
            _ => Self::Come,
        }
    }
}

impl OpenCall {
    /// The pipeline of one operation, up to handing it to the store.
    pub(crate) fn submit<O: Operation>(&self, params: Value) -> Answered {
        let store = &self.app.inner.store;
        let surroundings = &self.app.inner.surroundings;
        let context = Context {
            store: Some(store),
            ..surroundings.context(
                &self.call,
                self.started_at,
                &self.afterthoughts,
                &self.after,
                &self.session,
            )
        };
        let prepared = match prepare::<O>(&self.call, &context, params) {
            Ok(prepared) => prepared,
            Err(fault) => return Answered::Refused(fault),
        };
        let prepared = Arc::new(prepared);
        let (submission, rescued) = (self.submission::<O>(prepared.clone()), self.rescue::<O>(prepared));
        let fallback = Fallback {
            again: Box::new({
                let submission = submission.clone();
                move |attempt| submission.enqueue(attempt)
            }),
            rescue: rescued,
        };
        Answered::Waiting(submission.enqueue(Attempt::First), fallback)
    }

    fn submission<O: Operation>(&self, prepared: Arc<Prepared<O::Params>>) -> Submission<O> {
        Submission {
            store: self.app.inner.store.clone(),
            surroundings: self.app.inner.surroundings.clone(),
            call: self.call.clone(),
            now: self.started_at,
            prepared,
            afterthoughts: self.afterthoughts.clone(),
            after: self.after.clone(),
            session: self.session.clone(),
            turn: self.turn,
            log: match &self.record {
                Some(_) if self.logs_with_effect && O::TELLS_OF_ITSELF => Log::Needless,
                Some(record) if self.logs_with_effect && O::EFFECT == Effect::Write => {
                    Log::WithEffect(Box::new(record.clone()))
                }
                _ => Log::Afterwards,
            },
        }
    }

    /// What the operation can do when the store cannot be used. A full disk is not that: nothing more fits anywhere.
    fn rescue<O: Operation>(
        &self,
        prepared: Arc<Prepared<O::Params>>,
    ) -> Box<dyn FnOnce(Fault) -> Result<Stored, Fault> + Send> {
        let (surroundings, call, now) =
            (self.app.inner.surroundings.clone(), self.call.clone(), self.started_at);
        Box::new(move |fault| match store_error(&fault) {
            Some(error)
                if fault.code == ErrorCode::StoreUnavailable && !matches!(error, StoreError::Full) =>
            {
                surroundings.rescue::<O>(&call, now, &prepared).unwrap_or(Err(fault))
            }
            _ => Err(fault),
        })
    }

    pub(crate) fn close(mut self, answer: Result<Stored, Fault>) -> Reply {
        self.afterthoughts.write(&self.app.inner.store);
        let correlation_id = self.call.correlation_id.clone();
        let (reply, message) = match answer {
            Ok(stored) => {
                let Stored { status, error, body, replayed, truncated, message, logged } = stored;
                self.record = self.record.take().filter(|_| !logged);
                (Reply { status, error, body, replayed, truncated, correlation_id }, message)
            }
            Err(fault) => {
                self.app.inner.store_errors.count(&fault);
                if fault.code.status() >= 500 && !self.is_attempt {
                    let source = fault.source.as_ref().map(|source| format!("{source:?}"));
                    tracing::error!(%correlation_id, code = %fault.code, message = %fault.message, source, "a call failed");
                }
                (Reply::fault(&fault, correlation_id), Some(fault.to_string()))
            }
        };
        if let Some(record) = &mut self.record {
            record.status_code = reply.status;
            record.error_message = message.map(|message| clip(&message, MAX_MESSAGE));
            record.idempotency_hit = reply.replayed;
        }
        reply
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            let now = self.app.now();
            record.duration_ms = (now.as_millis() - self.started_at.as_millis()).max(0);
            self.session.add_to(&mut record);
            if self.is_counted && record.status_code == 200 {
                self.app.log_repeated(record);
            } else {
                self.app.log(record);
            }
        }
    }
}

/// The store's part of a call, which can be handed to it more than once.
struct Submission<O: Operation> {
    store: Store,
    surroundings: Arc<Surroundings>,
    call: Call,
    now: Timestamp,
    prepared: Arc<Prepared<O::Params>>,
    afterthoughts: Afterthoughts,
    after: AfterTransaction,
    session: CallSession,
    turn: Turn,
    log: Log,
}

/// Where a call is logged that succeeds.
#[derive(Clone)]
enum Log {
    /// After its answer, by whoever closes it.
    Afterwards,
    /// In the transaction of its effect.
    WithEffect(Box<RequestRecord>),
    /// Nowhere: what it stores tells of it.
    Needless,
}

impl<O: Operation> Clone for Submission<O> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            surroundings: self.surroundings.clone(),
            call: self.call.clone(),
            now: self.now,
            prepared: self.prepared.clone(),
            afterthoughts: self.afterthoughts.clone(),
            after: self.after.clone(),
            session: self.session.clone(),
            turn: self.turn,
            log: self.log.clone(),
        }
    }
}

impl<O: Operation> Submission<O> {
    fn enqueue(&self, attempt: Attempt) -> Pending<Stored, Failed> {
        let Self { store, surroundings, call, now, prepared, afterthoughts, after, session, turn, log } =
            self.clone();
        let work = move |tx: &mut dyn Tx| {
            if turn == Turn::Behind && O::EFFECT == Effect::Write {
                let message = "what waits beside the database comes first".to_owned();
                return Err(StoreError::Unavailable { message, source: None }.into());
            }
            let context =
                Context { attempt, ..surroundings.context(&call, now, &afterthoughts, &after, &session) };
            let mut stored = surroundings.transact::<O>(&context, &prepared, tx)?;
            if let Log::WithEffect(record) = &log {
                let mut record = surroundings.filled_in(record, &stored);
                session.add_to(&mut record);
                tx.log_request(&record)?;
            }
            stored.logged = !matches!(log, Log::Afterwards);
            Ok(stored)
        };
        match O::EFFECT {
            Effect::Read => store.read(work),
            Effect::Write => store.write(Durability::Full, work),
        }
    }
}

/// The failure of the store behind a fault; none when something else was the matter, such as a key that is missing.
pub(crate) fn store_error(fault: &Fault) -> Option<&StoreError> {
    fault.source.as_ref()?.downcast_ref()
}
