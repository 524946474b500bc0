//! The schema version check of both databases: new, current, older, newer, and concurrent opening.

use std::sync::Barrier;
use std::thread;

use baton_core::{RequestRecord, Timestamp};
use baton_store::{LATEST_VERSION, LockTimeout, Store, StoreError};

use super::fixture::{request, session, tuple};
use super::store::{TestPlace, TestStore, read, write};

const FIRST_SQLITE: &str = include_str!("../../../baton-store/migrations/sqlite/0001_sessions.sql");
const FIRST_POSTGRES: &str = include_str!("../../../baton-store/migrations/postgres/0001_sessions.sql");

macro_rules! schema {
    ($file:literal) => {
        (
            include_str!(concat!("../../../baton-store/migrations/sqlite/", $file, ".sql")),
            include_str!(concat!("../../../baton-store/migrations/postgres/", $file, ".sql")),
        )
    };
}

/// The schema before request records had an integer key.
const BEFORE_REQUESTS: [(&str, &str); 12] = [
    schema!("0001_sessions"),
    schema!("0002_handoffs"),
    schema!("0003_idempotency"),
    schema!("0004_request_log"),
    schema!("0005_queue"),
    schema!("0006_turns"),
    schema!("0007_tokens"),
    schema!("0008_checkpoints"),
    schema!("0009_session_indexes"),
    schema!("0010_observations"),
    schema!("0011_tasks"),
    schema!("0012_summed_up"),
];

/// Id of the session in [`build_first_version`].
const OLD_SESSION: &str = "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

/// Creates a database with the first version of the schema and one session.
pub fn build_first_version(place: &TestPlace) {
    let row = format!(
        "INSERT INTO sessions (id, agent, venture, repo, status, created_at, last_heartbeat_at, schema_version, \
         actor_key_id, creation_correlation_id) VALUES ('{OLD_SESSION}', 'agent', 'vc', 'owner/repo', 'active', \
         1000, 2000, '1.0', '0123456789abcdef', 'corr_old');"
    );
    place.execute(
        &format!("PRAGMA journal_mode = WAL; {FIRST_SQLITE} {row} PRAGMA user_version = 1;"),
        &format!(
            "{FIRST_POSTGRES} {row} CREATE TABLE baton_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
             applied_at TIMESTAMPTZ NOT NULL DEFAULT now()); \
             INSERT INTO baton_schema (version, name) VALUES (1, '0001_sessions');"
        ),
    );
}

/// Makes a database look as if a newer version of Baton had created it.
fn pretend_newer(place: &TestPlace) {
    place.execute(
        "PRAGMA user_version = 9999",
        "INSERT INTO baton_schema (version, name) VALUES (9999, '9999_from_the_future')",
    );
}

fn assert_sound(place: &TestPlace) {
    let health = place.inspect().unwrap();
    assert_eq!(health.schema_version, LATEST_VERSION);
    assert_eq!(health.problems, [""; 0]);
}

fn assert_has_old_session(store: &Store) {
    let found = read(store, |tx| tx.session(OLD_SESSION.parse().unwrap())).unwrap();
    assert_eq!(found.tuple, tuple("agent"));
    assert_eq!(found.last_heartbeat_at.as_millis(), 2000);
}

