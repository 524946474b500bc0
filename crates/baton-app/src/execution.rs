//! A call that passed its checks and can be handed to the store, more than once if necessary.

use std::sync::Arc;

use baton_core::{Fault, RequestRecord, Timestamp};
use baton_store::{Durability, Pending, Store, Tx};
use serde_json::Value;

use crate::any_operation::AnyOperation;
use crate::call::Call;
use crate::call_record::add_session;
use crate::context::{Attempt, Context, Environment};
use crate::effects::CallEffects;
use crate::operation::RequestLogging;
use crate::prepare::{Prepared, prepare};
use crate::transact::{Stored, transact};

/// A call on its way to the store.
pub(crate) struct Submission {
    pub(crate) store: Store,
    pub(crate) environment: Arc<Environment>,
    pub(crate) call: Call,
    pub(crate) now: Timestamp,
    pub(crate) effects: CallEffects,
    /// Record for the request log, if it is written in the transaction of the call. That saves a process that makes only
    /// one call a commit.
    pub(crate) record: Option<RequestRecord>,
}

/// A call that passed its checks.
pub(crate) struct Execution {
    store: Store,
    is_write: bool,
    call: Arc<CheckedCall>,
}

impl Execution {
    /// Checks the parameters of a call.
    pub(crate) fn of(operation: &AnyOperation, submission: Submission, params: Value) -> Result<Self, Fault> {
        let Submission { store, environment, call, now, effects, record } = submission;
        let context = Context { store: Some(&store), ..environment.context(&call, now, &effects) };
        let prepared = prepare(operation, &call, &context, params)?;
        let is_write = operation.effect.is_write();
        let log = match record {
            Some(_) if operation.request_logging == RequestLogging::OnFailure => Log::OnFailure,
            Some(record) if is_write => Log::InTransaction(Box::new(record)),
            _ => Log::AfterResponse,
        };
        let call = Arc::new(CheckedCall { environment, call, now, effects, prepared, log });
        Ok(Self { store, is_write, call })
    }

    /// Hands the call to the store.
    pub(crate) fn enqueue(&self, attempt: Attempt) -> Pending<Stored, Fault> {
        let call = self.call.clone();
        let run = move |tx: &mut dyn Tx| call.run(tx, attempt);
        if self.is_write { self.store.write(Durability::Full, run) } else { self.store.read(run) }
    }

    /// Answers the call while the store is unavailable. Returns `None` if the operation cannot.
    pub(crate) fn without_store(&self) -> Option<Result<Stored, Fault>> {
        let context = self.call.context(Attempt::First);
        if context.is_replay() {
            return None;
        }
        let done = self.call.prepared.input.without_store(&context)?;
        Some(done.map(|done| Stored::ok(done.body)))
    }
}

/// The part of a call that runs in the store. It must not hold the store, which holds it while it is queued.
struct CheckedCall {
    environment: Arc<Environment>,
    call: Call,
    now: Timestamp,
    effects: CallEffects,
    prepared: Prepared,
    log: Log,
}

/// When a successful call is logged.
enum Log {
    AfterResponse,
    InTransaction(Box<RequestRecord>),
    OnFailure,
}

impl CheckedCall {
    fn run(&self, tx: &mut dyn Tx, attempt: Attempt) -> Result<Stored, Fault> {
        let context = self.context(attempt);
        let stored = transact(&context, tx, &|tx| self.prepared.input.run(&context, tx))?;
        self.log(tx, stored)
    }

    fn context(&self, attempt: Attempt) -> Context<'_> {
        let key = self.prepared.key.as_ref();
        Context { attempt, key, ..self.environment.context(&self.call, self.now, &self.effects) }
    }

    /// Logs the call in its transaction, if it is logged there.
    fn log(&self, tx: &mut dyn Tx, mut stored: Stored) -> Result<Stored, Fault> {
        if let Log::InTransaction(record) = &self.log {
            let mut record = stored.complete(record);
            add_session(&mut record, &self.effects);
            tx.log_request(&record)?;
        }
        stored.is_logged = match self.log {
            Log::AfterResponse => false,
            Log::InTransaction(_) => true,
            // An error that is stored for replays is a failure too.
            Log::OnFailure => stored.error.is_none(),
        };
        Ok(stored)
    }
}
