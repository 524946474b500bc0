//! The one way in: authorise, validate, scan for secrets, begin, claim the key, run, record, commit, log.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::{Actor, CorrelationId, ErrorCode, Fault, RequestRecord, Timestamp, UlidSequence};
use baton_store::{Durability, ReleasedReserve, SpillFolder, Store, StoreError};
use serde_json::{Value, json};

use crate::after_transaction::{AfterTransaction, report_removal};
use crate::afterthought::Afterthoughts;
use crate::call::{Call, Face, Reply};
use crate::call_record::{CallSession, PageRequest, blank_record, record_of_call};
use crate::checkpoint::{TakeIn, TakeInOutput};
use crate::clock::{Clock, Entropy};
use crate::observation::Intake;
use crate::open_call::{Answered, OpenCall, Turn, store_error};
use crate::operation::{AnyOperation, Attempt, operation as typed, store_fault};
use crate::prepare::{MAX_MESSAGE, clip};
use crate::request_log::RequestLog;
use crate::settings::Settings;
use crate::store_counts::{CachedCounts, CountCache};
use crate::store_errors::StoreErrors;
use crate::transact::{Failed, Stored, Surroundings};

/// Baton, ready to be called. Clones share it.
#[derive(Clone)]
pub struct App {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    clock: Box<dyn Clock>,
    pub(crate) surroundings: Arc<Surroundings>,
    log: RequestLog,
    write_probe: WriteProbe,
    counts: CountCache,
    pub(crate) store_errors: StoreErrors,
}

/// Remembers when the readiness check last wrote successfully, so that frequent checks do not all write.
#[derive(Default)]
struct WriteProbe(Mutex<Option<Instant>>);

impl WriteProbe {
    /// How long a successful write counts.
    const GOOD_FOR: Duration = Duration::from_secs(2);

    fn is_recent(&self) -> bool {
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.is_some_and(|at| at.elapsed() < Self::GOOD_FOR)
    }