/// Opens a database on this many threads at the same time; each must succeed.
pub fn open_at_once(place: &TestPlace, threads: usize) -> Vec<Store> {
    let barrier = Barrier::new(threads);
    let open = || {
        barrier.wait();
        place.open().unwrap()
    };
    thread::scope(|scope| {
        let opening: Vec<_> = (0..threads).map(|_| scope.spawn(open)).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A new database has the latest schema and no problems.
pub fn new_database_is_current(store: &TestStore) {
    assert_sound(store.place());
}

/// Opening a current database does not change it.
pub fn reopening_changes_nothing(store: &TestStore) {
    let place = store.fresh_place();
    let first = place.open().unwrap();
    let kept = session(tuple("agent"));
    let id = kept.id;
    write(&first, move |tx| tx.insert_session(&kept));
    drop(first);
    let before = place.contents();
    drop(place.open().unwrap());
    assert!(place.contents() == before, "opening changed the database");
    let again = place.open().unwrap();
    assert!(read(&again, move |tx| tx.session(id)).is_some());
}

/// A newer database is rejected with both version numbers, and is unchanged.
pub fn newer_schema_is_rejected_and_unchanged(store: &TestStore) {
    let place = store.fresh_place();
    drop(place.open().unwrap());
    pretend_newer(&place);
    let before = place.contents();
    for _ in 0..2 {
        match place.open() {
            Err(StoreError::NewerSchema { found: 9999, known }) => assert_eq!(known, LATEST_VERSION),
            other => panic!("opening a newer database gave {other:?}"),
        }
    }
    assert!(place.contents() == before, "the rejected database was changed");
}

/// An older database is migrated to the latest schema and keeps its data.
pub fn older_schema_is_migrated(store: &TestStore) {
    let place = store.fresh_place();
    build_first_version(&place);
    assert_eq!(place.inspect().unwrap().schema_version, 1, "an inspection migrates nothing");
    let migrated = place.open().unwrap();
    assert_sound(&place);
    assert_has_old_session(&migrated);
    assert_eq!(read(&migrated, |tx| tx.requests(1)), [], "later tables exist");
}

/// Request records of an older version are kept in order.
pub fn older_request_records_are_kept(store: &TestStore) {
    let place = store.fresh_place();
    let row = |id: &str, correlation: &str, actor: &str, hit: &str| {
        format!(
            "INSERT INTO request_log (id, timestamp, correlation_id, endpoint, method, actor_key_id, status_code, \
             duration_ms, idempotency_hit) VALUES ('{id}', 1000, '{correlation}', '/sod', 'POST', {actor}, 200, 7, \
             {hit});"
        )
    };
    let rows = |hit: &str| {
        row("req_2", "corr_019a8f3e-0001-7abc-8def-00000000000f", "'0123456789abcdef'", hit)
            + &row("req_1", "own", "NULL", hit)
    };
    let (sqlite, postgres): (Vec<&str>, Vec<&str>) = BEFORE_REQUESTS.into_iter().unzip();
    place.execute(
        &format!("PRAGMA journal_mode = WAL; {} {} PRAGMA user_version = 12;", sqlite.concat(), rows("1")),
        &format!(
            "{} {} CREATE TABLE baton_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
             applied_at TIMESTAMPTZ NOT NULL DEFAULT now()); \
             INSERT INTO baton_schema (version, name) VALUES (12, '0012_summed_up');",
            postgres.concat(),
            rows("true")
        ),
    );
    let migrated = place.open().unwrap();
    assert_sound(&place);
    let old = RequestRecord {
        correlation_id: "own".parse().unwrap(),
        endpoint: "/sod".into(),
        method: "POST".into(),
        duration_ms: 7,
        idempotency_hit: true,
        ..request(Timestamp::from_millis(1000))
    };
    let newer = RequestRecord {
        correlation_id: "corr_019a8f3e-0001-7abc-8def-00000000000f".parse().unwrap(),
        actor_key_id: Some("0123456789abcdef".parse().unwrap()),
        ..old.clone()
    };
    assert_eq!(read(&migrated, |tx| tx.requests(10)), [newer, old]);
}

/// Many processes can open a new database at the same time.
pub fn new_database_can_be_opened_concurrently(store: &TestStore) {
    let place = store.fresh_place();
    assert_eq!(open_at_once(&place, 8).len(), 8);
    assert_sound(&place);
}

/// Many processes can open an older database at the same time, and it is migrated once.
pub fn older_database_can_be_opened_concurrently(store: &TestStore) {
    let place = store.fresh_place();
    build_first_version(&place);
    let stores = open_at_once(&place, 8);
    stores.iter().for_each(assert_has_old_session);
    assert_sound(&place);
}

/// Opening without migration rejects an older database with both version numbers, and does not change it.
pub fn open_current_rejects_an_older_schema(store: &TestStore) {
    let place = store.fresh_place();
    build_first_version(&place);
    let before = place.contents();
    for _ in 0..2 {
        match Store::open_current(place.config(), LockTimeout::Short) {
            Err(StoreError::OlderSchema { found: 1, known }) => assert_eq!(known, LATEST_VERSION),
            other => panic!("opening an older database without migrating it gave {other:?}"),
        }
    }
    assert!(place.contents() == before, "the rejected database was changed");
}

/// Opening without migration creates a missing database and opens a current one.
pub fn open_current_creates_a_new_database(store: &TestStore) {
    let place = store.fresh_place();
    for _ in 0..2 {
        drop(Store::open_current(place.config(), LockTimeout::Short).unwrap());
        assert_sound(&place);
    }
}
