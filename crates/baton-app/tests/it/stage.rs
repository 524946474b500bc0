//! Test fixture: the application on an empty database of each kind, with a fake clock and fixed random bits.
#![expect(clippy::print_stdout, reason = "the output of failed tests is shown")]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use baton_app::checkpoint::ContextStorage;
use baton_app::observation::{ModelTroubles, WorkerActivity};
use baton_app::{
    AnyOperation, App, Call, ChatRecall, CheckpointSettings, Clock, Entropy, Face, ObservationSettings,
    Reply, RequestLog, Settings, find,
};
use baton_checkpoint::classify::Classifier;
use baton_core::{
    Actor, Fault, HeartbeatPolicy, IdempotencyKey, Liveness, RequestRecord, SessionId, Timestamp,
};
use baton_llm::Offline;
use baton_store::{Effort, Packing};
use baton_testkit::contract::{Database, TestPlace, TestStore, read};
use serde_json::{Value, json};

/// Start time of every test.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

/// A clock that changes only when set. Clones share the time.
#[derive(Debug, Clone)]
pub(crate) struct FakeClock(Arc<AtomicI64>);

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl FakeClock {
    pub(crate) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }
}

/// Deterministic sequence of different bits.
#[derive(Debug, Default)]
pub(crate) struct FixedEntropy(AtomicU64);

impl Entropy for FixedEntropy {
    fn bits(&self) -> Result<u128, Fault> {
        let draw = u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1;
        Ok(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }
}

/// The application with its clock and store.
pub(crate) struct Stage {
    pub(crate) app: App,
    pub(crate) clock: FakeClock,
    pub(crate) store: TestStore,
}

impl Stage {
    /// Creates a stage on each kind of database and prints its kind, so that the output of a failed test shows it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        [Database::Sqlite, Database::Postgres].into_iter().filter_map(|database| {
            println!("on {database:?}");
            Some(Self::on(TestStore::open(TestPlace::with_schema(database)?), settings()))
        })
    }

    pub(crate) fn sqlite() -> Self {
        Self::on(TestStore::open(TestPlace::with_schema(Database::Sqlite).unwrap()), settings())
    }

    /// Creates a stage with changed settings on each kind of database. The store runs on the thread of its caller, so
    /// deferred updates are complete when a call returns.
    pub(crate) fn each_with(change: impl Fn(&mut Settings)) -> impl Iterator<Item = Self> {
        [Database::SqliteOnCaller, Database::PostgresOnCaller].into_iter().filter_map(move |database| {
            println!("on {database:?}");
            let mut settings = settings();
            change(&mut settings);
            Some(Self::on(TestStore::open(TestPlace::with_schema(database)?), settings))
        })
    }

    fn on(store: TestStore, settings: Settings) -> Self {
        let clock = FakeClock(Arc::new(AtomicI64::new(NOW.as_millis())));
        let log = RequestLog::at_end();
        let app = App::new(store.clone(), settings, clock.clone(), FixedEntropy::default(), log);
        Self { app, clock, store }
    }

    /// Returns another process on the same store, with the same clock.
    pub(crate) fn another(&self) -> App {
        self.beside(|_| {})
    }

    /// Returns another process on the same store, with the same clock and changed settings.
    pub(crate) fn beside(&self, change: impl Fn(&mut Settings)) -> App {
        let mut settings = settings();
        change(&mut settings);
        let entropy = FixedEntropy(AtomicU64::new(1 << 32));
        App::new(self.store.another(), settings, self.clock.clone(), entropy, RequestLog::at_end())
    }

    /// Calls an operation at this time after the start.
    pub(crate) fn at(&self, since: Duration, name: &str, params: Value) -> Reply {
        self.clock.set(NOW.plus(since));
        self.call(name, params)
    }

    pub(crate) fn call(&self, name: &str, params: Value) -> Reply {
        self.app.call_blocking(operation(name), self.envelope(None), params)
    }

    pub(crate) fn keyed(&self, key: &str, name: &str, params: Value) -> Reply {
        self.app.call_blocking(operation(name), self.envelope(Some(key)), params)
    }

    /// Returns the call without its parameters.
    pub(crate) fn envelope(&self, key: Option<&str>) -> Call {
        Call {
            actor: Actor::shared("key"),
            face: Face::Mcp,
            correlation_id: self.app.correlation_id().unwrap(),
            idempotency_key: key.map(|key| IdempotencyKey::parse(key).unwrap()),
            attachment: None,
        }
    }

    /// Returns the stored session.
    pub(crate) fn session(&self, id: SessionId) -> baton_core::Session {
        read(&self.store, move |tx| tx.session(id)).unwrap()
    }

    /// Drops the application, which writes its log, and returns the records, oldest first.
    pub(crate) fn logged(self) -> Vec<RequestRecord> {
        drop(self.app);
        let mut records = read(&self.store, |tx| tx.requests(10_000));
        records.reverse();
        records
    }
}

fn settings() -> Settings {
    Settings {
        liveness: Liveness::default(),
        heartbeat: HeartbeatPolicy::default(),
        idempotency_ttl: HOUR,
        request_retention: 7 * DAY,
        request_log_max_records: 10_000,
        default_venture: "local".parse().unwrap(),
        outbox: None,
        checkpoints: CheckpointSettings {
            max_checkpoints: 1_000,
            max_total_bytes: 1 << 30,
            retention: 30 * DAY,
            classifier: Arc::new(Classifier::builtin()),
            storage: ContextStorage::new(Packing { effort: Effort::Standard, min_bytes: 1_024 }),
        },
        observations: ObservationSettings {
            compressor: Arc::new(Offline),
            offline: Arc::new(Offline),
            daily_token_budget: None,
            price: None,
            read_closing: None,
            lease: 5 * MINUTE,
            max_attempts: 3,
            recall: ChatRecall::default(),
            raw_retention: 7 * DAY,
            troubles: ModelTroubles::default(),
            embedder: None,
            embedding_troubles: ModelTroubles::default(),
            activity: WorkerActivity::default(),
        },
        machine: None,
        started_at: NOW,
    }
}

pub(crate) fn operation(name: &str) -> &'static AnyOperation {
    find(name).unwrap()
}

/// Returns the parameters for starting a session.
pub(crate) fn who(agent: &str) -> Value {
    json!({ "agent": agent, "venture": "v", "repo": "o/r" })
}

/// Returns the output of a call that must succeed.
#[track_caller]
pub(crate) fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

/// Returns the error of a call that must fail with this code.
#[track_caller]
pub(crate) fn refused(reply: &Reply, code: &str) -> Value {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(body["error"], code, "{}", reply.body);
    body
}

#[track_caller]
pub(crate) fn session_id(output: &Value) -> SessionId {
    output["session_id"].as_str().unwrap().parse().unwrap()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future without an async runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
