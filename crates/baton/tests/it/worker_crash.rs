//! Workers that are killed, stopped and started again: no job is lost or done twice.

use std::process::Command;
use std::time::Duration;

use baton_store::{PostgresTimeouts, StoreConfig, Threads};
use baton_testkit::binary::Home;
use baton_testkit::crash_jobs::{self, LEASE_SECONDS, Tally};
use baton_testkit::model_server::{Behaviour, ModelServer};
use baton_testkit::postgres::TestDatabase;
use baton_testkit::rounds;

const WORKERS: usize = 4;
const JOBS: u32 = 400;

/// Starts a model server with random delays.
fn model() -> ModelServer {
    let model = ModelServer::start();
    model.behave(Behaviour::SlowUpTo(Duration::from_millis(60)));
    model
}

fn home(model: &ModelServer) -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
        .with("BATON_COMPRESSOR", "anthropic")
        .with("BATON_ANTHROPIC_API_KEY", "sk-test-0123456789abcdef")
        .with("BATON_ANTHROPIC_BASE_URL", &model.url())
        .with("BATON_WORKER_LEASE_SECONDS", &LEASE_SECONDS.to_string())
        // A killed worker counts as an attempt, so the limit is high.
        .with("BATON_WORKER_MAX_ATTEMPTS", "100")
}

fn worker(home: &Home) -> Command {
    let mut command = home.command();
    command.args(["worker", "run"]);
    command
}

fn server(home: &Home) -> Command {
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

/// Asserts that all jobs were done although workers were killed and paused.
fn assert_progress(tally: Tally, jobs: u32) {
    assert!(tally.done >= u64::from(jobs), "{tally:?}");
    assert!(tally.kills >= 3 && tally.suspensions >= 3 && tally.claimed_again > 0, "{tally:?}");
}

#[test]
fn crash_of_workers_on_sqlite_loses_and_duplicates_no_job() {
    let model = model();
    let home = home(&model);
    let store = StoreConfig::Sqlite { path: home.data_dir().join("baton.db"), threads: Threads::Caller };
    let jobs = rounds(JOBS);
    // A data folder allows one worker process; the others are servers.
    let tally = crash_jobs::run(&store, WORKERS, jobs, |number| match number {
        0 => worker(&home),
        _ => server(&home),
    });
    assert_progress(tally, jobs);
}

#[test]
fn crash_of_workers_on_postgres_loses_and_duplicates_no_job() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let model = model();
    let homes: Vec<Home> = (0..WORKERS).map(|_| home(&model).on_postgres(&database.url)).collect();
    let store = StoreConfig::Postgres {
        url: database.url.clone(),
        threads: Threads::Caller,
        connections: 1,
        timeouts: PostgresTimeouts::default(),
    };
    let jobs = rounds(JOBS);
    let tally = crash_jobs::run(&store, WORKERS, jobs, |number| worker(&homes[number]));
    assert_progress(tally, jobs);
}