    fn succeeded(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn failed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}

impl App {
    /// Puts the parts together.
    pub fn new(
        store: Store,
        settings: Settings,
        clock: impl Clock + 'static,
        entropy: impl Entropy + 'static,
        log: RequestLog,
    ) -> Self {
        let sequence = Mutex::new(UlidSequence::new());
        let surroundings = Arc::new(Surroundings { settings, entropy: Box::new(entropy), sequence });
        let inner = Inner {
            store,
            clock: Box::new(clock),
            surroundings,
            log,
            write_probe: WriteProbe::default(),
            counts: CountCache::default(),
            store_errors: StoreErrors::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The store behind the operations.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The numbers that operations go by.
    pub fn settings(&self) -> &Settings {
        &self.inner.surroundings.settings
    }

    /// Reads reports for this store.
    pub fn intake(&self) -> Intake {
        Intake::new(self.settings().checkpoints.vault.blobs().cloned())
    }

    /// The present, as operations see it.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Checks that calls can be served: the store answers reads and accepts writes.
    pub async fn ready(&self) -> Result<(), Fault> {
        let checked = self.check_store().await;
        checked.inspect_err(|fault| self.inner.store_errors.count(fault))
    }

    async fn check_store(&self) -> Result<(), Fault> {
        let read: Result<(), Failed> = self.inner.store.read(|tx| Ok(tx.requests(1).map(|_| ())?)).await;
        read.map_err(|Failed(fault)| fault)?;
        if self.inner.write_probe.is_recent() {
            return Ok(());
        }
        if let Some(blobs) = self.settings().checkpoints.vault.blobs() {
            blobs.check_writable().map_err(store_fault)?;
        }
        let now = self.now();
        // One row that is overwritten each time, without an fsync.
        let written: Result<bool, Failed> = self
            .inner
            .store
            .write(Durability::Lazy, move |tx| {
                Ok(tx.take_turn("readiness probe", now, Timestamp::from_millis(i64::MAX))?)
            })
            .await;
        written.map_err(|Failed(fault)| fault)?;
        self.inner.write_probe.succeeded();
        Ok(())
    }

    /// Gives 128 random bits.
    pub(crate) fn random_bits(&self) -> Result<u128, Fault> {
        self.inner.surroundings.entropy.bits()
    }

    /// Makes a correlation id for a call that brought none. It sorts by time, as ids do.
    pub fn correlation_id(&self) -> Result<CorrelationId, Fault> {
        let millis = u64::try_from(self.now().as_millis()).unwrap_or(0);
        let bits = self.inner.surroundings.entropy.bits()?.to_le_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bits[..10]);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        format!("corr_{id}")
            .parse()
            .map_err(|_| Fault::new(ErrorCode::Internal, "could not make a correlation id"))
    }

    /// Begins a call that nobody from outside makes.
    pub fn own_call(&self) -> Result<Call, Fault> {
        Ok(Call {
            actor: Actor::local(),
            face: Face::Internal,
            correlation_id: self.correlation_id()?,
            idempotency_key: None,
            attachment: None,
        })
    }

    /// Calls an operation and awaits its durable answer.
    pub async fn call(&self, operation: &'static dyn AnyOperation, call: Call, params: Value) -> Reply {
        let turn = match self.taking_in(operation) {
            Some(take_in) => {
                let (reply, turn) = self.submit_internal(&take_in).await;
                self.taken_in(&reply);
                turn
            }
            None => Turn::Come,
        };
        self.run(operation, call, params, turn).await
    }

    /// Runs a call of its own, and tells whether those that it is made for may go on. It has no fallback, so that one never
    /// leads to another.
    async fn submit_internal(&self, internal: &InternalCall) -> (Reply, Turn) {
        let InternalCall { operation, call, params } = internal;
        let mut open = self.open(call.clone(), *operation, params);
        open.is_attempt = true;
        let answer = match operation.submit(&open, params.clone()) {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending, _) => pending.await.map_err(|Failed(fault)| fault),
        };
        self.remove_unused_blobs(&open, is_stored(&answer)).await;
        let turn = Turn::after(&answer);
        (open.close(answer), turn)
    }

    fn submit_internal_blocking(&self, internal: &InternalCall) -> (Reply, Turn) {
        let InternalCall { operation, call, params } = internal;
        let mut open = self.open(call.clone(), *operation, params);
        open.is_attempt = true;
        let answer = match operation.submit(&open, params.clone()) {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending, _) => pending.wait().map_err(|Failed(fault)| fault),
        };
        self.remove_unused_blobs_blocking(&open, is_stored(&answer));
        let turn = Turn::after(&answer);
        (open.close(answer), turn)
    }

