//! Durable writes: group commit compared with one commit per write and with plain SQLite.
#![expect(clippy::expect_used, reason = "a bench fails loudly")]

use std::path::Path;
use std::time::{Duration, Instant};

use baton_benches::{machine, table};
use baton_core::{SessionId, Timestamp, Ulid};
use baton_store::{Durability, NewQueueItem, RawOutput, Store, StoreConfig, StoreError, Threads};
use rusqlite::{Connection, params};

const RUN: Duration = Duration::from_secs(1);
const ROUNDS: usize = 7;
const RAW_BYTES: usize = 1_024;
const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_000);

/// Returns a queue item with one kilobyte of tool output.
fn item() -> NewQueueItem {
    NewQueueItem {
        session_id: SessionId::new(Ulid(42)),
        venture: "bench".parse().expect("a venture"),
        repo: "owner/repo".parse().expect("a repository"),
        tool_name: "Bash".into(),
        tool_use_id: None,
        files_touched: Vec::new(),
        raw: RawOutput::Row(vec![b'x'; RAW_BYTES]),
        raw_bytes: RAW_BYTES as u64,
        run_at: NOW,
        created_at: NOW,
    }
}

/// Returns durable inserts per second through the store, from `writers` threads that wait for each result.
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
                        let item = item();
                        let work = move |tx: &mut dyn baton_store::Tx| tx.enqueue(&item);
                        store
                            .write_blocking::<Option<i64>, StoreError, _>(Durability::Full, work)
                            .expect("a write");
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

/// Returns durable inserts per second of the same row with plain SQLite: begin, insert, commit.
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
        let item = item();
        connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
        connection
            .prepare_cached(
                "INSERT INTO pending_queue (session_id, venture, repo, tool_name, files_touched, raw_bytes, \
                 raw_output, status, run_at, created_at) VALUES (?1, 'bench', 'owner/repo', ?2, '[]', ?3, ?4, \
                 'raw', ?5, ?5)",
            )
            .and_then(|mut statement| {
                let session_id = item.session_id.to_string();
                statement.execute(params![
                    session_id,
                    item.tool_name,
                    item.raw_bytes as i64,
                    vec![b'x'; RAW_BYTES],
                    item.run_at.as_millis()
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
    let mut rows = Vec::new();
    for writers in [1, 4, 16, 64] {
        // In turns, so that other load on the machine affects all three.
        let (mut floor, mut alone, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floor.push(raw(&fresh()));
            alone.push(through_store(&fresh(), Threads::Caller, writers));
            grouped.push(through_store(&fresh(), Threads::Background, writers));
        }
        let (floor, alone, grouped) = (median(floor), median(alone), median(grouped));
        rows.push(vec![
            writers.to_string(),
            format!("{floor:.0}"),
            format!("{alone:.0}"),
            format!("{grouped:.0}"),
            format!("{:.2}×", floor / grouped),
            format!("{:.1}×", grouped / alone),
        ]);
    }
    table(
        "Durable inserts of 1 KB into the queue, SQLite (WAL, synchronous=FULL)",
        &[
            "writers",
            "raw floor (one writer), writes/s",
            "one commit per write, writes/s",
            "group commit, writes/s",
            "group commit: time per write to the floor's",
            "group commit to one commit per write",
        ],
        &rows,
    );
}
