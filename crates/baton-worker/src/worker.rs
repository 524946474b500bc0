//! The worker itself: one dispatcher that claims, a few threads that compress, one that stores what they made.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

use baton_app::App;
use baton_app::observation::{Claimed, Finished, SummaryJob, WorkQueue, WorkerActivity};
use baton_core::{Fault, SessionId, Timestamp};
use baton_store::QueueRelease;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use crate::breaker::{Breaker, Permission};
use crate::item::{Outcome, Worked, Workshop};

/// The dispatcher looks after the queue at least this often, whatever it was or was not told: more often than an idle worker
/// may leave.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits when the store cannot be used.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// How many claimed items there are for each thread: enough that none waits for the next claim, and so few that none waits
/// for long behind a slow model.
const AHEAD: usize = 2;
/// How many observations share a transaction at the most.
const MAX_BATCH: usize = 64;

/// How a worker works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerConfig {
    /// How many items are compressed at a time.
    pub concurrency: usize,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// So many items became observations.
    pub done: u64,
    /// So many wait again.
    pub returned: u64,
    /// So many were given up.
    pub given_up: u64,
    /// So many summaries were made.
    pub summaries: u64,
    /// So many summaries wait again.
    pub summaries_returned: u64,
}

/// What is ours to do.
#[derive(Clone)]
enum Job {
    /// Make an observation.
    Item(Box<Claimed>),
    /// Make a summary.
    Summary(Box<SummaryJob>),
}

/// Tells jobs apart.
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

    fn work(&self, workshop: &Workshop) -> Result<Worked, Fault> {
        match self {
            Self::Item(claimed) => workshop.work(claimed),
            Self::Summary(job) => workshop.sum_up(job).map(Into::into),
        }
    }
}

type Held = HashMap<JobKey, Job>;

/// What is on its way to the store.
enum Made {
    /// The observation of an item.
    Observation(JobKey, Box<Finished>),
    /// Somebody wants to know when all before this is stored.
    TellWhenStored(Sender<()>),
}

/// What the dispatcher is told.
enum Event {
    /// There may be something in the queue.
    Wake,
    /// A job is settled.
    Settled(JobKey, Result<Outcome, Fault>),
    /// It is time to stop.
    Stop,
}

/// Wakes a worker and stops it. Clones share it.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    events: Sender<Event>,
    touched: Arc<AtomicI64>,
    worked: Arc<AtomicU64>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Event")
    }
}

impl WorkerHandle {
    /// Says that there may be something in the queue.
    pub fn wake(&self) {
        // A worker that is gone needs no waking.
        let _ = self.events.send(Event::Wake);
    }

    /// Asks the worker to stop: it returns what it holds.
    pub fn stop(&self) {
        let _ = self.events.send(Event::Stop);
    }

    /// Notes a sign of use, which keeps an idle worker from leaving.
    pub fn touch(&self, now: Timestamp) {
        self.touched.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// When it was last used, or had something to do or to wait for.
    pub fn last_activity(&self) -> Timestamp {
        Timestamp::from_millis(self.touched.load(Ordering::Relaxed))
    }

    /// Tells whether nobody needed it for so long.
    pub fn is_idle(&self, now: Timestamp, idle: Duration) -> bool {
        self.last_activity().plus(idle) <= now
    }

    /// How many items it has worked on.
    pub fn worked(&self) -> u64 {
        self.worked.load(Ordering::Relaxed)
    }
}

/// Turns what was captured into observations, until it is stopped.
pub struct Worker {
    workshop: Arc<Workshop>,
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
    /// Makes a worker on the queue of an application.
    pub fn new(app: App, config: WorkerConfig) -> Self {
        let (sender, events) = unbounded();
        let now = app.now();
        let handle = WorkerHandle {
            events: sender,
            touched: Arc::new(AtomicI64::new(now.as_millis())),
            worked: Arc::default(),
        };
        let workshop = Workshop { queue: WorkQueue::of(app), breaker: Breaker::default() };
        Self { workshop: Arc::new(workshop), config, handle, events }
    }

    /// What wakes and stops it.
    pub fn handle(&self) -> WorkerHandle {
        self.handle.clone()
    }

    fn now(&self) -> Timestamp {
        self.workshop.queue.app().now()
    }

    fn activity(&self) -> &WorkerActivity {
        &self.workshop.queue.app().settings().observations.activity
    }

