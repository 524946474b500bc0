//! The application: every call of every face enters through [`App::call`].

mod replay;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use baton_core::{Actor, CorrelationId, ErrorCode, Fault, RequestRecord, Timestamp, UlidSequence, printable};
use baton_store::{Durability, ReleasedReserve, Store, StoreError};
use serde_json::Value;

use self::replay::WriteGate;
pub use self::replay::replay_result;
use crate::any_operation::AnyOperation;
use crate::call::{Call, Face, Reply};
use crate::call_record::{PageRequest, blank_record};
use crate::clock::{Clock, Entropy};
use crate::context::{Attempt, Environment};
use crate::execution::Execution;
use crate::observation::{Intake, WorkQueue};
use crate::open_call::OpenCall;
use crate::request_log::{MAX_MESSAGE, RequestLog};
use crate::settings::Settings;
use crate::shared::{Shared, WriteProbe};
use crate::store_counts::{CachedCounts, CountCache};
use crate::store_errors::{StoreErrors, store_error};
use crate::threads::{block_on, on_thread};
use crate::token::Authenticator;
use crate::transact::Stored;

/// Baton, ready to be called. Clones share it.
#[derive(Clone)]
pub struct App {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}

impl App {
    /// Creates the application on a store.
    pub fn new(
        store: Store,
        settings: Settings,
        clock: impl Clock + 'static,
        entropy: impl Entropy + 'static,
        log: RequestLog,
    ) -> Self {
        let sequence = Mutex::new(UlidSequence::new());
        let environment = Arc::new(Environment { settings, entropy: Box::new(entropy), sequence });
        let shared = Shared {
            store,
            clock: Box::new(clock),
            environment,
            log,
            write_probe: WriteProbe::default(),
            counts: CountCache::default(),
            store_errors: StoreErrors::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Returns the settings of the operations.
    pub fn settings(&self) -> &Settings {
        self.shared.settings()
    }

    /// Returns a reader of hook reports for this store.
    pub fn intake(&self) -> Intake {
        Intake::new(self.settings().checkpoints.storage.blobs().cloned())
    }

    /// Returns the queue operations of a worker.
    pub fn work_queue(&self) -> WorkQueue {
        WorkQueue::of(self.shared.clone())
    }

    /// Returns an authenticator with the shared key.
    pub fn authenticator(&self, shared_key: &str) -> Authenticator {
        Authenticator::new(self.shared.clone(), shared_key)
    }

    /// Writes all queued records of the request log. Calls that end later are not recorded.
    ///
    /// A process calls this before it exits, because a thread that it does not wait for may still use the application.
    pub fn close_request_log(&self) {
        self.shared.log.close();
    }

    /// Returns the current time of the operations.
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// Checks that calls can be served: the store answers reads and accepts writes.
    ///
    /// # Errors
    ///
    /// Fails if a read or a write fails.
    pub async fn ready(&self) -> Result<(), Fault> {
        let checked = self.check_store().await;
        checked.inspect_err(|fault| self.shared.store_errors.count(fault))
    }

    async fn check_store(&self) -> Result<(), Fault> {
        let store = &self.shared.store;
        store.read::<_, Fault, _>(|tx| Ok(tx.requests(1).map(|_| ())?)).await?;
        if self.shared.write_probe.is_recent() {
            return Ok(());
        }
        if let Some(blobs) = self.settings().checkpoints.storage.blobs() {
            blobs.check_writable()?;
        }
        let now = self.now();
        // One row that is overwritten each time, without an fsync.
        let probe = move |tx: &mut dyn baton_store::Tx| {
            Ok(tx.claim_run("readiness probe", now, Timestamp::from_millis(i64::MAX))?)
        };
        store.write::<bool, Fault, _>(Durability::Lazy, probe).await?;
        self.shared.write_probe.succeeded();
        Ok(())
    }

    /// Returns 128 random bits.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn random_bits(&self) -> Result<u128, Fault> {
        self.shared.environment.entropy.bits()
    }

    /// Makes a correlation id for a call that has none. Like other ids it sorts by time.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn correlation_id(&self) -> Result<CorrelationId, Fault> {
        let millis = u64::try_from(self.now().as_millis()).unwrap_or(0);
        let bits = self.random_bits()?.to_le_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bits[..10]);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        format!("corr_{id}")
            .parse()
            .map_err(|_| Fault::new(ErrorCode::Internal, "cannot make a correlation id"))
    }

    /// Starts a call that Baton makes itself.
    ///
    /// # Errors
    ///
    /// As for [`correlation_id`](Self::correlation_id).
    pub fn own_call(&self) -> Result<Call, Fault> {
        Ok(Call {
            actor: Actor::local(),
            face: Face::Internal,
            correlation_id: self.correlation_id()?,
            idempotency_key: None,
            attachment: None,
        })
    }

    /// Calls an operation and blocks until its durable response is there. Not for use inside an async
    /// runtime.
    pub fn call_blocking(&self, operation: &'static AnyOperation, call: Call, params: Value) -> Reply {
        let mut open = OpenCall::new(self.shared.clone(), call, operation, &params);
        open.log_in_transaction();
        block_on(self.answer(operation, open, params))
    }

    /// Calls an operation and returns its durable response.
    pub async fn call(&self, operation: &'static AnyOperation, call: Call, params: Value) -> Reply {
        let open = OpenCall::new(self.shared.clone(), call, operation, &params);
        self.answer(operation, open, params).await
    }

    async fn answer(&self, operation: &'static AnyOperation, open: OpenCall, params: Value) -> Reply {
        let gate = self.replay_before_call(operation, &open.call, &params).await;
        let answer = match check_call(operation, &open, params).await {
            Ok(execution) if gate == WriteGate::Blocked && operation.effect.is_write() => {
                let message = "earlier writes are still in the outbox".to_owned();
                or_without_store(&execution, StoreError::Unavailable { message, source: None }.into())
            }
            Ok(execution) => self.execute(operation, &open, &execution).await,
            Err(fault) => Err(fault),
        };
        open.close(answer.map_err(|fault| say_if_nothing_was_stored(operation, fault)))
    }

    /// Hands a call to the store: once more after an error that a second attempt can avoid, and without the store if it is
    /// unavailable.
    async fn execute(
        &self,
        operation: &'static AnyOperation,
        open: &OpenCall,
        execution: &Execution,
    ) -> Result<Stored, Fault> {
        let mut answer = execution.enqueue(Attempt::First).await;
        let retry = self.retry(operation, &answer);
        if let Some(retry) = &retry {
            self.remove_unused_blobs(open, false).await;
            answer = execution.enqueue(retry.attempt).await;
        }
        self.remove_unused_blobs(open, is_stored(&answer)).await;
        let is_unavailable = |fault: &Fault| fault.code.status() == 503 && store_error(fault).is_some();
        self.shared.log.set_store_available(!answer.as_ref().is_err_and(is_unavailable));
        answer.or_else(|fault| or_without_store(execution, fault))
    }

    /// Decides whether a call that failed is run once more: on a full disk with the disk reserve released, and on a new
    /// snapshot if a blob was missing, because its row may have been deleted after the read began.
    fn retry(&self, operation: &'static AnyOperation, answer: &Result<Stored, Fault>) -> Option<Retry> {
        let error = store_error(answer.as_ref().err()?)?;
        self.shared.write_probe.failed();
        match error {
            StoreError::Full if operation.frees_space => Some(Retry {
                attempt: Attempt::Second { is_disk_full: true },
                _reserve: self.shared.store.release_reserve(),
            }),
            StoreError::BlobMissing { .. } => {
                Some(Retry { attempt: Attempt::Second { is_disk_full: false }, _reserve: None })
            }
            _ => None,
        }
    }

    async fn remove_unused_blobs(&self, open: &OpenCall, is_committed: bool) {
        let blobs = self.settings().checkpoints.storage.blobs();
        if let Some(removal) = open.effects.finish(is_committed, &self.shared.store, blobs)
            && let Err(error) = removal.await
        {
            tracing::warn!(%error, "cannot look for unused blobs; the next cleanup removes them");
        }
    }

    /// Answers and logs a call that never reached an operation: no credential, no such path.
    pub fn refuse(&self, refused: RefusedCall, fault: &Fault) -> Reply {
        let RefusedCall { face, correlation_id, actor_key_id, peer } = refused;
        let now = self.now();
        let reply = Reply::fault(fault, correlation_id.clone());
        let is_anonymous = actor_key_id.is_none();
        let record = RequestRecord {
            actor_key_id,
            status_code: fault.code.status(),
            error_message: Some(printable(&fault.to_string(), MAX_MESSAGE)),
            ..blank_record(now, correlation_id, &face, "")
        };
        if is_anonymous {
            self.shared.log.record_anonymous(&self.shared.store, peer, record);
        } else {
            self.shared.log.record(&self.shared.store, record);
        }
        reply
    }

    /// Logs a request for a page about the server itself. Repeated requests of a client are counted, so that health checks
    /// do not fill the log.
    pub fn log_page(&self, page: PageRequest) {
        let PageRequest { face, correlation_id, actor_key_id, peer, status, started_at } = page;
        let duration_ms = (self.now().as_millis() - started_at.as_millis()).max(0);
        let blank = blank_record(started_at, correlation_id, &face, "");
        let record = RequestRecord { actor_key_id, status_code: status, duration_ms, ..blank };
        self.shared.log.record_repeated(&self.shared.store, peer, record);
    }

    /// Returns numbers of stored rows, counted recently; none before the first count has ended.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub async fn store_counts(&self) -> Result<Option<CachedCounts>, Fault> {
        let blobs = self.settings().checkpoints.storage.blobs().cloned();
        let counted = self.shared.counts.get(&self.shared.store, blobs).await;
        counted.inspect_err(|fault| self.shared.store_errors.count(fault))
    }

    /// Returns the number of store failures since the start of the process, by kind.
    pub fn store_errors(&self) -> Vec<(&'static str, u64)> {
        self.shared.store_errors.by_kind()
    }

    /// Returns the number of records that were not written to the request log, because too many were queued or the store
    /// failed.
    pub fn unlogged_calls(&self) -> u64 {
        self.shared.log.dropped()
    }
}

