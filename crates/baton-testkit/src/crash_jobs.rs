//! Crash harness of the queue: several worker processes are killed, or suspended for longer than their leases, at
//! random times. In the end every job must have exactly one observation.
#![expect(clippy::expect_used, reason = "a harness that cannot read the store must fail loudly")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use baton_core::observation::{Observation, QueueStats};
use baton_core::{SessionId, Timestamp};
use baton_store::{
    Durability, NewQueueItem, ObservationFilter, Page, RawOutput, Store, StoreConfig, StoreError, pack_raw,
};
use serde_json::json;

use crate::contract::fixture::session_id;
use crate::processes::signal;

/// Lease duration in seconds: `BATON_WORKER_LEASE_SECONDS` of every worker.
pub const LEASE_SECONDS: u64 = 2;
/// Maximum time without progress.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(120);
const JOBS_PER_BATCH: u32 = 100;
/// Minimum number of kills and of suspensions in every run.
const MIN_DISRUPTIONS: u32 = 3;
/// Maximum number of jobs relative to the initial number, until a job was claimed twice.
const MAX_JOBS_FACTOR: u32 = 4;

/// Counts, for a test to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Jobs that became observations.
    pub done: u64,
    /// Number of killed workers.
    pub kills: u32,
    /// Number of times a worker was suspended for longer than its lease and resumed.
    pub suspensions: u32,
    /// Number of jobs that were claimed more than once.
    pub claimed_again: u64,
}

/// Runs one worker for each command of `worker` until all jobs are done, and verifies the result. If no job was claimed
/// twice by then, more jobs are added, up to four times as many.
///
/// # Panics
///
/// Panics if a job was lost, failed or executed twice, or if there is no progress.
pub fn run(
    store: &StoreConfig,
    workers: usize,
    jobs: u32,
    worker: impl Fn(usize) -> Command + Sync,
) -> Tally {
    // The store is created here, so that no worker is killed while creating it.
    let watched = Store::open(store).expect("the store can be opened");
    let team: Vec<Mutex<WorkerProcess>> =
        (0..workers).map(|number| Mutex::new(WorkerProcess::start(&worker, number))).collect();
    let mut tally = Tally::default();
    let (session, mut parts) = (session_id(), 0);
    let (mut done, mut since) = (0, Instant::now());
    let (mut jobs, max_jobs) = (jobs, jobs * MAX_JOBS_FACTOR);
    while done < u64::from(jobs) {
        // However fast the machine is, the last jobs are added only after some kills and suspensions.
        let min_disruptions = parts.min(MIN_DISRUPTIONS);
        // A worker that was suspended during a write holds the file lock, and only this loop resumes it.
        let all_awake = team.iter().all(|one| one.lock().expect("a member").suspended_until.is_none());
        let next_is_due = parts * JOBS_PER_BATCH < jobs
            && tally.kills >= min_disruptions
            && tally.suspensions >= min_disruptions;
        if all_awake && next_is_due {
            let from = parts * JOBS_PER_BATCH;
            enqueue(&watched, session, from.min(jobs)..jobs.min(from + JOBS_PER_BATCH));
            parts += 1;
        }
        // Sleeping is intended here: disruptions must happen at random times.
        std::thread::sleep(Duration::from_millis(50 + random() % 250));
        resume_due(&team, &mut tally);
        // No worker is suspended while the next jobs wait for all workers to be running.
        if all_awake || !next_is_due {
            disrupt(&team, &worker, &mut tally);
        }
        let stats = stats(&watched);
        assert_eq!(stats.error, 0, "a job failed: {stats:?}");
        if stats.done > done {
            (done, since) = (stats.done, Instant::now());
        }
        assert!(since.elapsed() < PROGRESS_TIMEOUT, "no progress: {stats:?}");
        if done == u64::from(jobs) && jobs < max_jobs && verify(&watched, jobs) == 0 {
            jobs += JOBS_PER_BATCH;
        }
    }
    // Suspended workers are resumed before they are stopped: they must not change anything either. All are resumed before
    // the first is stopped, because it may wait for a lock of another one.
    let team: Vec<WorkerProcess> = team.into_iter().map(|one| one.into_inner().expect("a member")).collect();
    for member in &team {
        signal(member.child.id(), "CONT");
    }
    for member in team {
        member.shut_down();
    }
    Tally { claimed_again: verify(&watched, jobs), done: u64::from(jobs), ..tally }
}

