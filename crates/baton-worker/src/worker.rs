//! The worker: one dispatcher that claims items, several threads that compress, and one thread that stores the results.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

use baton_app::App;
use baton_app::observation::{Claimed, Finished, SummaryJob, WorkerActivity};
use baton_core::{Fault, SessionId, Timestamp};
use baton_store::QueueRelease;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};

use crate::breaker::{Breaker, Permission};
use crate::item::{JobOutcome, WorkContext, WorkResult};

/// Maximum interval at which the dispatcher polls the queue, even without notifications. Shorter than the time after
/// which an idle worker exits.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Pause after a store error.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Number of claimed items per thread: enough that no thread waits for the next claim, and few enough that no item
/// waits long behind a slow model.
const CLAIMS_PER_THREAD: usize = 2;
/// Maximum number of observations per transaction.
const MAX_BATCH: usize = 64;

/// Configuration of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Number of items compressed concurrently.
    pub concurrency: usize,
}

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Number of items that became observations.
    pub done: u64,
    /// Number of items released for a later attempt.
    pub released: u64,
    /// Number of items that failed finally.
    pub failed: u64,
    /// Number of summaries created.
    pub summaries: u64,
    /// Number of summaries released for a later attempt.
    pub summaries_released: u64,
    /// Number of items that got a vector for search.
    pub embedded: u64,
}

/// A claimed job.
#[derive(Clone)]
enum Job {
    /// Create an observation.
    Item(Box<Claimed>),
    Summary(Box<SummaryJob>),
}

/// Identifies a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum JobKey {
    Item(i64),
    Summary(SessionId),
}

impl Job {
    fn key(&self) -> JobKey {
        match self {
            Self::Item(claimed) => JobKey::Item(claimed.id()),
            Self::Summary(job) => JobKey::Summary(job.session_id()),
        }
    }

    fn work(&self, context: &WorkContext) -> Result<WorkResult, Fault> {
        match self {
            Self::Item(claimed) => context.work(claimed),
            Self::Summary(job) => context.summarize_session(job).map(Into::into),
        }
    }
}

/// Jobs in progress.
type Held = HashMap<JobKey, Job>;

/// Message to the thread that stores results.
enum StoreMessage {
    /// The observation of an item.
    Observation(JobKey, Box<Finished>),
    /// Request to be notified when all previous observations are stored.
    NotifyWhenStored(Sender<()>),
}

/// Message to the dispatcher.
enum Event {
    /// The queue may have new items.
    Wake,
    Settled(JobKey, Result<JobOutcome, Fault>),
    /// Stop request.
    Stop,
}

/// Wakes and stops a worker. Clones share the worker.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    events: Sender<Event>,
    touched: Arc<AtomicI64>,
    worked: Arc<AtomicU64>,
}

impl WorkerHandle {
    /// Notifies the worker that the queue may have new items.
    pub fn wake(&self) {
        // The worker may have ended.
        let _ = self.events.send(Event::Wake);
    }

    /// Asks the worker to stop and to release its claims.
    pub fn stop(&self) {
        let _ = self.events.send(Event::Stop);
    }

