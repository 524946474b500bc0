//! An acknowledged write survives `kill -9`, and a repeated one is done once.

use baton_store::{StoreConfig, Threads};
use baton_testkit::binary::Home;
use baton_testkit::crash::{self, Tally};
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
    let store = StoreConfig::Postgres { url: database.url.clone(), threads: Threads::Caller, connections: 1 };
    went_on(crash::run(&home, &store, crash::cycles(100)));
}

/// The run was one: clients got work done between the crashes.
fn went_on(tally: Tally) {
    assert!(tally.sessions > 0 && tally.handoffs > 0, "{tally:?}");
}
