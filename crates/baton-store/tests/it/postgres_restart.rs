//! A PostgreSQL server that crashes and restarts under load: no acknowledged write is lost, and the store keeps
//! working.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use baton_core::{SessionId, Timestamp, Ulid};
use baton_store::{
    Durability, NewQueueItem, PostgresTimeouts, QueueClaim, RawOutput, Store, StoreConfig, StoreError,
    Threads,
};
use baton_testkit::postgres::TestServer;

fn item(number: usize) -> NewQueueItem {
    NewQueueItem {
        session_id: SessionId::new(Ulid(1)),
        venture: "vc".parse().unwrap(),
        repo: "owner/repo".parse().unwrap(),
        tool_name: format!("tool-{number}"),
        tool_use_id: None,
        files_touched: Vec::new(),
        raw: RawOutput::Row(Vec::new()),
        raw_bytes: 0,
        run_at: Timestamp::from_millis(0),
        created_at: Timestamp::from_millis(0),
    }
}

/// Writes until `stop` is set and returns the acknowledged names.
fn write_until(store: &Store, stop: &AtomicBool, counter: &AtomicUsize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let item = item(counter.fetch_add(1, Ordering::Relaxed));
        let name = item.tool_name.clone();
        let answer: Result<Option<i64>, StoreError> =
            store.write(Durability::Full, move |tx| tx.enqueue(&item)).wait();
        if answer.is_ok() {
            acknowledged.push(name);
        }
    }
    acknowledged
}

#[test]
fn server_crash_under_load_loses_no_acknowledged_write() {
    let Some(server) = TestServer::start() else { return };
    let config = StoreConfig::Postgres {
        url: server.url.clone(),
        threads: Threads::Background,
        connections: 4,
        timeouts: PostgresTimeouts::default(),
    };
    let store = Store::open(&config).unwrap();
    let (stop, counter) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut acknowledged: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(|| write_until(&store, &stop, &counter))).collect();
        for _ in 0..2 {
            wait_for_progress(&counter);
            server.crash_and_restart();
        }
        wait_for_progress(&counter);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(acknowledged.len() > 100, "only {} writes were acknowledged", acknowledged.len());
    let claim = QueueClaim {
        now: Timestamp::from_millis(1),
        lease_until: Timestamp::from_millis(2),
        limit: u32::MAX / 2,
    };
    let stored: Result<_, StoreError> = store.write(Durability::Full, move |tx| tx.claim_queue(claim)).wait();
    let mut names: Vec<String> = stored.unwrap().into_iter().map(|item| item.tool_name).collect();
    names.sort_unstable();
    acknowledged.sort_unstable();
    let lost: Vec<_> = acknowledged.iter().filter(|name| names.binary_search(name).is_err()).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let stored = names.len();
    names.dedup();
    assert_eq!(names.len(), stored, "a write was executed twice");
}

/// Waits until the writers have made progress.
fn wait_for_progress(counter: &AtomicUsize) {
    let (before, deadline) = (counter.load(Ordering::Relaxed), Instant::now() + Duration::from_secs(60));
    while counter.load(Ordering::Relaxed) < before + 200 {
        assert!(Instant::now() < deadline, "the writers make no progress");
        std::thread::yield_now();
    }
}
