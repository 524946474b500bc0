//! Test fixture: a worker on an empty database of either kind, with a fake model, clock and random source.
#![expect(clippy::print_stdout, reason = "the output of a failed test is shown")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use baton_app::checkpoint::ContextStorage;
use baton_app::observation::{ModelTroubles, WorkerActivity};
use baton_app::{
    App, ChatRecall, CheckpointSettings, Clock, Entropy, ObservationSettings, Reply, RequestLog, Settings,
    find,
};
use baton_checkpoint::classify::Classifier;
use baton_core::observation::{Observation, QueueStats, QueueStatus};
use baton_core::{Fault, HeartbeatPolicy, Liveness, SessionId, Timestamp};
use baton_llm::{Anthropic, AnthropicConfig, ApiKey, Compressor, Offline, OpenAi, OpenAiConfig};
use baton_store::{
    DailyUsage, Effort, ObservationFilter, Packing, Page, QueueItem, RawOutput, SessionFilter, StoredSummary,
    unpack_raw,
};
use baton_testkit::contract::{Database, TestPlace, TestStore, read};
use baton_testkit::model_server::{Behaviour, ModelServer};
use baton_worker::{Drained, Worker, WorkerConfig};
use serde_json::{Value, json};

/// Start time of every test: 10:00 UTC.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// Lease duration of a claimed item.
pub(crate) const LEASE: Duration = Duration::from_secs(300);
/// Maximum number of attempts per item.
pub(crate) const ATTEMPTS: u32 = 3;
/// Model timeout of clients in tests without a hanging model; long enough for a busy machine.
const MODEL_TIMEOUT: Duration = Duration::from_secs(600);
/// Model timeout for tests in which the model hangs.
const SHORT_MODEL_TIMEOUT: Duration = Duration::from_millis(300);

/// A clock that changes only when it is set. Clones share the time.
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

    pub(crate) fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

/// Deterministic bits that differ from call to call.
#[derive(Debug, Default)]
struct FixedEntropy(AtomicU64);

impl Entropy for FixedEntropy {
    fn bits(&self) -> Result<u128, Fault> {
        let draw = u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1;
        Ok(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }
}

/// API of the model client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
}

impl Api {
    /// Creates the real client for a model at this address.
    pub(crate) fn client(self, url: &str) -> Arc<dyn Compressor> {
        self.client_within(url, MODEL_TIMEOUT)
    }

    /// Creates the real client with a timeout that a test can wait for.
    fn client_with_short_timeout(self, url: &str) -> Arc<dyn Compressor> {
        self.client_within(url, SHORT_MODEL_TIMEOUT)
    }

    fn client_within(self, url: &str, timeout: Duration) -> Arc<dyn Compressor> {
        match self {
            Self::Anthropic => {
                let config = AnthropicConfig::new(ApiKey::new("sk-test-0123456789abcdef"));
                let config = AnthropicConfig { base_url: url.into(), timeout, ..config };
                Arc::new(Anthropic::new(&config).unwrap())
            }
            Self::OpenAi => {
                let config = OpenAiConfig { timeout, ..OpenAiConfig::new(url, "small-model") };
                Arc::new(OpenAi::new(&config).unwrap())
            }
        }
    }
}

/// A worker, its application and their environment.
pub(crate) struct Stage {
    pub(crate) worker: Worker,
    pub(crate) app: App,
    pub(crate) model: ModelServer,
    pub(crate) clock: FakeClock,
    pub(crate) api: Api,
    pub(crate) store: TestStore,
    settings: Settings,
    processes: AtomicU64,
}

