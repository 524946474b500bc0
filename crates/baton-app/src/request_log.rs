//! The request log: a record of every call, written after the response and without its own fsync.
//!
//! Anyone can make calls without a valid credential, and health checks are repeated every few seconds. Both are
//! therefore counted: the first call of a kind is recorded at once, the others of the next minute as one record.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::{ActorKeyId, RequestRecord};
use baton_store::{Durability, Store, StoreError, Tx};

/// Maximum length of an error message in the log, in characters.
pub(crate) const MAX_MESSAGE: usize = 1_000;

/// Time for which records are collected into a batch.
const BATCH_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of records in a batch.
const BATCH_SIZE: usize = 1_000;
/// Maximum number of queued records; further ones are dropped and counted.
const QUEUE_CAPACITY: usize = 50_000;
/// Time for which calls are counted before a record is written.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);
/// Interval at which the thread checks whether a counting interval has ended.
const COUNT_CHECK: Duration = Duration::from_secs(1);
/// Maximum number of kinds of calls that are counted separately.
const MAX_COUNTED_KINDS: usize = 1_000;

/// Writes the request log.
pub struct RequestLog {
    kind: Kind,
    /// False if the last call failed because the store was unavailable or busy.
    is_store_available: AtomicBool,
    /// Number of records that were not written.
    dropped: Arc<AtomicU64>,
    counted: Arc<Mutex<CountedCalls>>,
}

enum Kind {
    /// Records are written when the process exits, for commands that make a single call.
    AtEnd(Mutex<Vec<(Store, RequestRecord)>>),
    /// Records are written by a thread, until the log is closed.
    Background { queue: Arc<Queue>, thread: Mutex<Option<JoinHandle<()>>> },
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestLog")
    }
}

impl RequestLog {
    /// Creates a log whose records are written in the transactions of calls, or at the end for calls without one.
    pub fn at_end() -> Self {
        Self::new(Kind::AtEnd(Mutex::new(Vec::new())), Arc::default(), Arc::default())
    }

