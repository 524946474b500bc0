//! Observations: the time of a hook, and the throughput of a worker.
//!
//! The lower bound of a hook is a minimal process that opens SQLite, inserts one row durably and exits, measured in
//! turns with the hook. The model is an HTTP server in this process that answers immediately, so the worker does
//! everything that it does with a real model.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_benches::{Timings, machine, release_binary, table};
use baton_core::{SessionId, Timestamp, Ulid};
use baton_store::{
    Durability, NewQueueItem, PostgresTimeouts, RawOutput, Store, StoreConfig, StoreError, Threads, Tx,
    pack_raw,
};
use baton_testkit::model_server::ModelServer;
use baton_testkit::postgres::TestDatabase;
use serde_json::json;

const TIMES: usize = 200;
/// Number of items to process.
const ITEMS: usize = 50_000;
/// Size of the output of each item.
const ITEM_BYTES: usize = 10_000;

/// Returns generated output that compresses about as well as the output of a test run.
fn output(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut number = 7_u64;
    while text.len() < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text +=
            &format!("test store::rows::case_{:06} ... ok ({} us)\n", number >> 44, (number >> 20) & 0xffff);
    }
    text.truncate(bytes);
    text
}

fn report(number: usize, bytes: usize) -> Vec<u8> {
    json!({
        "session_id": "bench-chat", "cwd": "/tmp", "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": { "command": "cargo test" }, "tool_use_id": format!("toolu_{number}"),
        "tool_response": { "stdout": output(bytes), "stderr": "", "interrupted": false },
    })
    .to_string()
    .into_bytes()
}

fn start(command: &mut Command, input: &[u8]) -> (Instant, Child) {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
    child.stdin.take().expect("its input").write_all(input).expect("it reads");
    (started, child)
}

fn time(command: &mut Command, input: &[u8]) -> Duration {
    let (started, mut child) = start(command, input);
    assert!(child.wait().expect("it ends").success());
    started.elapsed()
}

struct BenchHome {
    baton: std::path::PathBuf,
    folder: tempfile::TempDir,
}

impl BenchHome {
    fn new() -> Self {
        Self { baton: release_binary("baton"), folder: tempfile::tempdir().expect("a folder") }
    }

    /// Returns a command in the folder. All programs are started alike, because the start is part of the measured time.
    fn process(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.folder.path());
        command.env("BATON_DATA_DIR", self.folder.path().join("data")).current_dir(self.folder.path());
        // A background worker would distort the results.
        command.env("BATON_WORKER_AUTOSTART", "off");
        command
    }

    fn hook(&self) -> Command {
        let mut command = self.process(&self.baton);
        command.args(["hook", "post-tool-use"]);
        command
    }
}

