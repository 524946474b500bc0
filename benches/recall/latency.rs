//! Latency of searches and of the context of a new chat in a large store.

use std::time::{Duration, Instant};

use baton_benches::{Timings, release_binary, table};
use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::{ObservationId, Session, SessionId, SessionStatus, Timestamp, Ulid};
use baton_store::{Durability, PostgresTimeouts, Store, StoreConfig, StoreError, Threads};
use baton_testkit::binary::{Home, ServerProcess};
use baton_testkit::contract::fixture::{self, Dice};
use baton_testkit::postgres::TestDatabase;
use serde_json::json;

use super::search;

/// Number of different words in the texts. Word frequencies fall like those of natural text.
const WORDS: u64 = 20_000;
const BATCH: u64 = 512;
const SEARCHES: usize = 400;
const CONTEXTS: usize = 100;
/// Number of runs before the measured ones, which fill the caches.
const WARM_UP: usize = 20;
/// Repository of the work folder, which has no remote.
const REPO: &str = "local/webshop";
/// A word of the last observation only.
const LAST_WORD: &str = "lastobservation";
const OBSERVATIONS_PER_SESSION: u64 = 10;
/// Pages of the dashboard.
const PAGES: [&str; 6] = [
    "/",
    "/ui/sessions",
    "/ui/next?repo=local/webshop",
    "/ui/memory?q=wab+wac",
    "/ui/activity",
    "/ui/worker",
];

/// Fills a store of each database, waits until it is indexed, and measures searches, `GET /api/context` with and without
/// a request, the whole process of the session-start hook, and pages of the dashboard.
pub(super) fn measure(observations: u64) {
    let binary = release_binary("baton").to_string_lossy().into_owned();
    let mut rows = Vec::new();
    let home = Home::new(&binary).working_in("webshop");
    let config = StoreConfig::Sqlite { path: home.data_dir().join("baton.db"), threads: Threads::Caller };
    rows.extend(measure_database("SQLite", &home, &config, observations));
    match TestDatabase::create() {
        Some(database) => {
            let home = Home::new(&binary).on_postgres(&database.url).working_in("webshop");
            let config = StoreConfig::Postgres {
                url: database.url.clone(),
                threads: Threads::Caller,
                connections: 1,
                timeouts: PostgresTimeouts::default(),
            };
            rows.extend(measure_database("PostgreSQL", &home, &config, observations));
        }
        None => println!("skipped: no PostgreSQL"),
    }
    table(
        &format!("Recall with {observations} observations"),
        &["database", "", "p50 ms", "p95 ms", "p99 ms"],
        &rows,
    );
}

fn measure_database(name: &str, home: &Home, config: &StoreConfig, observations: u64) -> Vec<Vec<String>> {
    let mut dice = Dice::new(7);
    fill(&Store::open(config).expect("a store"), observations, &mut dice);
    let server = home.serve();
    let started = Instant::now();
    wait_until_indexed(&server);
    println!("{name}: {:.0} items indexed per second", observations as f64 / started.elapsed().as_secs_f64());
    let context = format!("/api/context?venture=local&repo={REPO}");
    let mut numbers = 0..;
    let mut rows = vec![
        row(name, "search", SEARCHES, || drop(search(&server, &query(&mut dice)))),
        row(name, "context", CONTEXTS, || assert_eq!(server.get(&context).status, 200)),
        row(name, "context for a request", CONTEXTS, || {
            let prompt = query(&mut dice).replace(' ', "+");
            assert_eq!(server.get(&format!("{context}&prompt={prompt}")).status, 200);
        }),
        row(name, "session-start hook", CONTEXTS, || {
            let chat = format!("chat-{}", numbers.next().unwrap_or(0));
            let report = json!({
                "session_id": chat, "cwd": home.working_folder(), "hook_event_name": "SessionStart",
                "source": "startup", "transcript_path": format!("/home/dev/.claude/projects/webshop/{chat}.jsonl"),
            });
            let finished = home.run_with_input(&["hook", "session-start"], report.to_string().as_bytes());
            assert!(finished.stdout.contains("file"), "the hook adds no context: {finished:?}");
        }),
    ];
    rows.extend(PAGES.map(|page| row(name, page, CONTEXTS, || assert_eq!(server.get(page).status, 200))));
    rows
}

/// Measures an action.
fn row(database: &str, name: &str, rounds: usize, mut action: impl FnMut()) -> Vec<String> {
    let mut timings = Vec::with_capacity(rounds);
    for number in 0..WARM_UP + rounds {
        let started = Instant::now();
        action();
        if number >= WARM_UP {
            timings.push(started.elapsed());
        }
    }
    let timings = Timings::new(timings);
    let ms = |percent: usize| format!("{:.1}", timings.percentile_ms(percent));
    vec![database.into(), name.into(), ms(50), ms(95), ms(99)]
}

/// Stores sessions with their observations.
fn fill(store: &Store, observations: u64, dice: &mut Dice) {
    for first in (0..observations).step_by(usize::try_from(BATCH).expect("a size")) {
        let numbers = first..(first + BATCH).min(observations);
        let sessions: Vec<Session> = numbers
            .clone()
            .filter(|number| number % OBSERVATIONS_PER_SESSION == 0)
            .map(|number| session(number / OBSERVATIONS_PER_SESSION))
            .collect();
        let batch: Vec<Observation> =
            numbers.map(|number| observation(number, number + 1 == observations, dice)).collect();
        let stored: Result<(), StoreError> = store.write_blocking(Durability::Lazy, move |tx| {
            sessions.iter().try_for_each(|session| tx.insert_session(session))?;
            tx.insert_observations(&batch).map(|_| ())
        });
        stored.expect("sessions and observations are stored");
    }
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

fn session(number: u64) -> Session {
    let at = captured_at(number * OBSERVATIONS_PER_SESSION);
    let mut tuple = fixture::tuple("claude-code");
    tuple.venture = "local".parse().expect("a venture");
    tuple.repo = REPO.parse().expect("a repository");
    Session {
        id: session_id(number),
        status: SessionStatus::Ended,
        created_at: at,
        last_heartbeat_at: at,
        ended_at: Some(at),
        ..fixture::session(tuple)
    }
}

fn session_id(number: u64) -> SessionId {
    SessionId::new(Ulid::from_parts(1_700_000_000_000 + number, u128::from(number)))
}

fn captured_at(number: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + i64::try_from(number).unwrap_or(0) * 60_000)
}

fn observation(number: u64, is_last: bool, dice: &mut Dice) -> Observation {
    let at = captured_at(number);
    let file = format!("src/part{}/file{}.rs", dice.below(40), dice.below(2_000));
    let summary = if is_last { LAST_WORD.to_owned() } else { words(dice, 20) };
    Observation {
        id: ObservationId::new(Ulid::from_parts(at.as_millis().unsigned_abs(), u128::from(number))),
        queue_id: -1 - i64::try_from(number).unwrap_or(0),
        session_id: session_id(number / OBSERVATIONS_PER_SESSION),
        venture: "local".parse().expect("a venture"),
        repo: REPO.parse().expect("a repository"),
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
