//! A call that passed its checks and can be handed to the store, more than once if necessary.

use std::sync::Arc;

use baton_core::{Fault, RequestRecord, Timestamp};
use baton_store::{Durability, Pending, Store, Tx};
use serde_json::Value;

use crate::call::Call;
use crate::call_record::add_session;
use crate::context::{Attempt, Context, Environment};
use crate::effects::CallEffects;
use crate::operation::{Operation, RequestLogging};
use crate::prepare::{Prepared, prepare};
use crate::transact::{Stored, body_of, transact};

/// A call on its way to the store.
#[doc(hidden)]
pub struct Submission {
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
#[doc(hidden)]
pub trait Execution: Send + Sync {
    /// Hands the call to the store.
    fn enqueue(&self, attempt: Attempt) -> Pending<Stored, Fault>;
    /// Answers the call while the store is unavailable. Returns `None` if the operation cannot.
    fn without_store(&self) -> Option<Result<Stored, Fault>>;
}

/// Checks the parameters of a call.
pub(crate) fn submit<O: Operation>(
    submission: Submission,
    params: Value,
) -> Result<Box<dyn Execution>, Fault> {
    let Submission { store, environment, call, now, effects, record } = submission;
    let context = Context { store: Some(&store), ..environment.context(&call, now, &effects) };
    let prepared = prepare::<O>(&call, &context, params)?;
    let log = match record {
        Some(_) if O::REQUEST_LOGGING == RequestLogging::OnFailure => Log::OnFailure,
        Some(record) if O::EFFECT.is_write() => Log::InTransaction(Box::new(record)),
        _ => Log::AfterResponse,
    };
    let work = Work::<O> { environment, call, now, effects, prepared, log };
    Ok(Box::new(Typed { store, work: Arc::new(work) }))
}

/// When a successful call is logged.
enum Log {
    AfterResponse,
    InTransaction(Box<RequestRecord>),
    OnFailure,
}

struct Typed<O: Operation> {
    store: Store,
    work: Arc<Work<O>>,
}

/// The part of a call that runs in the store. It must not hold the store, which holds it while it is queued.
struct Work<O: Operation> {
    environment: Arc<Environment>,
    call: Call,
    now: Timestamp,
    effects: CallEffects,
    prepared: Prepared<O::Input>,
    log: Log,
}

impl<O: Operation> Execution for Typed<O> {
    fn enqueue(&self, attempt: Attempt) -> Pending<Stored, Fault> {
        let work = self.work.clone();
        let run = move |tx: &mut dyn Tx| work.run(tx, attempt);
        if O::EFFECT.is_write() { self.store.write(Durability::Full, run) } else { self.store.read(run) }
    }

    fn without_store(&self) -> Option<Result<Stored, Fault>> {
        let output = O::without_store(&self.work.context(Attempt::First), &self.work.prepared.input)?;
        Some(output.and_then(|output| Ok(Stored::ok(body_of(&output)?))))
    }
}

impl<O: Operation> Work<O> {
    fn context(&self, attempt: Attempt) -> Context<'_> {
        Context { attempt, ..self.environment.context(&self.call, self.now, &self.effects) }
    }

    fn run(&self, tx: &mut dyn Tx, attempt: Attempt) -> Result<Stored, Fault> {
        let mut stored = transact::<O>(&self.context(attempt), &self.prepared, tx)?;
        if let Log::InTransaction(record) = &self.log {
            let mut record = stored.complete(record);
            add_session(&mut record, &self.effects);
            tx.log_request(&record)?;
        }
        stored.is_logged = !matches!(self.log, Log::AfterResponse);
        Ok(stored)
    }
}
