//! An acknowledged write survives `kill -9`, and a repeated one is done once.

use baton_store::{PostgresTimeouts, StoreConfig, Threads};
use baton_testkit::binary::Home;
use baton_testkit::crash::{self, Tally};
use baton_testkit::crash_saves::{self, Load};
use baton_testkit::postgres::TestDatabase;

#[test]
fn crash_on_sqlite_loses_and_doubles_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let store = StoreConfig::Sqlite { path: home.data_dir().join("baton.db"), threads: Threads::Caller };
    went_on(crash::run(&home, &store, crash::cycles(100)));
}

#[test]
fn crash_on_postgres_loses_and_doubles_nothing() {
    let Some(database) = TestDatabase::create() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&database.url);
    let store = StoreConfig::Postgres {
        url: database.url.clone(),
        threads: Threads::Caller,
        connections: 1,
        timeouts: PostgresTimeouts::default(),
    };
    went_on(crash::run(&home, &store, crash::cycles(100)));
}

/// The run was one: clients got work done between the crashes.
fn went_on(tally: Tally) {
    assert!(tally.sessions > 0 && tally.handoffs > 0, "{tally:?}");
}

/// Eight writers with two hundred and fifty saves each, all to one workflow.
const SAVES: Load = Load { writers: 8, saves: 250 };

#[test]
fn crash_while_saving_on_sqlite_loses_and_tears_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).with("BATON_CHECKPOINT_MAX_PER_WORKFLOW", "10000");
    saves_went_on(&home, SAVES);
}

#[test]
fn crash_while_saving_on_postgres_loses_and_tears_nothing() {
    let Some(database) = TestDatabase::create() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_baton"))
        .on_postgres(&database.url)
        .with("BATON_CHECKPOINT_MAX_PER_WORKFLOW", "10000");
    // Half of them, as each waits for a server; BATON_CRASH_SAVES=250 asks for all.
    saves_went_on(&home, Load { saves: 125, ..SAVES });
}

/// Everybody was done in the end, and somebody was killed on the way.
fn saves_went_on(home: &Home, load: Load) {
    let load = load.or_as_told();
    let tally = crash_saves::run(home, load);
    assert!(tally.acknowledged >= (load.writers * load.saves) as usize, "{tally:?}");
    assert!(tally.kills >= load.writers, "{tally:?}");
}