/// A worker process, killed on drop.
struct WorkerProcess {
    child: Child,
    /// Time until which the worker is suspended.
    suspended_until: Option<Instant>,
}

impl WorkerProcess {
    fn start(worker: &impl Fn(usize) -> Command, number: usize) -> Self {
        let mut command = worker(number);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("a worker starts"), suspended_until: None }
    }

    fn end(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn shut_down(mut self) {
        signal(self.child.id(), "TERM");
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().expect("its state").is_none() {
            assert!(Instant::now() < deadline, "a worker does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Resumes workers that were suspended long enough.
fn resume_due(team: &[Mutex<WorkerProcess>], tally: &mut Tally) {
    for member in team {
        let mut member = member.lock().expect("a member");
        let ended = member.child.try_wait().expect("its state");
        assert!(ended.is_none(), "a worker ended by itself: {ended:?}");
        if member.suspended_until.is_some_and(|until| until <= Instant::now()) {
            assert!(signal(member.child.id(), "CONT"), "a suspended worker has ended");
            member.suspended_until = None;
            tally.suspensions += 1;
        }
    }
}

/// Kills or suspends a random running worker.
fn disrupt(team: &[Mutex<WorkerProcess>], worker: &impl Fn(usize) -> Command, tally: &mut Tally) {
    let number = usize::try_from(random() % team.len() as u64).expect("an index");
    let mut member = team[number].lock().expect("a member");
    if member.suspended_until.is_some() {
        return;
    }
    match random() % 3 {
        0 => {
            // The worker lock is released only when the process has ended.
            member.end();
            *member = WorkerProcess::start(worker, number);
            tally.kills += 1;
        }
        1 => {
            let suspension = Duration::from_millis(LEASE_SECONDS * 1_000 + 200 + random() % 800);
            if signal(member.child.id(), "STOP") {
                member.suspended_until = Some(Instant::now() + suspension);
            }
        }
        _ => {}
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Adds some of the jobs to the queue.
fn enqueue(store: &Store, session: SessionId, part: Range<u32>) {
    let enqueued = store.write_blocking(Durability::Full, move |tx| {
        for number in part.clone() {
            let text = json!({ "tool_input": {}, "tool_response": format!("what item-{number} said") });
            let item = NewQueueItem {
                session_id: session,
                venture: "crash".parse().expect("a venture"),
                repo: "o/r".parse().expect("a repository"),
                tool_name: "Bash".into(),
                tool_use_id: Some(format!("use-{number}")),
                files_touched: Vec::new(),
                raw: RawOutput::Row(pack_raw(text.to_string().as_bytes())?),
                raw_bytes: 20,
                run_at: now(),
                created_at: now(),
            };
            assert!(tx.enqueue(&item)?.is_some(), "item {number} is new");
        }
        Ok::<_, StoreError>(())
    });
    enqueued.expect("jobs can be enqueued");
}

fn stats(store: &Store) -> QueueStats {
    store.read(|tx| tx.queue_stats()).wait().expect("the queue can be counted")
}

/// Verifies that every job is done with exactly one matching observation. Returns the number of jobs claimed again.
fn verify(store: &Store, jobs: u32) -> u64 {
    let counted = stats(store);
    let expected = QueueStats { done: u64::from(jobs), ..QueueStats::default() };
    assert_eq!(counted, expected, "jobs were lost or duplicated");
    let all = store
        .read(move |tx| {
            let found = tx.observations(&ObservationFilter::default(), Page::first(jobs + 1))?;
            let mut pairs: Vec<(Observation, i64)> = Vec::new();
            for observation in found {
                let item = tx.queue_item(observation.queue_id)?;
                pairs.push((observation, item.expect("the job of an observation").attempts));
            }
            Ok::<_, StoreError>(pairs)
        })
        .wait()
        .expect("observations can be listed");
    assert_eq!(all.len(), jobs as usize, "each job must have one observation");
    let mut claimed_again = 0;
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    for (observation, attempts) in all {
        claimed_again += u64::from(attempts > 1);
        let number = observation.tool_use_id.expect("a tool use id").replace("use-", "");
        assert_eq!(
            observation.compressed.title,
            format!("Compressed item-{number}"),
            "the observation must match its job"
        );
        let other = seen.insert(number, observation.queue_id);
        assert_eq!(other, None, "a job has two observations");
    }
    claimed_again
}
