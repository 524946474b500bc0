//! A call that passed its checks and can be handed to the store, more than once if necessary.

use std::sync::Arc;

use baton_core::{Fault, RequestRecord, Timestamp};
use baton_store::{Durability, Pending, Store, Tx};
use serde_json::Value;

use crate::call::Call;
use crate::call_record::add_session;
use crate::context::{Attempt, Context, Environment};
use crate::effects::CallEffects;
use crate::operation::{OnStore, Operation, RequestLogging};
use crate::prepare::{Prepared, prepare};
use crate::transact::{Done, Stored, transact};

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
    work: Arc<dyn Work>,
}

impl Execution {
    /// Hands the call to the store.
    pub(crate) fn enqueue(&self, attempt: Attempt) -> Pending<Stored, Fault> {
        let work = self.work.clone();
        let run = move |tx: &mut dyn Tx| work.run(tx, attempt);
        if self.is_write { self.store.write(Durability::Full, run) } else { self.store.read(run) }
    }

    /// Answers the call while the store is unavailable. Returns `None` if the operation cannot.
    pub(crate) fn without_store(&self) -> Option<Result<Stored, Fault>> {
        self.work.without_store()
    }
}

/// Checks the parameters of a call.
pub(crate) fn submit<O: Operation<OnStore>>(
    submission: Submission,
    params: Value,
) -> Result<Execution, Fault> {
    let Submission { store, environment, call, now, effects, record } = submission;
    let context = Context { store: Some(&store), ..environment.context(&call, now, &effects) };
    let prepared = prepare::<O>(&call, &context, params)?;
    let is_write = O::EFFECT.is_write();
    let log = match record {
        Some(_) if O::REQUEST_LOGGING == RequestLogging::OnFailure => Log::OnFailure,
        Some(record) if is_write => Log::InTransaction(Box::new(record)),
        _ => Log::AfterResponse,
    };
    let call = CheckedCall { environment, call, now, effects, log };
    Ok(Execution { store, is_write, work: Arc::new(TypedCall::<O> { call, prepared }) })
}

/// The part of a call that runs in the store. It must not hold the store, which holds it while it is queued.
trait Work: Send + Sync {
    fn run(&self, tx: &mut dyn Tx, attempt: Attempt) -> Result<Stored, Fault>;
    fn without_store(&self) -> Option<Result<Stored, Fault>>;
}

struct TypedCall<O: Operation<OnStore>> {
    call: CheckedCall,
    prepared: Prepared<O::Input>,
}

impl<O: Operation<OnStore>> Work for TypedCall<O> {
    fn run(&self, tx: &mut dyn Tx, attempt: Attempt) -> Result<Stored, Fault> {
        let context = self.call.context(attempt);
        let run = |tx: &mut dyn Tx| Done::of::<O>(&O::run(&context, tx, &self.prepared.input)?);
        let stored = transact(&context, self.prepared.key.as_ref(), tx, &run)?;
        self.call.log(tx, stored)
    }

    fn without_store(&self) -> Option<Result<Stored, Fault>> {
        let output = O::without_store(&self.call.context(Attempt::First), &self.prepared.input)?;
        Some(output.and_then(|output| Ok(Stored::ok(Done::of::<O>(&output)?.body))))
    }
}

/// A call without the types of its operation.
struct CheckedCall {
    environment: Arc<Environment>,
    call: Call,
    now: Timestamp,
    effects: CallEffects,
    log: Log,
}

/// When a successful call is logged.
enum Log {
    AfterResponse,
    InTransaction(Box<RequestRecord>),
    OnFailure,
}

impl CheckedCall {
    fn context(&self, attempt: Attempt) -> Context<'_> {
        Context { attempt, ..self.environment.context(&self.call, self.now, &self.effects) }
    }

    /// Logs the call in its transaction, if it is logged there.
    fn log(&self, tx: &mut dyn Tx, mut stored: Stored) -> Result<Stored, Fault> {
        if let Log::InTransaction(record) = &self.log {
            let mut record = stored.complete(record);
            add_session(&mut record, &self.effects);
            tx.log_request(&record)?;
        }
        stored.is_logged = !matches!(self.log, Log::AfterResponse);
        Ok(stored)
    }
}