impl Stage {
    /// Creates a fixture for each database with each client, and prints which: the output of a failed test ends with
    /// it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        Self::each_with(|_| {})
    }

    /// Like [`each`](Self::each), with other settings.
    pub(crate) fn each_with(change: impl Fn(&mut ObservationSettings)) -> impl Iterator<Item = Self> {
        let kinds = [
            (Database::SqliteOnCaller, Api::Anthropic),
            (Database::SqliteOnCaller, Api::OpenAi),
            (Database::PostgresOnCaller, Api::Anthropic),
            (Database::PostgresOnCaller, Api::OpenAi),
        ];
        kinds.into_iter().filter_map(move |(database, api)| {
            println!("on {database:?} with {api:?}");
            Some(Self::on(TestPlace::with_schema(database)?, api, &change))
        })
    }

    fn on(place: TestPlace, api: Api, change: impl Fn(&mut ObservationSettings)) -> Self {
        let store = TestStore::open(place);
        let model = ModelServer::start();
        let clock = FakeClock(Arc::new(AtomicI64::new(NOW.as_millis())));
        let mut settings = settings(api.client(&model.url()));
        change(&mut settings.observations);
        let (log, entropy) = (RequestLog::at_end(), FixedEntropy::default());
        let app = App::new(store.clone(), settings.clone(), clock.clone(), entropy, log);
        let worker = worker(&app);
        Self { worker, app, model, clock, api, store, settings, processes: AtomicU64::new(1) }
    }

    /// Creates another process on the same store, with the same clock and other settings.
    pub(crate) fn beside(&self, change: impl Fn(&mut ObservationSettings)) -> App {
        let mut settings = self.settings.clone();
        change(&mut settings.observations);
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        let entropy = FixedEntropy(AtomicU64::new(process << 32));
        App::new(self.store.another(), settings, self.clock.clone(), entropy, RequestLog::at_end())
    }

    /// Creates another process on the same store that times out when the model hangs.
    pub(crate) fn with_short_timeout(&self) -> App {
        let client = self.api.client_with_short_timeout(&self.model.url());
        self.beside(|settings| settings.compressor = client.clone())
    }

    /// Replaces the worker by a new one without state, like a restart.
    pub(crate) fn restart(&mut self) {
        self.worker = worker(&self.app);
    }

    /// Processes what is due now.
    #[track_caller]
    pub(crate) fn step(&self) -> Drained {
        self.worker.run_once().unwrap()
    }

    /// Advances the clock and processes what is due then.
    #[track_caller]
    pub(crate) fn step_after(&self, time: Duration) -> Drained {
        self.clock.advance(time);
        self.step()
    }

    pub(crate) fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Processes everything, advancing the clock as long as necessary.
    #[track_caller]
    pub(crate) fn finish(&self) {
        self.model.behave(Behaviour::Good);
        self.step_after(2 * LEASE);
        let stats = self.stats();
        assert_eq!((stats.raw, stats.processing), (0, 0), "{stats:?}");
    }

    pub(crate) fn call(&self, name: &str, params: Value) -> Reply {
        call(&self.app, name, params)
    }

    /// Calls an operation that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, name: &str, params: Value) -> Value {
        let reply = self.call(name, params);
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Reports an event of the test chat.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, more: Value) {
        report(&self.app, event, more);
    }

    /// Captures a tool use with the output `item-<number>` and returns its queue id.
    #[track_caller]
    pub(crate) fn capture(&self, number: u32) -> i64 {
        self.capture_output(&format!("what item-{number} said"))
    }

    /// Captures a tool use with this output.
    #[track_caller]
    pub(crate) fn capture_output(&self, output: &str) -> i64 {
        // Items have distinct times, so that their order is defined.
        self.clock.advance(Duration::from_millis(1));
        let used =
            json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_response": output });
        self.hook("post-tool-use", used);
        // Read at once, because a running worker may change the status of the item at any time.
        let newest = read(&self.store, |tx| {
            let newest_of = |status| tx.queue_items(status, None, 1);
            QueueStatus::ALL.into_iter().map(newest_of).collect::<Result<Vec<_>, _>>()
        });
        newest.into_iter().flatten().map(|item| item.id).max().unwrap()
    }

    /// Returns the active session of the test chat.
    #[track_caller]
    pub(crate) fn session(&self) -> SessionId {
        let active = read(&self.store, |tx| tx.active_sessions(&SessionFilter::default(), Page::first(2)));
        assert_eq!(active.len(), 1, "{active:?}");
        active[0].id
    }

    pub(crate) fn stats(&self) -> QueueStats {
        read(&self.store, |tx| tx.queue_stats())
    }

    #[track_caller]
    pub(crate) fn item(&self, id: i64) -> QueueItem {
        read(&self.store, move |tx| tx.queue_item(id)).unwrap()
    }

    /// Returns the stored raw output of an item.
    #[track_caller]
    pub(crate) fn raw(&self, id: i64) -> String {
        match read(&self.store, move |tx| tx.queue_raw(id)).unwrap() {
            RawOutput::Row(packed) => String::from_utf8(unpack_raw(&packed).unwrap()).unwrap(),
            RawOutput::Blob(name) => panic!("a small output is in blob {name}"),
        }
    }

    /// Returns all observations, oldest first.
    pub(crate) fn observations(&self) -> Vec<Observation> {
        let mut found =
            read(&self.store, |tx| tx.observations(&ObservationFilter::default(), Page::first(10_000)));
        found.reverse();
        found
    }

    /// Returns the only observation of an item.
    #[track_caller]
    pub(crate) fn observation(&self, queue_id: i64) -> Observation {
        let mut found: Vec<Observation> =
            self.observations().into_iter().filter(|one| one.queue_id == queue_id).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    pub(crate) fn summary(&self, session: SessionId) -> Option<StoredSummary> {
        read(&self.store, move |tx| tx.summary(session))
    }

    pub(crate) fn usage(&self) -> Vec<DailyUsage> {
        read(&self.store, |tx| tx.usage(100))
    }
}

/// Creates a worker with one thread.
pub(crate) fn worker(app: &App) -> Worker {
    worker_with(app, 1)
}

/// Creates a worker with this many threads.
pub(crate) fn worker_with(app: &App, concurrency: usize) -> Worker {
    Worker::new(app.clone(), WorkerConfig { concurrency })
}

pub(crate) fn call(app: &App, name: &str, params: Value) -> Reply {
    app.call_blocking(find(name).unwrap(), app.own_call().unwrap(), params)
}

/// Reports an event of the test chat.
#[track_caller]
fn report(app: &App, event: &str, more: Value) {
    let mut params = json!({ "event": event, "session_id": "chat", "repo": "o/r", "client": "claude-code" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = call(app, "hook.report", params);
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// Expected result: only this many items became observations.
pub(crate) fn done(done: u64) -> Drained {
    Drained { done, ..Drained::default() }
}

/// Expected result: only this many items were released.
pub(crate) fn released(released: u64) -> Drained {
    Drained { released, ..Drained::default() }
}

/// Expected result: only this many items failed.
pub(crate) fn failed(failed: u64) -> Drained {
    Drained { failed, ..Drained::default() }
}

fn settings(compressor: Arc<dyn Compressor>) -> Settings {
    Settings {
        liveness: Liveness::default(),
        heartbeat: HeartbeatPolicy::default(),
        idempotency_ttl: 60 * MINUTE,
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
            price: None,
            compressor,
            offline: Arc::new(Offline),
            daily_token_budget: None,
            read_closing: None,
            lease: LEASE,
            max_attempts: ATTEMPTS,
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
