//! What tests stand on: a worker on an empty database of either kind, with a fake model, a clock and dice of their own.
#![expect(clippy::print_stdout, reason = "what a test says is shown when it fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use baton_app::checkpoint::Vault;
use baton_app::observation::{ModelTroubles, WorkerActivity};
use baton_app::{
    App, CheckpointSettings, Clock, Entropy, ObservationSettings, Reply, RequestLog, Settings, find,
};
use baton_core::classify::Classifier;
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

/// When every test begins: ten in the morning, UTC.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// How long an item belongs to whoever claimed it.
pub(crate) const LEASE: Duration = Duration::from_secs(300);
/// How often an item is tried.
pub(crate) const ATTEMPTS: u32 = 3;
/// Model timeout of every client that is not created for a model that hangs: never reached on a busy machine.
const MODEL_TIMEOUT: Duration = Duration::from_secs(600);
/// Model timeout for tests in which the model hangs.
const SHORT_MODEL_TIMEOUT: Duration = Duration::from_millis(300);

/// A clock that stands still until it is set. Clones are the same clock.
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

/// Bits that differ from draw to draw and are the same in every run.
#[derive(Debug, Default)]
struct FixedEntropy(AtomicU64);

impl Entropy for FixedEntropy {
    fn bits(&self) -> Result<u128, Fault> {
        let draw = u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1;
        Ok(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }
}

/// The API that a model is asked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
}

impl Api {
    /// The real client, for a model at this address.
    pub(crate) fn client(self, url: &str) -> Arc<dyn Compressor> {
        self.client_within(url, MODEL_TIMEOUT)
    }

