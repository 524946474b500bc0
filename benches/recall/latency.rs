//! Latency of searches in a large store.

use std::time::{Duration, Instant};

use baton_benches::{Timings, release_binary, table};
use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::{ObservationId, SessionId, Timestamp, Ulid};
use baton_store::{Durability, PostgresTimeouts, Store, StoreConfig, StoreError, Threads};
use baton_testkit::binary::{Home, ServerProcess};
use baton_testkit::contract::fixture::Dice;
use baton_testkit::postgres::TestDatabase;

use super::search;

/// Number of different words in the texts. Word frequencies fall like those of natural text.
const WORDS: u64 = 20_000;
const BATCH: u64 = 512;
const SEARCHES: usize = 400;
/// A word of the last observation only.
const LAST_WORD: &str = "lastobservation";
const OBSERVATIONS_PER_SESSION: u64 = 200;

/// Fills a store of each database, waits until it is indexed, and searches it.
pub(super) fn measure(observations: u64) {
    let binary = release_binary("baton").to_string_lossy().into_owned();
    let mut rows = Vec::new();
    let home = Home::new(&binary);
    let config = StoreConfig::Sqlite { path: home.data_dir().join("baton.db"), threads: Threads::Caller };
    rows.push(one("SQLite", &home, &config, observations));
    match TestDatabase::create() {
        Some(database) => {
            let home = Home::new(&binary).on_postgres(&database.url);
            let config = StoreConfig::Postgres {
                url: database.url.clone(),
                threads: Threads::Caller,
                connections: 1,
                timeouts: PostgresTimeouts::default(),
            };
            rows.push(one("PostgreSQL", &home, &config, observations));
        }
        None => println!("skipped: no PostgreSQL"),
    }
    table(
        &format!("Search over {observations} observations"),
        &["database", "indexed per second", "p50 ms", "p95 ms", "p99 ms"],
        &rows,
    );
}

fn one(name: &str, home: &Home, config: &StoreConfig, observations: u64) -> Vec<String> {
    let store = Store::open(config).expect("a store");
    let mut dice = Dice::new(7);
    for first in (0..observations).step_by(usize::try_from(BATCH).expect("a size")) {
        let batch: Vec<Observation> = (first..(first + BATCH).min(observations))
            .map(|number| observation(number, number + 1 == observations, &mut dice))
            .collect();
        let stored: Result<(), StoreError> =
            store.write_blocking(Durability::Lazy, move |tx| tx.insert_observations(&batch).map(|_| ()));
        stored.expect("observations are stored");
    }
    drop(store);
    let server = home.serve();
    let started = Instant::now();
    wait_until_indexed(&server);
    let indexed = observations as f64 / started.elapsed().as_secs_f64();
    let mut timings = Vec::with_capacity(SEARCHES);
    for number in 0..SEARCHES + 20 {
        let query = query(&mut dice);
        let started = Instant::now();
        search(&server, &query);
        // The first searches fill the caches.
        if number >= 20 {
            timings.push(started.elapsed());
        }
    }
    let timings = Timings::new(timings);
    let ms = |percent: usize| format!("{:.1}", timings.percentile_ms(percent));
    vec![name.into(), format!("{indexed:.0}"), ms(50), ms(95), ms(99)]
}

fn wait_until_indexed(server: &ServerProcess) {
    while search(server, LAST_WORD).is_empty() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns a word; the word of rank n is about n times rarer than the first.
fn word(dice: &mut Dice) -> String {
    let roll = dice.below(1_000_000) as f64 / 1_000_000.0;
    let rank = (WORDS as f64).powf(roll) as u64;
    let mut rest = rank;
    let mut letters = String::from("w");
    loop {
        letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
        if rest == 0 {
            return letters;
        }
    }
}

fn words(dice: &mut Dice, count: u64) -> String {
    (0..count).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
}

fn query(dice: &mut Dice) -> String {
    let count = 2 + dice.below(8);
    match dice.below(5) {
        0 => format!("{} in file{}.rs", words(dice, count), dice.below(2_000)),
        1 => format!("{} last week", words(dice, count)),
        _ => words(dice, count),
    }
}

fn observation(number: u64, is_last: bool, dice: &mut Dice) -> Observation {
    let at = Timestamp::from_millis(1_700_000_000_000 + i64::try_from(number).unwrap_or(0) * 60_000);
    let session = number / OBSERVATIONS_PER_SESSION;
    let file = format!("src/part{}/file{}.rs", dice.below(40), dice.below(2_000));
    let summary = if is_last { LAST_WORD.to_owned() } else { words(dice, 20) };
    Observation {
        id: ObservationId::new(Ulid::from_parts(at.as_millis().unsigned_abs(), u128::from(number))),
        queue_id: -1 - i64::try_from(number).unwrap_or(0),
        session_id: SessionId::new(Ulid::from_parts(1_700_000_000_000 + session, u128::from(session))),
        venture: "local".parse().expect("a venture"),
        repo: "acme/webshop".parse().expect("a repository"),
        tool_name: "Edit".into(),
        tool_use_id: None,
        compressed: CompressedObservation {
            title: format!("Modify {} in {file}", words(dice, 4)),
            summary,
            detail: Some(words(dice, 60)),
            files_touched: vec![file.clone()],
            functions_changed: Vec::new(),
        },
        files: vec![file],
        provenance: Provenance::default(),
        raw_bytes: 1_000,
        captured_at: at,
        compressed_at: at,
    }
}
