//! Durable writes: the group commit against one commit per write and against the raw floor.
#![expect(clippy::expect_used, reason = "a bench fails loudly")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_benches::{machine, table};
use baton_core::{ActorKeyId, Session, SessionFacts, SessionId, SessionStatus, SessionTuple, Timestamp};
use baton_store::{Durability, Store, StoreConfig, StoreError, Threads};
use rusqlite::{Connection, params};
use ulid::Ulid;

const RUN: Duration = Duration::from_secs(3);
const ROUNDS: usize = 3;

static NUMBER: AtomicU64 = AtomicU64::new(1);

fn session() -> Session {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let now = Timestamp::from_millis(1_760_000_000_000);
    Session {
        id: SessionId::new(Ulid::from_parts(1_760_000_000_000, u128::from(number))),
        tuple: SessionTuple {
            agent: format!("agent-{number}").parse().expect("an agent"),
            venture: "bench".parse().expect("a venture"),
            repo: format!("owner/repo-{}", number % 1_000).parse().expect("a repo"),
            track: None,
            client_session_id: None,
        },
        facts: SessionFacts { branch: Some("feature/bench".into()), ..SessionFacts::default() },
        status: SessionStatus::Active,
        created_at: now,
        last_heartbeat_at: now,
        ended_at: None,
        end_reason: None,
        schema_version: "1.0".into(),
        actor_key_id: ActorKeyId::of("bench"),
        creation_correlation_id: "corr_bench".parse().expect("a correlation id"),
        meta: None,
    }
}

/// Durable inserts per second through the store, from `writers` threads that wait for each answer.
fn through_store(path: &Path, threads: Threads, writers: usize) -> f64 {
    let store = Store::open(&StoreConfig::Sqlite { path: path.to_owned(), threads }).expect("a store");
    let started = Instant::now();
    let done: u64 = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..writers)
            .map(|_| {
                let store = store.clone();
                scope.spawn(move || {
                    let mut done = 0;
                    while started.elapsed() < RUN {
                        let session = session();
                        let work = move |tx: &mut dyn baton_store::Tx| tx.insert_session(&session);
                        store.write::<(), StoreError, _>(Durability::Full, work).wait().expect("a write");
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a writer")).sum()
    });
    done as f64 / started.elapsed().as_secs_f64()
}

/// Durable inserts per second of the same row by bare SQLite: begin, insert, commit.
fn raw(path: &Path) -> f64 {
    drop(
        Store::open(&StoreConfig::Sqlite { path: path.to_owned(), threads: Threads::Caller })
            .expect("a schema"),
    );
    let connection = Connection::open(path).expect("a connection");
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").expect("pragmas");
    let started = Instant::now();
    let mut done = 0_u64;
    while started.elapsed() < RUN {
        let session = session();
        connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
        connection
            .prepare_cached(
                "INSERT INTO sessions (id, agent, venture, repo, branch, status, created_at, last_heartbeat_at, \
                 schema_version, actor_key_id, creation_correlation_id) \
                 VALUES (?1, ?2, ?3, ?4, ?5, 'active', ?6, ?6, '1.0', ?7, 'corr_bench')",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    session.id.to_string(),
                    session.tuple.agent.as_str(),
                    session.tuple.venture.as_str(),
                    session.tuple.repo.as_str(),
                    session.facts.branch,
                    session.created_at.as_millis(),
                    session.actor_key_id.as_str(),
                ])
            })
            .expect("insert");
        connection.execute_batch("COMMIT").expect("commit");
        done += 1;
    }
    done as f64 / started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    machine();
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = 0;
    let mut fresh = || {
        files += 1;
        folder.path().join(format!("{files}.db"))
    };
    let floor = median((0..ROUNDS).map(|_| raw(&fresh())).collect());
    let mut rows =
        vec![vec!["raw floor".into(), "1".into(), format!("{floor:.0}"), "1.00×".into(), String::new()]];
    for writers in [1, 4, 16, 64] {
        let mut measure =
            |threads| median((0..ROUNDS).map(|_| through_store(&fresh(), threads, writers)).collect());
        let alone = measure(Threads::Caller);
        let grouped = measure(Threads::Background);
        for (name, rate, gain) in [
            ("one commit per write", alone, String::new()),
            ("group commit", grouped, format!("{:.1}×", grouped / alone)),
        ] {
            rows.push(vec![
                name.into(),
                writers.to_string(),
                format!("{rate:.0}"),
                format!("{:.2}×", floor / rate),
                gain,
            ]);
        }
    }
    table(
        "Durable session inserts, SQLite (WAL, synchronous=FULL)",
        &["way", "writers", "writes/s", "time per write to the floor's", "gain over one commit per write"],
        &rows,
    );
}