/// Keeps a core busy until the value is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_in_thread = is_over.clone();
        std::thread::spawn(move || {
            while !is_over_in_thread.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(is_over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn hooks() {
    let home = BenchHome::new();
    let floor = release_binary("floor");
    let floor_file = home.folder.path().join("floor.db");
    let mut number = 0;
    let mut hook = |bytes: usize| {
        number += 1;
        time(&mut home.hook(), &report(number, bytes))
    };
    let run_floor = || time(home.process(&floor).arg(&floor_file), b"");
    hook(10_000);
    let mut rows = Vec::new();
    let mut measure = |name: &str, bytes: usize, times: usize| {
        let (mut hook_timings, mut floor_timings) = (Vec::new(), Vec::new());
        for _ in 0..times {
            floor_timings.push(run_floor());
            hook_timings.push(hook(bytes));
        }
        let (hook_timings, floor_timings) = (Timings::new(hook_timings), Timings::new(floor_timings));
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", hook_timings.percentile_ms(50)),
            format!("{:.2}", hook_timings.percentile_ms(95)),
            format!("{:.2}", floor_timings.percentile_ms(50)),
            format!("{:.2}×", hook_timings.percentile_ms(50) / floor_timings.percentile_ms(50)),
        ]);
    };
    measure("10 KB of output", 10_000, TIMES);
    {
        let _busy = Busy::start();
        measure("10 KB, while another core is busy", 10_000, TIMES);
    }
    measure("1 MB of output", 1_000_000, 50);
    measure("50 MB of output", 50_000_000, 3);
    table(
        "`baton hook post-tool-use`, whole process",
        &["", "p50 ms", "p95 ms", "floor p50 ms", "to the floor"],
        &rows,
    );
    let at_once: Vec<Duration> = (0..10)
        .flat_map(|round| {
            let inputs: Vec<Vec<u8>> =
                (0..32).map(|number| report(1_000_000 + round * 32 + number, 10_000)).collect();
            std::thread::scope(|scope| {
                let running: Vec<_> =
                    inputs.iter().map(|input| scope.spawn(|| time(&mut home.hook(), input))).collect();
                running.into_iter().map(|thread| thread.join().expect("a hook")).collect::<Vec<_>>()
            })
        })
        .collect();
    let count = count(&home.folder.path().join("data/baton.db"), "1 = 1");
    println!("\nstored: {count} of {} reports", 1 + 2 * TIMES + 50 + 3 + 320);
    let at_once = Timings::new(at_once);
    println!(
        "32 hooks at once, ten times: p50 {:.1} ms, slowest {:.1} ms",
        at_once.percentile_ms(50),
        at_once.percentile_ms(100)
    );
}

fn count(database: &Path, condition: &str) -> i64 {
    let connection = rusqlite::Connection::open(database).expect("the database");
    let sql = format!("SELECT count(*) FROM pending_queue WHERE {condition}");
    connection.query_row(&sql, [], |row| row.get(0)).expect("a count")
}

/// Fills the queue of a store.
fn fill(store: &Store, items: usize) {
    let raw = json!({
        "tool_input": { "command": "cargo test" },
        "tool_response": { "stdout": output(ITEM_BYTES), "stderr": "" },
    });
    let packed = pack_raw(raw.to_string().as_bytes()).expect("packed");
    let now = Timestamp::from_millis(1_760_000_000_000);
    for batch in 0..items.div_ceil(1_000) {
        let packed = packed.clone();
        let work = move |tx: &mut dyn Tx| {
            for number in 0..1_000.min(items - batch * 1_000) {
                tx.enqueue(&NewQueueItem {
                    session_id: SessionId::new(Ulid(1 + (number % 50) as u128)),
                    venture: "bench".parse().expect("a venture"),
                    repo: "owner/repo".parse().expect("a repository"),
                    tool_name: "Bash".into(),
                    tool_use_id: None,
                    files_touched: Vec::new(),
                    raw: RawOutput::Row(packed.clone()),
                    raw_bytes: ITEM_BYTES as u64,
                    run_at: now,
                    created_at: now,
                })?;
            }
            Ok(())
        };
        store.write_blocking::<(), StoreError, _>(Durability::Lazy, work).expect("items");
    }
}

/// Returns true if the queue has pending items. Counting all items would take more time than the work itself.
fn has_pending_items(store: &Store) -> bool {
    let next = store.read(|tx: &mut dyn Tx| tx.next_queue_due_at()).wait();
    next.map_err(|error: StoreError| error).expect("a time").is_some()
}

fn require_all_done(store: &Store, items: usize) {
    let stats = store.read(|tx: &mut dyn Tx| tx.queue_stats()).wait();
    let stats = stats.map_err(|error: StoreError| error).expect("counts");
    assert_eq!(stats.done, items as u64, "every item must become an observation: {stats:?}");
}

/// Measures time and memory of hook and worker for large outputs.
fn large() {
    let home = BenchHome::new();
    let database = home.folder.path().join("data/baton.db");
    let mut rows = Vec::new();
    for megabytes in [5, 20, 50] {
        let input = report(megabytes, megabytes * 1_000_000);
        let (last, most) = input.split_last().expect("a report");
        let mut command = home.hook();
        let started = Instant::now();
        let mut hook = command.stdin(Stdio::piped()).spawn().expect("a hook");
        let mut stdin = hook.stdin.take().expect("its input");
        stdin.write_all(most).expect("it reads");
        let hook_memory = peak_memory(hook.id());
        stdin.write_all(&[*last]).expect("it reads");
        drop(stdin);
        assert!(hook.wait().expect("it ends").success());
        let hook_took = started.elapsed();
        let mut command = home.process(&home.baton);
        command.args(["worker", "run"]).env("BATON_COMPRESSOR", "offline");
        let started = Instant::now();
        let mut worker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a worker");
        while count(&database, "status <> 'done'") > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let worker_took = started.elapsed();
        let worker_memory = peak_memory(worker.id());
        worker.kill().expect("it ends");
        worker.wait().expect("it ended");
        rows.push(vec![
            format!("{megabytes} MB"),
            format!("{:.0}", hook_took.as_secs_f64() * 1_000.0),
            format!("{hook_memory:.1}"),
            format!("{:.0}", worker_took.as_secs_f64() * 1_000.0),
            format!("{worker_memory:.1}"),
        ]);
    }
    table(
        "Large outputs: the hook while they come, then a fresh worker, offline",
        &["", "hook, ms", "hook, peak MB", "worker, ms", "worker, peak MB"],
        &rows,
    );
}

/// Returns the peak memory of a process in MB.
fn peak_memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: f64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default();
    kilobytes / 1_024.0
}