    /// Records activity, which keeps an idle worker from exiting.
    pub fn touch(&self, now: Timestamp) {
        self.touched.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// Returns the time of the last activity: a request, work, or a pending item.
    pub fn last_activity(&self) -> Timestamp {
        Timestamp::from_millis(self.touched.load(Ordering::Relaxed))
    }

    /// Returns true if there was no activity for this long.
    pub fn is_idle(&self, now: Timestamp, idle: Duration) -> bool {
        self.last_activity().plus(idle) <= now
    }

    /// Returns the number of processed jobs.
    pub fn worked(&self) -> u64 {
        self.worked.load(Ordering::Relaxed)
    }
}

/// Creates observations and summaries until it is stopped.
pub struct Worker {
    context: Arc<WorkContext>,
    config: WorkerConfig,
    handle: WorkerHandle,
    events: Receiver<Event>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Worker {
    /// Creates a worker on the queue of an application.
    pub fn new(app: App, config: WorkerConfig) -> Self {
        let (sender, events) = unbounded();
        let now = app.now();
        let handle = WorkerHandle {
            events: sender,
            touched: Arc::new(AtomicI64::new(now.as_millis())),
            worked: Arc::default(),
        };
        let context = WorkContext {
            queue: app.work_queue(),
            breaker: Breaker::default(),
            embedding_breaker: Breaker::default(),
        };
        Self { context: Arc::new(context), config, handle, events }
    }

    /// Returns the handle that wakes and stops the worker.
    pub fn handle(&self) -> WorkerHandle {
        self.handle.clone()
    }

    fn now(&self) -> Timestamp {
        self.context.queue.now()
    }

    fn activity(&self) -> &WorkerActivity {
        &self.context.queue.settings().observations.activity
    }

    /// Processes due items and summaries on this thread, and returns what was done.
    pub fn run_once(&self) -> Result<Drained, Fault> {
        let mut drained = Drained::default();
        // Items are claimed one at a time, because each of them may start a pause.
        while !self.is_paused() {
            let claimed = self.context.queue.claim(1)?;
            if claimed.is_empty() {
                break;
            }
            for claimed in &claimed {
                let outcome = match self.context.work(claimed)? {
                    WorkResult::Settled(outcome) => outcome,
                    WorkResult::Compressed(finished) => {
                        let stored = self.context.finish(vec![*finished]).into_iter().next();
                        stored.unwrap_or(Ok(JobOutcome::Lost))?
                    }
                };
                match outcome {
                    JobOutcome::Done => drained.done += 1,
                    JobOutcome::Released => drained.released += 1,
                    JobOutcome::Failed => drained.failed += 1,
                    JobOutcome::Lost => {}
                }
            }
        }
        while !self.is_paused()
            && let Some(job) = self.context.queue.claim_summary()?
        {
            match self.context.summarize_session(&job)? {
                JobOutcome::Done => drained.summaries += 1,
                JobOutcome::Released => drained.summaries_released += 1,
                JobOutcome::Failed | JobOutcome::Lost => {}
            }
        }
        drained.embedded = self.context.embed_missing(|| true)?;
        Ok(drained)
    }

    fn is_paused(&self) -> bool {
        matches!(self.permission(), Permission::NotBefore(_))
    }

    fn permission(&self) -> Permission {
        match self.context.compressor() {
            // Without a model there are no pauses.
            Ok(compressor) if compressor.model().is_none() => Permission::All,
            _ => self.context.breaker.permission(self.now()),
        }
    }

    /// Runs until it is stopped, then releases all claims.
    pub fn run(self) -> Result<(), std::io::Error> {
        let _running = self.activity().start();
        let capacity = self.config.concurrency.max(1) * CLAIMS_PER_THREAD;
        let (jobs, waiting) = bounded::<Job>(capacity);
        let (made, unstored) = unbounded();
        self.spawn_store_thread(unstored)?;
        for number in 0..self.config.concurrency.max(1) {
            self.spawn(number, waiting.clone(), made.clone())?;
        }
        drop(waiting);
        let (running, stopped) = bounded(0);
        self.spawn_embedder(stopped)?;
        let mut held = self.dispatch(&jobs, capacity);
        drop(jobs);
        drop(running);
        self.wait_until_stored(&made, &mut held);
        // A thread that still waits for a model is abandoned: its item is released, so its result will be discarded.
        self.release_all(held);
        Ok(())
    }

    /// Starts a thread that compresses.
    fn spawn(
        &self,
        number: usize,
        jobs: Receiver<Job>,
        made: Sender<StoreMessage>,
    ) -> Result<(), std::io::Error> {
        let (context, events) = (self.context.clone(), self.handle.events.clone());
        let work = move || {
            for job in jobs {
                let key = job.key();
                let sent = match job.work(&context) {
                    Ok(WorkResult::Compressed(finished)) => {
                        made.send(StoreMessage::Observation(key, finished)).is_ok()
                    }
                    Ok(WorkResult::Settled(outcome)) => events.send(Event::Settled(key, Ok(outcome))).is_ok(),
                    Err(fault) => events.send(Event::Settled(key, Err(fault))).is_ok(),
                };
                if !sent {
                    return;
                }
            }
        };
        Builder::new().name(format!("baton-worker-{number}")).spawn(work).map(|_| ())
    }

    /// Starts the thread that stores results. Everything that was compressed during one transaction shares the next
    /// one, so compressing threads never wait for the disk.
    fn spawn_store_thread(&self, made: Receiver<StoreMessage>) -> Result<(), std::io::Error> {
        let (context, events) = (self.context.clone(), self.handle.events.clone());
        let work = move || {
            while let Ok(first) = made.recv() {
                let (mut keys, mut batch, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
                for one in std::iter::once(first).chain(made.try_iter().take(MAX_BATCH - 1)) {
                    match one {
                        StoreMessage::Observation(key, finished) => {
                            keys.push(key);
                            batch.push(*finished);
                        }
                        StoreMessage::NotifyWhenStored(reply) => waiting.push(reply),
                    }
                }
                for (key, outcome) in keys.into_iter().zip(context.finish(batch)) {
                    if events.send(Event::Settled(key, outcome)).is_err() {
                        return;
                    }
                }
                for reply in waiting {
                    // The receiver may have timed out.
                    let _ = reply.send(());
                }
            }
        };
        Builder::new().name("baton-worker-store".into()).spawn(work).map(|_| ())
    }

    /// Starts the thread that computes vectors, if search uses them. It ends when the sender of `stopped` is dropped.
    fn spawn_embedder(&self, stopped: Receiver<()>) -> Result<(), std::io::Error> {
        if self.context.queue.settings().observations.embedder.is_none() {
            return Ok(());
        }
        let (context, handle) = (self.context.clone(), self.handle.clone());
        let work = move || {
            loop {
                let should_continue = || {
                    handle.touch(context.queue.now());
                    stopped.try_recv() == Err(TryRecvError::Empty)
                };
                if let Err(fault) = context.embed_missing(should_continue) {
                    tracing::warn!(%fault, "cannot store vectors for search; retrying later");
                }
                if stopped.recv_timeout(MAX_POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        };
        Builder::new().name("baton-embedder".into()).spawn(work).map(|_| ())
    }

    /// Waits briefly until finished results are stored, so that no answer of a model is lost.
    fn wait_until_stored(&self, made: &Sender<StoreMessage>, held: &mut Held) {
        let (reply, answer) = bounded(1);
        if made.send(StoreMessage::NotifyWhenStored(reply)).is_ok()
            && answer.recv_timeout(STORE_PAUSE).is_err()
        {
            tracing::warn!("the last results are not stored yet; they will be recreated later");
        }
        for event in self.events.try_iter() {
            if let Event::Settled(key, _) = event {
                held.remove(&key);
            }
        }
    }

    /// Claims and dispatches jobs until it is stopped. Returns the jobs in progress.
    fn dispatch(&self, jobs: &Sender<Job>, capacity: usize) -> Held {
        let mut held = Held::new();
        let mut pause = None;
        let mut was_last_claim_full = false;
        loop {
            if pause.is_none() {
                pause = self.claim_more(jobs, capacity, &mut held, &mut was_last_claim_full);
            }
            let wait_time = pause.take().unwrap_or_else(|| self.wait_time(held.is_empty()));
            match self.events.recv_timeout(wait_time) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return held,
                Ok(Event::Settled(key, outcome)) => {
                    held.remove(&key);
                    self.handle.touch(self.now());
                    self.activity().record(self.now());
                    self.handle.worked.fetch_add(1, Ordering::Relaxed);
                    if let Err(fault) = outcome {
                        tracing::error!(job = ?key, %fault, "a job failed; it will be retried later");
                        pause = Some(STORE_PAUSE);
                    }
                }
                Ok(Event::Wake) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Claims as many jobs as there is room for. Returns a pause if the store failed.
    fn claim_more(
        &self,
        jobs: &Sender<Job>,
        capacity: usize,
        held: &mut Held,
        was_last_claim_full: &mut bool,
    ) -> Option<Duration> {
        // Claims several items at a time, not one for each finished item.
        if held.len() > capacity / 2 {
            return None;
        }
        let free = u32::try_from(capacity - held.len()).unwrap_or(1);
        let count = match self.permission() {
            Permission::All => free,
            // One job at a time probes the model.
            Permission::One if held.is_empty() => 1,
            Permission::One | Permission::NotBefore(_) => return None,
        };
        let claimed = self.claim(count, held.is_empty(), *was_last_claim_full);
        match claimed {
            Ok(claimed) => {
                *was_last_claim_full = claimed.len() == count as usize;
                if !claimed.is_empty() {
                    self.activity().record(self.now());
                }
                for job in claimed {
                    held.insert(job.key(), job.clone());
                    if jobs.send(job).is_err() {
                        tracing::error!("all worker threads panicked");
                    }
                }
                None
            }
            Err(fault) => Some(self.store_failed(&fault)),
        }
    }

    /// Claims due items or, if there are none and nothing else is in progress, a summary.
    fn claim(&self, count: u32, is_idle: bool, was_last_claim_full: bool) -> Result<Vec<Job>, Fault> {
        let queue = &self.context.queue;
        // A check is cheaper than a claim that finds nothing. After a full claim, more items are probably due.
        if !was_last_claim_full && queue.next_due_at()?.is_none_or(|at| at > self.now()) {
            return Ok(Vec::new());
        }
        let items = queue.claim(count)?;
        if items.is_empty() && is_idle {
            let summary = queue.claim_summary()?;
            return Ok(summary.map(|job| Job::Summary(Box::new(job))).into_iter().collect());
        }
        Ok(items.into_iter().map(|item| Job::Item(Box::new(item))).collect())
    }

    fn store_failed(&self, fault: &Fault) -> Duration {
        tracing::error!(%fault, "cannot access the queue; retrying");
        STORE_PAUSE
    }

    /// Returns how long to wait for events: until the next item is due, a lease expires or a pause ends.
    fn wait_time(&self, nothing_held: bool) -> Duration {
        let now = self.now();
        if let Permission::NotBefore(until) = self.permission() {
            // Items are waiting for the model, which counts as activity.
            self.handle.touch(now);
            return between(now, until).min(MAX_POLL_INTERVAL);
        }
        if !nothing_held {
            // Running jobs report when they are finished.
            self.handle.touch(now);
            return MAX_POLL_INTERVAL;
        }
        match self.context.queue.next_due_at() {
            Ok(Some(at)) => {
                self.handle.touch(now);
                between(now, at).min(MAX_POLL_INTERVAL)
            }
            Ok(None) => MAX_POLL_INTERVAL,
            Err(fault) => self.store_failed(&fault),
        }
    }

    /// Releases all claims without counting the attempts.
    fn release_all(&self, held: Held) {
        let now = self.now();
        for job in held.values() {
            let released = match job {
                Job::Item(claimed) => {
                    let release = QueueRelease { run_at: now, counts: false, failed_at: None, error: None };
                    self.context.queue.release(claimed, release)
                }
                Job::Summary(job) => self.context.queue.postpone_summary(job, Some(now), ""),
            };
            if let Err(fault) = released {
                tracing::warn!(job = ?job.key(), %fault, "cannot release a job; its lease will expire");
            }
        }
    }
}

/// Returns the time between two timestamps, at least one millisecond.
fn between(now: Timestamp, later: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(later.as_millis() - now.as_millis()).unwrap_or(0).max(1))
}