/// Checks the parameters of a call, on a thread of its own if that may take long.
async fn check_call(
    operation: &'static AnyOperation,
    open: &OpenCall,
    params: Value,
) -> Result<Execution, Fault> {
    let submission = open.submission();
    if !operation.request.is_slow {
        return Execution::of(operation, submission, params);
    }
    on_thread(move || Execution::of(operation, submission, params))
        .await
        .unwrap_or_else(|| Err(Fault::new(ErrorCode::Internal, "internal error; nothing was stored")))
}

/// Answers a call that failed because the store is unavailable. A full disk does not count: nothing else can be written
/// either.
fn or_without_store(execution: &Execution, fault: Fault) -> Result<Stored, Fault> {
    let is_unavailable = fault.code == ErrorCode::StoreUnavailable
        && store_error(&fault).is_some_and(|error| !matches!(error, StoreError::Full));
    let answer = if is_unavailable { execution.without_store() } else { None };
    answer.unwrap_or(Err(fault))
}

/// Adds to the failure of a write that nothing was stored, if its message does not imply that.
fn say_if_nothing_was_stored(operation: &AnyOperation, mut fault: Fault) -> Fault {
    let is_rolled_back = matches!(
        store_error(&fault),
        Some(
            StoreError::Unavailable { .. }
                | StoreError::Closed
                | StoreError::Encode { .. }
                | StoreError::Statement { .. }
                | StoreError::WorkFailed
        )
    );
    if operation.effect.is_write() && is_rolled_back {
        fault.message.push_str("; nothing was stored");
    }
    fault
}

/// Returns true if the effect of a call is in the database. An error that is stored for replays has none.
fn is_stored(answer: &Result<Stored, Fault>) -> bool {
    answer.as_ref().is_ok_and(|stored| stored.error.is_none())
}

/// A second run of a call.
struct Retry {
    attempt: Attempt,
    /// Held until the second run has ended and its unused blobs are removed.
    _reserve: Option<ReleasedReserve>,
}

/// A call that is rejected before its operation is known.
#[derive(Debug, Clone)]
pub struct RefusedCall {
    /// Face that the call came through.
    pub face: Face,
    pub correlation_id: CorrelationId,
    /// Credential, if there was a valid one.
    pub actor_key_id: Option<baton_core::ActorKeyId>,
    /// Address of the client, if there is one.
    pub peer: Option<IpAddr>,
}
