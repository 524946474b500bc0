//! PostgreSQL servers that are set up otherwise than ours: the contract holds there as well.

use baton_testkit::contract::{
    Database, TestPlace, TestStore, concurrency, handoff, migration, observation, request, session_list,
};
use baton_testkit::postgres::TestDatabase;

/// Makes a database in which every transaction is serializable unless it says otherwise.
fn serializable() -> Option<TestPlace> {
    let place = TestPlace::create(Database::Postgres)?;
    place.execute(
        "",
        "DO 'BEGIN EXECUTE ''ALTER DATABASE '' || current_database() || \
         '' SET default_transaction_isolation = serializable''; END'",
    );
    Some(place)
}

/// Makes a database in which text sorts by language.
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
fn a_stricter_default_isolation_changes_nothing() {
    run(
        serializable,
        &[
            concurrency::simultaneous_starts_share_one_session,
            concurrency::a_key_has_one_effect,
            concurrency::locked_changes_are_not_lost,
        ],
    );
}

#[test]
fn a_stricter_default_isolation_does_not_trouble_the_migration() {
    let Some(place) = serializable() else { return };
    assert_eq!(migration::open_at_once(&place, 8).len(), 8);
}

#[test]
fn a_database_that_sorts_by_language_lists_the_same() {
    run(
        linguistic,
        &[
            session_list::each_condition_filters,
            session_list::pages_neither_skip_nor_repeat,
            handoff::lists_filter_and_page,
            request::reads_back_every_field,
            observation::each_condition_filters,
            observation::what_comes_after_comes_in_order,
            observation::they_are_counted_since_a_moment,
        ],
    );
}