    async fn run(
        &self,
        operation: &'static dyn AnyOperation,
        call: Call,
        params: Value,
        turn: Turn,
    ) -> Reply {
        let mut open = self.open(call, operation, &params);
        open.turn = turn;
        let correlation_id = open.call.correlation_id.clone();
        let Some((open, answered)) = submit_aside(operation, open, params).await else {
            let fault = Fault::new(ErrorCode::Internal, "something failed inside baton; nothing was stored");
            return Reply::fault(&fault, correlation_id);
        };
        let answer = match answered {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending, fallback) => {
                let mut answer = pending.await;
                if let Some(retry) = self.retry(operation, &answer) {
                    self.remove_unused_blobs(&open, false).await;
                    answer = (fallback.again)(retry.attempt).await;
                    self.remove_unused_blobs(&open, is_stored(&answer)).await;
                } else {
                    self.remove_unused_blobs(&open, is_stored(&answer)).await;
                }
                answer.or_else(|Failed(fault)| (fallback.rescue)(fault))
            }
        };
        open.close(answer)
    }

    /// Calls an operation and blocks until its durable answer is there.
    pub fn call_blocking(&self, operation: &'static dyn AnyOperation, call: Call, params: Value) -> Reply {
        let turn = match self.taking_in(operation) {
            Some(take_in) => {
                let (reply, turn) = self.submit_internal_blocking(&take_in);
                self.taken_in(&reply);
                turn
            }
            None => Turn::Come,
        };
        self.run_blocking(operation, call, params, turn)
    }

    fn run_blocking(
        &self,
        operation: &'static dyn AnyOperation,
        call: Call,
        params: Value,
        turn: Turn,
    ) -> Reply {
        let mut open = self.open(call, operation, &params);
        open.turn = turn;
        open.logs_with_effect = self.inner.log.goes_with_effects();
        let answer = match operation.submit(&open, params) {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending, fallback) => {
                let mut answer = pending.wait();
                if let Some(retry) = self.retry(operation, &answer) {
                    self.remove_unused_blobs_blocking(&open, false);
                    answer = (fallback.again)(retry.attempt).wait();
                    self.remove_unused_blobs_blocking(&open, is_stored(&answer));
                } else {
                    self.remove_unused_blobs_blocking(&open, is_stored(&answer));
                }
                answer.or_else(|Failed(fault)| (fallback.rescue)(fault))
            }
        };
        open.close(answer)
    }

    /// The call that takes checkpoints in which wait beside the database, if there are any and the operation could meet
    /// one of them.
    fn taking_in(&self, operation: &'static dyn AnyOperation) -> Option<InternalCall> {
        let spill = self.settings().checkpoints.vault.spill();
        if !operation.meets_waiting() || spill.is_none_or(SpillFolder::is_empty) {
            return None;
        }
        self.internal(typed::<TakeIn>())
    }

    /// Decides whether a call that failed is run once more: on a full disk with the disk reserve released, and on a new
    /// snapshot when a blob was missing, since its row may have been deleted after the read began.
    fn retry(&self, operation: &'static dyn AnyOperation, answer: &Result<Stored, Failed>) -> Option<Retry> {
        let Err(Failed(fault)) = answer else { return None };
        let error = store_error(fault)?;
        self.inner.write_probe.failed();
        match error {
            StoreError::Full if operation.frees_space() => Some(Retry {
                attempt: Attempt::Second { is_disk_full: true },
                _reserve: self.inner.store.release_reserve(),
            }),
            StoreError::BlobMissing { .. } => {
                Some(Retry { attempt: Attempt::Second { is_disk_full: false }, _reserve: None })
            }
            _ => None,
        }
    }

    async fn remove_unused_blobs(&self, open: &OpenCall, is_committed: bool) {
        let blobs = self.settings().checkpoints.vault.blobs();
        if let Some(removal) = open.after.finish(is_committed, &self.inner.store, blobs) {
            report_removal(removal.await);
        }
    }

    fn remove_unused_blobs_blocking(&self, open: &OpenCall, is_committed: bool) {
        let blobs = self.settings().checkpoints.vault.blobs();
        if let Some(removal) = open.after.finish(is_committed, &self.inner.store, blobs) {
            report_removal(removal.wait());
        }
    }

    fn internal(&self, operation: &'static dyn AnyOperation) -> Option<InternalCall> {
        let call = self.own_call().ok()?;
        Some(InternalCall { operation, call, params: json!({}) })
    }

    /// Removes the files of what is in the database now. One that stays is found to be there already the next time.
    fn taken_in(&self, reply: &Reply) {
        let (Some(spill), Ok(output)) =
            (self.settings().checkpoints.vault.spill(), serde_json::from_str::<TakeInOutput>(&reply.body))
        else {
            return;
        };
        for id in output.taken {
            match spill.remove(id) {
                Ok(()) => {
                    tracing::info!(checkpoint = %id, "took in a checkpoint that waited beside the database")
                }
                Err(error) => tracing::warn!(%error, checkpoint = %id, "the file of a checkpoint stays"),
            }
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
            error_message: Some(clip(&fault.to_string(), MAX_MESSAGE)),
            ..blank_record(now, correlation_id, &face, "")
        };
        if is_anonymous {
            self.inner.log.record_anonymous(&self.inner.store, peer, record);
        } else {
            self.log(record);
        }
        reply
    }

    /// Logs a request for a page about the server itself. Repeated requests of a client are counted, so that health checks do
    /// not fill the log.
    pub fn log_page(&self, page: PageRequest) {
        let PageRequest { face, correlation_id, actor_key_id, peer, status, started_at } = page;
        let duration_ms = (self.now().as_millis() - started_at.as_millis()).max(0);
        let blank = blank_record(started_at, correlation_id, &face, "");
        let record = RequestRecord { actor_key_id, status_code: status, duration_ms, ..blank };
        self.inner.log.record_repeated(&self.inner.store, peer, record);
    }

    /// Returns numbers of stored rows, counted not long ago; none before the first count has ended.
    pub async fn store_counts(&self) -> Result<Option<CachedCounts>, Fault> {
        let blobs = self.settings().checkpoints.vault.blobs().cloned();
        let counted = self.inner.counts.get(&self.inner.store, blobs).await;
        counted.map_err(|Failed(fault)| fault).inspect_err(|fault| self.inner.store_errors.count(fault))
    }

    /// Returns the numbers of failures of the store since the start of the process, by kind.
    pub fn store_errors(&self) -> Vec<(&'static str, u64)> {
        self.inner.store_errors.by_kind()
    }

    /// The number of calls that were not written to the request log because too many were waiting.
    pub fn unlogged_calls(&self) -> u64 {
        self.inner.log.dropped()
    }

    pub(crate) fn log(&self, record: RequestRecord) {
        self.inner.log.record(&self.inner.store, record);
    }

    /// Logs a call of a kind that is repeated often.
    pub(crate) fn log_repeated(&self, record: RequestRecord) {
        self.inner.log.record_repeated(&self.inner.store, None, record);
    }

    fn open(&self, call: Call, operation: &'static dyn AnyOperation, params: &Value) -> OpenCall {
        let started_at = self.now();
        let record = record_of_call(&call, operation, started_at, params);
        OpenCall {
            app: self.clone(),
            call,
            started_at,
            record: Some(record),
            logs_with_effect: false,
            is_attempt: false,
            is_counted: operation.counts_in_request_log(),
            session: CallSession::default(),
            afterthoughts: Afterthoughts::default(),
            after: AfterTransaction::default(),
            turn: Turn::Come,
        }
    }
}

