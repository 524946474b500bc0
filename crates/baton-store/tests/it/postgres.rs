//! The contract on PostgreSQL servers with non-default settings, and concurrent writes, which only a server supports.

use std::sync::mpsc::channel;

use baton_store::DailyUsage;
use baton_testkit::contract::{
    Database, TestPlace, TestStore, concurrency, handoff, migration, observation, read, request,
    session_list, try_write, write,
};
use baton_testkit::postgres::TestDatabase;

/// Creates a database with serializable as the default isolation level.
fn serializable() -> Option<TestPlace> {
    let place = TestPlace::create(Database::Postgres)?;
    place.execute(
        "",
        "DO 'BEGIN EXECUTE ''ALTER DATABASE '' || current_database() || \
         '' SET default_transaction_isolation = serializable''; END'",
    );
    Some(place)
}

/// Creates a database with a linguistic collation.
fn linguistic() -> Option<TestPlace> {
    let server = TestDatabase::create_with("LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")?;
    Some(TestPlace::on_a_server(Database::Postgres, server))
}

fn run(place: fn() -> Option<TestPlace>, checks: &[fn(&TestStore)]) {
    for check in checks {
        let Some(place) = place() else { return };
        check(&TestStore::open(place));
    }
}

#[test]
fn contract_holds_with_serializable_default_isolation() {
    run(
        serializable,
        &[
            concurrency::simultaneous_starts_share_one_session,
            concurrency::concurrent_requests_with_one_key_have_one_effect,
            concurrency::locked_changes_are_not_lost,
        ],
    );
}

#[test]
fn migration_works_with_serializable_default_isolation() {
    let Some(place) = serializable() else { return };
    assert_eq!(migration::open_at_once(&place, 8).len(), 8);
}

#[test]
fn lists_do_not_depend_on_the_collation() {
    run(
        linguistic,
        &[
            session_list::each_condition_filters,
            session_list::pages_neither_skip_nor_repeat,
            handoff::lists_filter_and_page,
            request::reads_back_every_field,
            observation::each_condition_filters,
            observation::uncovered_observations_are_listed_in_order,
            observation::observations_are_counted_since_a_time,
        ],
    );
}

#[test]
fn stalled_usage_update_does_not_block_others() {
    let Some(place) = TestPlace::create(Database::PostgresOnCaller) else { return };
    let store = TestStore::open(place);
    let usage = DailyUsage {
        day: "2026-01-17".into(),
        compressor: "anthropic".into(),
        model: "haiku".into(),
        calls: 1,
        tokens_in: 10,
        tokens_out: 1,
        micro_usd: 15,
    };
    let (counted, has_counted) = channel();
    let (go_on, may_go_on) = channel::<()>();
    std::thread::scope(|scope| {
        let (held_up, slow_usage) = (store.another(), usage.clone());
        let slow = scope.spawn(move || {
            write(&held_up, move |tx| {
                tx.add_usage(&slow_usage)?;
                counted.send(()).unwrap();
                may_go_on.recv().unwrap();
                Ok(())
            });
        });
        has_counted.recv().unwrap();
        let quick_usage = usage.clone();
        let quick = try_write(&store, move |tx| tx.add_usage(&quick_usage));
        go_on.send(()).unwrap();
        slow.join().unwrap();
        assert!(quick.is_ok(), "{quick:?}");
    });
    let all = DailyUsage { calls: 2, tokens_in: 20, tokens_out: 2, micro_usd: 30, ..usage };
    assert_eq!(read(&store, |tx| tx.usage(10)), [all]);
}