    /// The real client with a timeout that a test can wait for.
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

/// A worker, the application it works for, and what surrounds them.
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
    /// Sets one up on each kind of database with each client in turn, saying which: the output of a failed test ends
    /// with it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        Self::each_with(|_| {})
    }

    /// The same with other settings.
    pub(crate) fn each_with(change: impl Fn(&mut ObservationSettings)) -> impl Iterator<Item = Self> {
        let kinds = [
            (Database::SqliteOnCaller, Api::Anthropic),
            (Database::SqliteOnCaller, Api::OpenAi),
            (Database::PostgresOnCaller, Api::Anthropic),
            (Database::PostgresOnCaller, Api::OpenAi),
        ];
        kinds.into_iter().filter_map(move |(database, api)| {
            println!("on {database:?} with {api:?}");
            Some(Self::on(TestPlace::create(database)?, api, &change))
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

    /// Another process on the same store, with the same clock and other settings.
    pub(crate) fn beside(&self, change: impl Fn(&mut ObservationSettings)) -> App {
        let mut settings = self.settings.clone();
        change(&mut settings.observations);
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        let entropy = FixedEntropy(AtomicU64::new(process << 32));
        App::new(self.store.another(), settings, self.clock.clone(), entropy, RequestLog::at_end())
    }

    /// Another process on the same store that gives up on a model that hangs.
    pub(crate) fn with_short_timeout(&self) -> App {
        let client = self.api.client_with_short_timeout(&self.model.url());
        self.beside(|settings| settings.compressor = client.clone())
    }

    /// A worker that knows nothing of what was before, as after a restart.
    pub(crate) fn restart(&mut self) {
        self.worker = worker(&self.app);
    }

    /// Does what is due now.
    #[track_caller]
    pub(crate) fn step(&self) -> Drained {
        self.worker.run_once().unwrap()
    }

    /// Does what is due after so long.
    #[track_caller]
    pub(crate) fn step_after(&self, time: Duration) -> Drained {
        self.clock.advance(time);
        self.step()
    }

    pub(crate) fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Does everything that can be done, however long that takes.
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

    /// Calls what must be answered.
    #[track_caller]
    pub(crate) fn ok(&self, name: &str, params: Value) -> Value {
        let reply = self.call(name, params);
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Reports an event of the one chat there is.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, more: Value) {
        report(&self.app, event, more);
    }

    /// Captures the use of a tool that says `item-<number>`, and gives its number in the queue.
    #[track_caller]
    pub(crate) fn capture(&self, number: u32) -> i64 {
        self.capture_output(&format!("what item-{number} said"))
    }

    /// Captures the use of a tool that says this.
    #[track_caller]
    pub(crate) fn capture_output(&self, output: &str) -> i64 {
        // No two are captured in the same millisecond, so that they have an order.
        self.clock.advance(Duration::from_millis(1));
        let used =
            json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_response": output });
        self.hook("post-tool-use", used);
        let newest =
            QueueStatus::ALL.map(|status| read(&self.store, move |tx| tx.queue_items(status, None, 1)));
        newest.into_iter().flatten().map(|item| item.id).max().unwrap()
    }

    /// The session of the one chat there is, while it goes on.
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

    /// What is kept of what a tool did.
    #[track_caller]
    pub(crate) fn raw(&self, id: i64) -> String {
        match read(&self.store, move |tx| tx.queue_raw(id)).unwrap() {
            RawOutput::Row(packed) => String::from_utf8(unpack_raw(&packed).unwrap()).unwrap(),
            RawOutput::Blob(name) => panic!("a small output is in blob {name}"),
        }
    }

    /// All observations, oldest first.
    pub(crate) fn observations(&self) -> Vec<Observation> {
        let mut found =
            read(&self.store, |tx| tx.observations(&ObservationFilter::default(), Page::first(10_000)));
        found.reverse();
        found
    }

    /// The only observation of an item.
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

/// A worker of an application, with one thread where it has any.
pub(crate) fn worker(app: &App) -> Worker {
    worker_with(app, 1)
}

/// A worker of an application, with so many threads.
pub(crate) fn worker_with(app: &App, concurrency: usize) -> Worker {
    Worker::new(app.clone(), WorkerConfig { concurrency })
}

pub(crate) fn call(app: &App, name: &str, params: Value) -> Reply {
    app.call_blocking(find(name).unwrap(), app.own_call().unwrap(), params)
}

/// Reports an event of the one chat there is.
#[track_caller]
fn report(app: &App, event: &str, more: Value) {
    let mut params = json!({ "event": event, "session_id": "chat", "repo": "o/r", "client": "claude-code" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = call(app, "hook.report", params);
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// So many items became observations, and nothing else happened.
pub(crate) fn done(done: u64) -> Drained {
    Drained { done, ..Drained::default() }
}

/// So many items wait again, and nothing else happened.
pub(crate) fn returned(returned: u64) -> Drained {
    Drained { returned, ..Drained::default() }
}

/// So many items were given up, and nothing else happened.
pub(crate) fn given_up(given_up: u64) -> Drained {
    Drained { given_up, ..Drained::default() }
}

fn settings(compressor: Arc<dyn Compressor>) -> Settings {
    Settings {
        liveness: Liveness::default(),
        heartbeat: HeartbeatPolicy::default(),
        idempotency_ttl: 60 * MINUTE,
        request_retention: 7 * DAY,
        request_log_max_records: 10_000,
        default_venture: "local".parse().unwrap(),
        checkpoints: CheckpointSettings {
            max_checkpoints: 1_000,
            max_total_bytes: 1 << 30,
            retention: 30 * DAY,
            classifier: Arc::new(Classifier::builtin()),
            vault: Vault::new(Packing { effort: Effort::Standard, min_bytes: 1_024 }),
        },
        observations: ObservationSettings {
            price: None,
            compressor,
            offline: Arc::new(Offline),
            daily_token_budget: None,
            lease: LEASE,
            max_attempts: ATTEMPTS,
            raw_retention: 7 * DAY,
            troubles: ModelTroubles::default(),
            activity: WorkerActivity::default(),
        },
        started_at: NOW,
    }
}