    /// Does what is due now, one after the other on this thread, and tells what came of it.
    pub fn run_once(&self) -> Result<Drained, Fault> {
        let mut drained = Drained::default();
        // One at a time: each may tell that the model is not to be asked any more.
        while let Some(room) = self.room(1) {
            let claimed = self.workshop.queue.claim(room)?;
            if claimed.is_empty() {
                break;
            }
            for claimed in &claimed {
                let outcome = match self.workshop.work(claimed)? {
                    Worked::Settled(outcome) => outcome,
                    Worked::Made(finished) => {
                        let stored = self.workshop.finish(vec![*finished]).into_iter().next();
                        stored.unwrap_or(Ok(Outcome::Lost))?
                    }
                };
                match outcome {
                    Outcome::Done => drained.done += 1,
                    Outcome::Returned => drained.returned += 1,
                    Outcome::GivenUp => drained.given_up += 1,
                    Outcome::Lost => {}
                }
            }
        }
        while self.room(1).is_some()
            && let Some(job) = self.workshop.queue.claim_summary()?
        {
            match self.workshop.sum_up(&job)? {
                Outcome::Done => drained.summaries += 1,
                Outcome::Returned => drained.summaries_returned += 1,
                Outcome::GivenUp | Outcome::Lost => {}
            }
        }
        Ok(drained)
    }

    /// How many more may be worked on, of `most`; none while the model is not to be asked.
    fn room(&self, most: u32) -> Option<u32> {
        match self.permission() {
            Permission::All => Some(most),
            Permission::One => Some(1),
            Permission::NotBefore(_) => None,
        }
    }

    fn permission(&self) -> Permission {
        match self.workshop.compressor() {
            // Without a model there is nothing to wait for.
            Ok(compressor) if compressor.model().is_none() => Permission::All,
            _ => self.workshop.breaker.permission(self.now()),
        }
    }

    /// Works until it is stopped, then returns what it holds: nothing is left in its hands.
    pub fn run(self) -> Result<(), std::io::Error> {
        let _running = self.activity().start();
        let capacity = self.config.concurrency.max(1) * AHEAD;
        let (jobs, waiting) = bounded::<Job>(capacity);
        let (made, unstored) = unbounded();
        self.spawn_keeper(unstored)?;
        for number in 0..self.config.concurrency.max(1) {
            self.spawn(number, waiting.clone(), made.clone())?;
        }
        drop(waiting);
        let mut held = self.dispatch(&jobs, capacity);
        drop(jobs);
        self.let_finish(&made, &mut held);
        // A thread that still waits for a model is left behind: its item is given back, so what it makes comes to nothing.
        self.give_back(held);
        Ok(())
    }

    /// A thread that compresses.
    fn spawn(&self, number: usize, jobs: Receiver<Job>, made: Sender<Made>) -> Result<(), std::io::Error> {
        let (workshop, events) = (self.workshop.clone(), self.handle.events.clone());
        let work = move || {
            for job in jobs {
                let key = job.key();
                let sent = match job.work(&workshop) {
                    Ok(Worked::Made(finished)) => made.send(Made::Observation(key, finished)).is_ok(),
                    Ok(Worked::Settled(outcome)) => events.send(Event::Settled(key, Ok(outcome))).is_ok(),
                    Err(fault) => events.send(Event::Settled(key, Err(fault))).is_ok(),
                };
                if !sent {
                    return;
                }
            }
        };
        Builder::new().name(format!("baton-worker-{number}")).spawn(work).map(|_| ())
    }

