//! The request log: every call, written behind the calls and without an fsync of its own.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::RequestRecord;
use baton_store::{Durability, Store, StoreError};

/// How long a record may wait for company.
const GATHER: Duration = Duration::from_millis(200);
/// How many records are written together at the most.
const BATCH: usize = 1_000;
/// How many records may wait; more are counted and dropped, never kept in memory.
const WAITING: usize = 50_000;

/// Where calls are logged.
pub struct RequestLog {
    kind: Kind,
    dropped: AtomicU64,
}

enum Kind {
    /// Kept until the end, for commands that do one thing and exit.
    AtEnd(Mutex<Vec<(Store, RequestRecord)>>),
    /// Written by a thread.
    Behind { queue: Option<SyncSender<RequestRecord>>, thread: Option<JoinHandle<()>> },
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestLog")
    }
}

impl RequestLog {
    /// A log that is written with the effects of calls, and for calls without one when the process is done.
    pub const fn at_end() -> Self {
        Self { kind: Kind::AtEnd(Mutex::new(Vec::new())), dropped: AtomicU64::new(0) }
    }

    /// A log that a thread writes while the process lives on.
    pub fn behind(store: Store) -> std::io::Result<Self> {
        let (queue, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("baton-request-log".into())
            .spawn(move || write_behind(&store, &waiting))?;
        Ok(Self {
            kind: Kind::Behind { queue: Some(queue), thread: Some(thread) },
            dropped: AtomicU64::new(0),
        })
    }

    /// Whether a record is best written in the transaction of its call.
    pub(crate) const fn goes_with_effects(&self) -> bool {
        matches!(self.kind, Kind::AtEnd(_))
    }

    /// Takes a record; never waits.
    pub(crate) fn record(&self, store: &Store, record: RequestRecord) {
        match &self.kind {
            Kind::AtEnd(records) => {
                records.lock().unwrap_or_else(PoisonError::into_inner).push((store.clone(), record));
            }
            Kind::Behind { queue, .. } => {
                let taken = queue.as_ref().is_some_and(|queue| queue.try_send(record).is_ok());
                if !taken && self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!("the request log cannot keep up; some calls are not logged");
                }
            }
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::AtEnd(records) => {
                let records = std::mem::take(records.get_mut().unwrap_or_else(PoisonError::into_inner));
                if let Some((store, _)) = records.first() {
                    let store = store.clone();
                    write(&store, records.into_iter().map(|(_, record)| record).collect());
                }
            }
            Kind::Behind { queue, thread } => {
                *queue = None;
                if let Some(thread) = thread.take()
                    && thread.join().is_err()
                {
                    tracing::error!("the request log broke off");
                }
            }
        }
    }
}

fn write_behind(store: &Store, waiting: &Receiver<RequestRecord>) {
    while let Ok(first) = waiting.recv() {
        let mut records = vec![first];
        let until = Instant::now() + GATHER;
        while records.len() < BATCH {
            match waiting.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(record) => records.push(record),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        write(store, records);
    }
}

fn write(store: &Store, records: Vec<RequestRecord>) {
    let written: Result<(), StoreError> = store
        .write(Durability::Lazy, move |tx| records.iter().try_for_each(|record| tx.log_request(record)))
        .wait();
    match written {
        Ok(()) => {}
        // Every call that writes says so itself; calls that only read are served as usual.
        Err(error @ (StoreError::Full | StoreError::ReadOnly)) => {
            tracing::debug!(%error, "cannot write the request log");
        }
        Err(error) => tracing::warn!(%error, "cannot write the request log"),
    }
}
