//! Acknowledged writes survive `kill -9`, and a repeated request is executed once.

use baton_store::{PostgresTimeouts, StoreConfig, Threads};
use baton_testkit::binary::Home;
use baton_testkit::crash::{self, Tally};
use baton_testkit::crash_saves::{self, Load};
use baton_testkit::postgres::TestDatabase;
use baton_testkit::rounds;

#[test]
fn crash_on_sqlite_loses_and_duplicates_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let store = StoreConfig::Sqlite { path: home.data_dir().join("baton.db"), threads: Threads::Caller };
    assert_progress(crash::run(&home, &store, rounds(20)));
}

#[test]
fn crash_on_postgres_loses_and_duplicates_nothing() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&database.url);
    let store = StoreConfig::Postgres {
        url: database.url.clone(),
        threads: Threads::Caller,
        connections: 1,
        timeouts: PostgresTimeouts::default(),
    };
    assert_progress(crash::run(&home, &store, rounds(20)));
}

/// Asserts that clients completed work between the crashes.
fn assert_progress(tally: Tally) {
    assert!(tally.sessions > 0 && tally.handoffs > 0, "{tally:?}");
}

#[test]
fn crash_while_saving_on_sqlite_loses_and_corrupts_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).with("BATON_CHECKPOINT_MAX_PER_WORKFLOW", "10000");
    run_saves(&home);
}

#[test]
fn crash_while_saving_on_postgres_loses_and_corrupts_nothing() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_baton"))
        .on_postgres(&database.url)
        .with("BATON_CHECKPOINT_MAX_PER_WORKFLOW", "10000");
    run_saves(&home);
}

/// Runs writers that save to one workflow, and asserts that all saves were acknowledged and writers were killed.
fn run_saves(home: &Home) {
    let load = Load { writers: 8, saves: rounds(25) };
    let tally = crash_saves::run(home, load);
    assert!(tally.acknowledged >= (load.writers * load.saves) as usize, "{tally:?}");
    assert!(tally.kills >= load.writers, "{tally:?}");
}