/// Hands a call to the store, on a thread of its own when making it ready may take long: whoever awaits must not be held up.
/// The call is gone when that thread broke off.
async fn submit_aside(
    operation: &'static dyn AnyOperation,
    open: OpenCall,
    params: Value,
) -> Option<(OpenCall, Answered)> {
    if !operation.blocks() {
        let answered = operation.submit(&open, params);
        return Some((open, answered));
    }
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let spawned = std::thread::Builder::new().name("baton-aside".into()).spawn(move || {
        let answered = operation.submit(&open, params);
        // The caller may have gone away; the call is then logged as it is dropped.
        let _ = sender.send((open, answered));
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "a thread could not be started");
    }
    receiver.await.ok()
}

/// Returns true when the effect of a call is in the database: a refusal that is kept for replays has none.
fn is_stored<E>(answer: &Result<Stored, E>) -> bool {
    answer.as_ref().is_ok_and(|stored| stored.error.is_none())
}

/// A second run of a call.
struct Retry {
    attempt: Attempt,
    /// Held until the second run has ended and its unused blobs are removed.
    _reserve: Option<ReleasedReserve>,
}

/// A call that nobody from outside made.
struct InternalCall {
    operation: &'static dyn AnyOperation,
    call: Call,
    params: Value,
}

/// A call that is refused before it is known what it would have done.
#[derive(Debug, Clone)]
pub struct RefusedCall {
    /// The face it came through.
    pub face: Face,
    /// Its correlation id.
    pub correlation_id: CorrelationId,
    /// The credential, when there was a valid one.
    pub actor_key_id: Option<baton_core::ActorKeyId>,
    /// The address that it came from, where there is one.
    pub peer: Option<IpAddr>,
}