/// Measures how fast a worker processes a queue.
fn drain(name: &str, database_url: Option<&str>, compressor: &str, items: usize) -> Vec<String> {
    let home = BenchHome::new();
    let data = home.folder.path().join("data");
    let config = match database_url {
        Some(url) => StoreConfig::Postgres {
            url: url.to_owned(),
            threads: Threads::Background,
            connections: 2,
            timeouts: PostgresTimeouts::default(),
        },
        None => StoreConfig::Sqlite { path: data.join("baton.db"), threads: Threads::Background },
    };
    let store = Store::open(&config).expect("a store");
    fill(&store, items);
    let model = ModelServer::start();
    let mut command = Command::new(&home.baton);
    command.args(["worker", "run"]).env_clear().env("HOME", home.folder.path());
    command.env("BATON_DATA_DIR", &data).env("BATON_COMPRESSOR", compressor);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "bench");
    command.env("BATON_WORKER_CONCURRENCY", "8");
    if let Some(url) = database_url {
        command.env("BATON_DATABASE_URL", url);
    }
    let started = Instant::now();
    let mut worker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a worker");
    while has_pending_items(&store) {
        model.forget();
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = started.elapsed();
    require_all_done(&store, items);
    let memory = peak_memory(worker.id());
    worker.kill().expect("it ends");
    worker.wait().expect("it ended");
    vec![
        name.to_owned(),
        items.to_string(),
        format!("{:.0}", items as f64 / took.as_secs_f64()),
        format!("{memory:.1}"),
    ]
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    machine();
    if wants("hooks") {
        hooks();
    }
    if wants("large") {
        large();
    }
    if wants("drain") {
        let mut rows = vec![
            drain("SQLite, a model that answers at once", None, "anthropic", ITEMS),
            drain("SQLite, offline", None, "offline", 10_000),
        ];
        match std::env::var("BATON_BENCH_POSTGRES_URL") {
            Ok(server) => {
                let database = TestDatabase::create_on(&server);
                let name = "PostgreSQL, a model that answers at once";
                rows.push(drain(name, Some(&database.url), "anthropic", ITEMS));
            }
            Err(_) => println!("\nno PostgreSQL: run scripts/bench"),
        }
        table(
            "Emptying the queue, items of 10 KB, 8 at a time",
            &["", "items", "observations/s", "peak memory of the worker, MB"],
            &rows,
        );
    }
}