    /// The thread that stores: whatever was made while it stored the last ones shares the next transaction, and nobody who
    /// compresses waits for the disk.
    fn spawn_keeper(&self, made: Receiver<Made>) -> Result<(), std::io::Error> {
        let (workshop, events) = (self.workshop.clone(), self.handle.events.clone());
        let work = move || {
            while let Ok(first) = made.recv() {
                let (mut keys, mut batch, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
                for one in std::iter::once(first).chain(made.try_iter().take(MAX_BATCH - 1)) {
                    match one {
                        Made::Observation(key, finished) => {
                            keys.push(key);
                            batch.push(*finished);
                        }
                        Made::TellWhenStored(asker) => waiting.push(asker),
                    }
                }
                for (key, outcome) in keys.into_iter().zip(workshop.finish(batch)) {
                    if events.send(Event::Settled(key, outcome)).is_err() {
                        return;
                    }
                }
                for asker in waiting {
                    // Whoever does not wait any more needs no answer.
                    let _ = asker.send(());
                }
            }
        };
        Builder::new().name("baton-keeper".into()).spawn(work).map(|_| ())
    }

    /// Waits a moment for what is made already to be stored, so that no answer of a model is thrown away.
    fn let_finish(&self, made: &Sender<Made>, held: &mut Held) {
        let (asker, answer) = bounded(1);
        if made.send(Made::TellWhenStored(asker)).is_ok() && answer.recv_timeout(STORE_PAUSE).is_err() {
            tracing::warn!("what was made last is not stored yet; it is made again later");
        }
        for event in self.events.try_iter() {
            if let Event::Settled(key, _) = event {
                held.remove(&key);
            }
        }
    }

    /// Claims and hands out until it is told to stop; gives what is still under way.
    fn dispatch(&self, jobs: &Sender<Job>, capacity: usize) -> Held {
        let mut held = Held::new();
        let mut pause = None;
        let mut is_more_likely = false;
        loop {
            if pause.is_none() {
                pause = self.claim_more(jobs, capacity, &mut held, &mut is_more_likely);
            }
            let patience = match pause.take() {
                Some(pause) => pause,
                None => self.patience(held.is_empty()),
            };
            match self.events.recv_timeout(patience) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return held,
                Ok(Event::Settled(key, outcome)) => {
                    held.remove(&key);
                    self.handle.touch(self.now());
                    self.activity().record(self.now());
                    self.handle.worked.fetch_add(1, Ordering::Relaxed);
                    if let Err(fault) = outcome {
                        tracing::error!(job = ?key, %fault, "a job could not be done; it is tried again later");
                        pause = Some(STORE_PAUSE);
                    }
                }
                Ok(Event::Wake) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Claims as many as there is room for. Gives a pause when the store failed.
    fn claim_more(
        &self,
        jobs: &Sender<Job>,
        capacity: usize,
        held: &mut Held,
        is_more_likely: &mut bool,
    ) -> Option<Duration> {
        // Claims are made by the handful, not one for each item that is done.
        if held.len() > capacity / 2 {
            return None;
        }
        let free = u32::try_from(capacity - held.len()).unwrap_or(1);
        let room = match self.room(free) {
            Some(1) if free > 1 && !held.is_empty() => return None,
            Some(room) => room,
            None => return None,
        };
        let claimed = self.claim(room, held.is_empty(), *is_more_likely);
        match claimed {
            Ok(claimed) => {
                *is_more_likely = claimed.len() == room as usize;
                if !claimed.is_empty() {
                    self.activity().record(self.now());
                }
                for job in claimed {
                    held.insert(job.key(), job.clone());
                    if jobs.send(job).is_err() {
                        tracing::error!("every thread of the worker broke off");
                    }
                }
                None
            }
            Err(fault) => Some(self.store_failed(&fault)),
        }
    }

    /// Claims what is due: items, and when there are none and nothing else is under way, a summary.
    fn claim(&self, room: u32, is_idle: bool, is_more_likely: bool) -> Result<Vec<Job>, Fault> {
        let queue = &self.workshop.queue;
        // A look costs less than a claim that finds nothing.
        if !is_more_likely && queue.wakes_at()?.is_none_or(|at| at > self.now()) {
            return Ok(Vec::new());
        }
        let items = queue.claim(room)?;
        if items.is_empty() && is_idle {
            let summary = queue.claim_summary()?;
            return Ok(summary.map(|job| Job::Summary(Box::new(job))).into_iter().collect());
        }
        Ok(items.into_iter().map(|item| Job::Item(Box::new(item))).collect())
    }

    fn store_failed(&self, fault: &Fault) -> Duration {
        tracing::error!(%fault, "the queue cannot be used; trying again");
        STORE_PAUSE
    }

    /// How long to wait for news: until the next item is due, a lease runs out, or a pause ends.
    fn patience(&self, nothing_held: bool) -> Duration {
        let now = self.now();
        if let Permission::NotBefore(until) = self.permission() {
            // Somebody waits for the model to be back.
            self.handle.touch(now);
            return between(now, until).min(LOOK_AGAIN);
        }
        if !nothing_held {
            // Whoever finishes says so.
            self.handle.touch(now);
            return LOOK_AGAIN;
        }
        match self.workshop.queue.wakes_at() {
            Ok(Some(at)) => {
                self.handle.touch(now);
                between(now, at).min(LOOK_AGAIN)
            }
            Ok(None) => LOOK_AGAIN,
            Err(fault) => self.store_failed(&fault),
        }
    }

    /// Returns what is held at a stop; nothing loses an attempt by it.
    fn give_back(&self, held: Held) {
        let now = self.now();
        for job in held.values() {
            let returned = match job {
                Job::Item(claimed) => {
                    let release = QueueRelease { run_at: now, counts: false, failed_at: None, error: None };
                    self.workshop.queue.release(claimed, release)
                }
                Job::Summary(job) => self.workshop.queue.postpone_summary(job, Some(now), ""),
            };
            if let Err(fault) = returned {
                tracing::warn!(job = ?job.key(), %fault, "a job could not be given back; its lease will run out");
            }
        }
    }
}

/// The time from one moment to a later one.
fn between(now: Timestamp, later: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(later.as_millis() - now.as_millis()).unwrap_or(0).max(1))
}