    /// Creates a log that a background thread writes. It stores at most `max_records` records.
    pub fn in_background(store: Store, max_records: u64) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let (dropped, counted) = (Arc::default(), Arc::default());
        let writer =
            LogWriter { store, max_records, dropped: Arc::clone(&dropped), counted: Arc::clone(&counted) };
        let waiting = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("baton-request-log".into())
            .spawn(move || writer.run(&waiting))?;
        let kind = Kind::Background { queue, thread: Mutex::new(Some(thread)) };
        Ok(Self::new(kind, dropped, counted))
    }

    fn new(kind: Kind, dropped: Arc<AtomicU64>, counted: Arc<Mutex<CountedCalls>>) -> Self {
        Self { kind, is_store_available: AtomicBool::new(true), dropped, counted }
    }

    /// Sets whether the store could be used by the last call. If not, a log that is written at the end is discarded: a
    /// command must not wait for the same store a second time.
    pub(crate) fn set_store_available(&self, is_available: bool) {
        self.is_store_available.store(is_available, Ordering::Relaxed);
    }

    /// Returns the number of records that were not written, because the queue was full or the write failed.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Records a call without a valid credential.
    pub(crate) fn record_anonymous(&self, store: &Store, peer: Option<IpAddr>, record: RequestRecord) {
        let kind = CallKind { peer, status_code: record.status_code, source: None };
        self.count(store, kind, record);
    }

    /// Records a call that is repeated often, such as a health check.
    pub(crate) fn record_repeated(&self, store: &Store, peer: Option<IpAddr>, record: RequestRecord) {
        let source = Some((record.actor_key_id.clone(), record.endpoint.clone()));
        self.count(store, CallKind { peer, status_code: record.status_code, source }, record);
    }

    fn count(&self, store: &Store, kind: CallKind, record: RequestRecord) {
        let first = lock(&self.counted).count(kind, record, Instant::now());
        if let Some(record) = first {
            self.record(store, record);
        }
    }

    /// Returns true if records should be written in the transactions of their calls.
    pub(crate) const fn is_written_with_calls(&self) -> bool {
        matches!(self.kind, Kind::AtEnd(_))
    }

    /// Queues a record without blocking.
    pub(crate) fn record(&self, store: &Store, record: RequestRecord) {
        match &self.kind {
            Kind::AtEnd(records) => {
                lock(records).push((store.clone(), record));
            }
            Kind::Background { queue, .. } => {
                if !queue.push(record) && self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!("the request log queue is full; some calls are not recorded");
                }
            }
        }
    }

    /// Writes all queued records. Calls that end later are not recorded.
    pub(crate) fn close(&self) {
        match &self.kind {
            Kind::AtEnd(records) => {
                let records = std::mem::take(&mut *lock(records));
                let is_available = self.is_store_available.load(Ordering::Relaxed);
                if let Some((store, _)) = records.first().filter(|_| is_available) {
                    let store = store.clone();
                    let counted = lock(&self.counted).take_all();
                    let records = records.into_iter().map(|(_, record)| record).chain(counted).collect();
                    write(&store, records, |_| Ok(()));
                }
            }
            Kind::Background { queue, thread } => {
                queue.close();
                if lock(thread).take().is_some_and(|thread| thread.join().is_err()) {
                    tracing::error!("the request log thread panicked");
                }
            }
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Records that wait for the thread.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Notified when the thread has something to do, not for every record: that would make each call slower.
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    records: VecDeque<RequestRecord>,
    is_closed: bool,
}

impl Queue {
    /// Adds a record without blocking. Returns false if the queue is full or closed.
    fn push(&self, record: RequestRecord) -> bool {
        let mut state = lock(&self.state);
        if state.is_closed || state.records.len() >= QUEUE_CAPACITY {
            return false;
        }
        state.records.push_back(record);
        if matches!(state.records.len(), 1 | BATCH_SIZE) {
            self.ready.notify_one();
        }
        true
    }

    fn close(&self) {
        lock(&self.state).is_closed = true;
        self.ready.notify_one();
    }

    /// Waits for a record, then for a batch. Returns no records after `limit`, and `None` when the queue is closed and
    /// empty.
    fn take_batch(&self, limit: Duration) -> Option<Vec<RequestRecord>> {
        let mut state = self.wait(lock(&self.state), limit, |waiting| waiting == 0);
        if !state.records.is_empty() {
            state = self.wait(state, BATCH_INTERVAL, |waiting| waiting < BATCH_SIZE);
        } else if state.is_closed {
            return None;
        }
        let count = state.records.len().min(BATCH_SIZE);
        Some(state.records.drain(..count).collect())
    }

    /// Waits while the number of records meets a condition, at most `limit`, and until the queue is closed.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        limit: Duration,
        condition: impl Fn(usize) -> bool,
    ) -> MutexGuard<'a, QueueState> {
        let waits = |state: &mut QueueState| !state.is_closed && condition(state.records.len());
        self.ready.wait_timeout_while(state, limit, waits).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Background thread that writes the log.
struct LogWriter {
    store: Store,
    max_records: u64,
    dropped: Arc<AtomicU64>,
    counted: Arc<Mutex<CountedCalls>>,
}

impl LogWriter {
    /// Writes records until the queue is closed.
    fn run(&self, queue: &Queue) {
        let limit = || if lock(&self.counted).is_empty() { Duration::MAX } else { COUNT_CHECK };
        while let Some(records) = queue.take_batch(limit()) {
            self.write(records);
            let counted = lock(&self.counted).take_before(Instant::now());
            self.write(counted);
        }
        self.write(lock(&self.counted).take_all());
    }

    /// Writes records and deletes the oldest ones above the limit.
    fn write(&self, records: Vec<RequestRecord>) {
        if records.is_empty() {
            return;
        }
        let (keep, count) = (self.max_records, records.len());
        let limit = u32::try_from(2 * count).unwrap_or(u32::MAX);
        if !write(&self.store, records, move |tx| tx.trim_requests(keep, limit).map(|_| ())) {
            self.dropped.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

/// Writes records. Returns false if that failed, which is logged.
fn write(
    store: &Store,
    records: Vec<RequestRecord>,
    then: impl Fn(&mut dyn Tx) -> Result<(), StoreError> + Send + 'static,
) -> bool {
    let written: Result<(), StoreError> = store
        .write(Durability::Lazy, move |tx| {
            records.iter().try_for_each(|record| tx.log_request(record))?;
            then(tx)
        })
        .wait();
    match &written {
        Ok(()) => {}
        // Every write reports this failure itself, and reads are not affected.
        Err(error @ (StoreError::Full | StoreError::ReadOnly)) => {
            tracing::debug!(%error, "cannot write the request log");
        }
        Err(error) => tracing::warn!(%error, "cannot write the request log"),
    }
    written.is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls of the same kind are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallKind {
    peer: Option<IpAddr>,
    status_code: u16,
    /// Credential and endpoint of repeated calls; `None` for calls without a valid credential, regardless of
    /// their path.
    source: Option<(Option<ActorKeyId>, String)>,
}

/// Counted calls by kind.
#[derive(Default)]
struct CountedCalls {
    counted: HashMap<CallKind, Counted>,
}

struct Counted {
    since: Instant,
    count: u32,
    /// Latest counted call.
    latest: Option<RequestRecord>,
}

impl CountedCalls {
    fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Counts a call. Returns its record if it is the first of its kind in the interval.
    fn count(&mut self, mut kind: CallKind, record: RequestRecord, now: Instant) -> Option<RequestRecord> {
        if self.counted.len() >= MAX_COUNTED_KINDS && !self.counted.contains_key(&kind) {
            // All further peers are counted together.
            kind.peer = None;
        }
        match self.counted.get_mut(&kind) {
            Some(counted) => {
                counted.count = counted.count.saturating_add(1);
                counted.latest = Some(record);
                None
            }
            None => {
                self.counted.insert(kind, Counted { since: now, count: 0, latest: None });
                Some(record)
            }
        }
    }

    /// Removes and returns the records of intervals that have ended.
    fn take_before(&mut self, now: Instant) -> Vec<RequestRecord> {
        self.take(|counted| now.saturating_duration_since(counted.since) >= COUNT_INTERVAL)
    }

    fn take_all(&mut self) -> Vec<RequestRecord> {
        self.take(|_| true)
    }

    fn take(&mut self, is_over: impl Fn(&Counted) -> bool) -> Vec<RequestRecord> {
        let over = self.counted.extract_if(|_, counted| is_over(counted));
        over.filter_map(|(CallKind { peer, .. }, Counted { count, latest, .. })| {
            let record = latest?;
            let peer = peer.map_or_else(|| "several addresses".to_owned(), |peer| peer.to_string());
            let error_message =
                record.error_message.map(|message| format!("{message} ({count} requests from {peer})"));
            Some(RequestRecord { request_count: count, error_message, ..record })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status_code: u16) -> RequestRecord {
        RequestRecord {
            timestamp: baton_core::Timestamp::EPOCH,
            correlation_id: "c".parse().unwrap(),
            endpoint: "/sod".into(),
            method: "POST".into(),
            actor_key_id: None,
            session_id: None,
            agent: None,
            venture: None,
            repo: None,
            track: None,
            issue_number: None,
            status_code,
            duration_ms: 0,
            error_message: Some("unauthorized: no credential was sent".into()),
            idempotency_key: None,
            idempotency_hit: false,
            request_count: 1,
        }
    }

    #[test]
    fn anonymous_calls_are_counted_by_peer_and_status() {
        let mut calls = CountedCalls::default();
        let start = Instant::now();
        let anonymous = |last: u8, status_code| {
            let peer = Some(IpAddr::from([192, 0, 2, last]));
            CallKind { peer, status_code, source: None }
        };
        assert_eq!(calls.count(anonymous(1, 401), refused(401), start), Some(refused(401)));
        for _ in 0..4_000 {
            assert_eq!(calls.count(anonymous(1, 401), refused(401), start), None);
        }
        assert_eq!(calls.count(anonymous(2, 401), refused(401), start), Some(refused(401)));
        assert_eq!(calls.count(anonymous(1, 429), refused(429), start), Some(refused(429)));
        assert_eq!(calls.take_before(start), []);
        let counted = RequestRecord {
            request_count: 4_000,
            error_message: Some("unauthorized: no credential was sent (4000 requests from 192.0.2.1)".into()),
            ..refused(401)
        };
        assert_eq!(calls.take_before(start + COUNT_INTERVAL), [counted]);
        assert!(calls.is_empty());
        assert_eq!(calls.count(anonymous(1, 401), refused(401), start), Some(refused(401)));
    }

    #[test]
    fn number_of_counted_peers_is_limited() {
        let mut calls = CountedCalls::default();
        let start = Instant::now();
        let recorded = (0..100_000_u32)
            .filter_map(|number| {
                let peer = Some(IpAddr::from(number.to_be_bytes()));
                calls.count(CallKind { peer, status_code: 401, source: None }, refused(401), start)
            })
            .count();
        assert_eq!((recorded, calls.counted.len()), (MAX_COUNTED_KINDS + 1, MAX_COUNTED_KINDS + 1));
        let rest = calls.take_all();
        assert_eq!(rest.iter().map(|record| record.request_count).sum::<u32>(), 100_000 - 1_001);
    }
}
