//! The crash harness of the queue: several processes turn captured tool output into observations, are killed and stopped
//! past their leases at moments that nobody chose; in the end every job has exactly one observation.
#![expect(clippy::expect_used, reason = "a harness that cannot look must fail loudly")]

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

/// How long a worker has what it claimed, in seconds: `BATON_WORKER_LEASE_SECONDS` of every worker.
pub const LEASE_SECONDS: u64 = 2;
/// How long the run may take without anything getting done.
const PATIENCE: Duration = Duration::from_secs(120);
const ENQUEUED_AT_ONCE: u32 = 100;
/// How many workers are killed, and how many stopped, in every run at the least.
const ENOUGH: u32 = 3;
/// How many times as many jobs a run may do until a job was claimed twice.
const MAX_JOBS_FACTOR: u32 = 4;

/// How many jobs a run does: `BATON_CRASH_JOBS`, or `default`.
pub fn jobs(default: u32) -> u32 {
    std::env::var("BATON_CRASH_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the harness saw, for a test to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Jobs that became observations.
    pub done: u64,
    /// How often a worker was killed.
    pub kills: u32,
    /// How often a worker was stopped for longer than its lease, and went on.
    pub naps: u32,
    /// How many jobs were claimed more than once before they were done.
    pub claimed_again: u64,
}

/// Runs workers, one for each command that `worker` gives, until all jobs are done, and checks what is there. When no job
/// was claimed twice by then, more jobs are added, up to four times as many.
///
/// # Panics
///
/// When a job was lost, given up or done twice, or nothing gets done any more.
pub fn run(
    store: &StoreConfig,
    workers: usize,
    jobs: u32,
    worker: impl Fn(usize) -> Command + Sync,
) -> Tally {
    // The first one makes the store, so that nobody is killed while doing so over and over.
    let watched = Store::open(store).expect("the store can be opened");
    let team: Vec<Mutex<Member>> =
        (0..workers).map(|number| Mutex::new(Member::start(&worker, number))).collect();
    let mut tally = Tally::default();
    let (session, mut parts) = (session_id(), 0);
    let (mut done, mut since) = (0, Instant::now());
    let (mut jobs, max_jobs) = (jobs, jobs * MAX_JOBS_FACTOR);
    while done < u64::from(jobs) {
        // However quick the machine is, the last jobs come after some trouble of each kind.
        let trouble_enough = parts.min(ENOUGH);
        // A worker that was stopped in the middle of a write holds the file, and only this loop wakes it.
        let all_awake = team.iter().all(|one| one.lock().expect("a member").naps_until.is_none());
        let next_is_due =
            parts * ENQUEUED_AT_ONCE < jobs && tally.kills >= trouble_enough && tally.naps >= trouble_enough;
        if all_awake && next_is_due {
            let from = parts * ENQUEUED_AT_ONCE;
            enqueue(&watched, session, from.min(jobs)..jobs.min(from + ENQUEUED_AT_ONCE));
            parts += 1;
        }
        // The one place where waiting is the point: trouble comes at a moment that nobody chose.
        std::thread::sleep(Duration::from_millis(50 + random() % 250));
        wake(&team, &mut tally);
        // Nobody is stopped anew while the next jobs wait for all to be awake.
        if all_awake || !next_is_due {
            trouble(&team, &worker, &mut tally);
        }
        let stats = stats(&watched);
        assert_eq!(stats.error, 0, "a job was given up: {stats:?}");
        if stats.done > done {
            (done, since) = (stats.done, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "nothing gets done any more: {stats:?}");
        if done == u64::from(jobs) && jobs < max_jobs && verify(&watched, jobs) == 0 {
            jobs += ENQUEUED_AT_ONCE;
        }
    }
    // Those that were late must not do anything now either: they are woken, and then asked to stop.
    for member in team {
        member.into_inner().expect("a member").leave();
    }
    Tally { claimed_again: verify(&watched, jobs), done: u64::from(jobs), ..tally }
}

/// A process that works, killed when this goes away.
struct Member {
    child: Child,
    /// When it may go on, if it was stopped.
    naps_until: Option<Instant>,
}

impl Member {
    fn start(worker: &impl Fn(usize) -> Command, number: usize) -> Self {
        let mut command = worker(number);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("a worker starts"), naps_until: None }
    }

    fn end(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn leave(mut self) {
        signal(self.child.id(), "CONT");
        signal(self.child.id(), "TERM");
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().expect("its state").is_none() {
            assert!(Instant::now() < deadline, "a worker does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Wakes those that slept long enough.
fn wake(team: &[Mutex<Member>], tally: &mut Tally) {
    for member in team {
        let mut member = member.lock().expect("a member");
        let ended = member.child.try_wait().expect("its state");
        assert!(ended.is_none(), "a worker ended by itself: {ended:?}");
        if member.naps_until.is_some_and(|until| until <= Instant::now()) {
            assert!(signal(member.child.id(), "CONT"), "a stopped worker is gone");
            member.naps_until = None;
            tally.naps += 1;
        }
    }
}

/// Kills or stops one of those that are awake.
fn trouble(team: &[Mutex<Member>], worker: &impl Fn(usize) -> Command, tally: &mut Tally) {
    let number = usize::try_from(random() % team.len() as u64).expect("an index");
    let mut member = team[number].lock().expect("a member");
    if member.naps_until.is_some() {
        return;
    }
    match random() % 3 {
        0 => {
            // Its seat is free when it is gone, not before.
            member.end();
            *member = Member::start(worker, number);
            tally.kills += 1;
        }
        1 => {
            let nap = Duration::from_millis(LEASE_SECONDS * 1_000 + 200 + random() % 800);
            if signal(member.child.id(), "STOP") {
                member.naps_until = Some(Instant::now() + nap);
            }
        }
        _ => {}
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Puts some of the jobs into the queue.
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

/// Looks into the store: every job is done, with one observation that is its own. Tells how many were claimed again.
fn verify(store: &Store, jobs: u32) -> u64 {
    let counted = stats(store);
    let expected = QueueStats { done: u64::from(jobs), ..QueueStats::default() };
    assert_eq!(counted, expected, "jobs were lost or doubled");
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
    assert_eq!(all.len(), jobs as usize, "each job has one observation");
    let mut claimed_again = 0;
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    for (observation, attempts) in all {
        claimed_again += u64::from(attempts > 1);
        let number = observation.tool_use_id.expect("the use of a tool").replace("use-", "");
        assert_eq!(observation.compressed.title, format!("Compressed item-{number}"), "it is its own");
        let other = seen.insert(number, observation.queue_id);
        assert_eq!(other, None, "a job has two observations");
    }
    claimed_again
}
