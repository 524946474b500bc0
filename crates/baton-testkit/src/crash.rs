//! Crash harness of the server: clients write through the real server, which is killed at random times and restarted,
//! and acknowledged writes are compared with the stored data.
#![expect(clippy::expect_used, reason = "a harness that cannot read the store must fail loudly")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_core::{Cursor, HandoffId, SessionId};
use baton_store::{HandoffFilter, Page, SessionFilter, Store, StoreConfig, StoreError};
use serde_json::{Value, json};

use crate::binary::{Home, ServerProcess};

const CLIENTS: u64 = 4;
const AGENT: &str = "crash-test";
const VENTURE: &str = "crash";
/// Maximum number of sessions that a server starts before it is killed.
const MAX_NEW_SESSIONS: u64 = 16;
/// Maximum time for these sessions; a server that is slower is killed before.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Acknowledged writes, and requests without an answer because the server died.
#[derive(Debug, Default)]
struct Ledger {
    sessions: BTreeMap<String, SessionId>,
    handoffs: BTreeMap<String, HandoffId>,
    unanswered: Vec<Request>,
}

/// A request that can be repeated with the same idempotency key.
#[derive(Debug, Clone)]
struct Request {
    path: &'static str,
    name: String,
    body: Value,
}

/// Counts, for a test to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Acknowledged sessions.
    pub sessions: usize,
    /// Acknowledged handoffs.
    pub handoffs: usize,
    /// Requests that were interrupted by a crash and repeated after it.
    pub repeated: usize,
}

/// Runs `cycles` crashes.
///
/// # Panics
///
/// Panics if an acknowledged write is missing, or a repeated request was executed twice.
pub fn run(home: &Home, store: &StoreConfig, cycles: u64) -> Tally {
    let ledger = Mutex::new(Ledger::default());
    let mut repeated = 0;
    for cycle in 0..cycles {
        let server = home.serve();
        repeated += repeat_unanswered(&server, &ledger);
        write_until_killed(server, &ledger, cycle);
        let verified = verify(store, &ledger.lock().expect("the ledger"));
        assert!(verified.is_ok(), "cycle {cycle}: {verified:?}");
    }
    repeated += repeat_unanswered(&home.serve(), &ledger);
    let ledger = ledger.into_inner().expect("the ledger");
    verify(store, &ledger).expect("all acknowledged writes are stored");
    Tally { sessions: ledger.sessions.len(), handoffs: ledger.handoffs.len(), repeated }
}

/// Runs clients until the server is killed. Half of the crashes happen shortly after the start, the others after some
/// writes, however slow the machine is.
fn write_until_killed(server: ServerProcess, ledger: &Mutex<Ledger>, cycle: u64) {
    let counter = AtomicU64::new(0);
    let sessions = || ledger.lock().expect("the ledger").sessions.len() as u64;
    let min_sessions = if cycle.is_multiple_of(2) { 0 } else { sessions() + 1 + random() % MAX_NEW_SESSIONS };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (server, counter) = (&server, &counter);
            scope.spawn(move || {
                while client_turn(server, ledger, cycle, counter.fetch_add(1, Ordering::Relaxed)).is_some() {}
            });
        }
        let deadline = Instant::now() + WRITE_TIMEOUT;
        while sessions() < min_sessions && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Sleeping is intended here: the crash must happen at a random time.
        std::thread::sleep(Duration::from_micros(random() % 40_000));
        kill(&server);
    });
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn kill(server: &ServerProcess) {
    let killed = std::process::Command::new("kill").args(["-9", &server.id().to_string()]).status();
    assert!(killed.expect("kill runs").success(), "the server ended before it was killed");
}

/// Starts a session, and ends every second one. Returns `None` if the server has ended.
fn client_turn(server: &ServerProcess, ledger: &Mutex<Ledger>, cycle: u64, turn: u64) -> Option<()> {
    let name = format!("c{cycle}-t{turn}");
    let start = Request {
        path: "/sod",
        name: name.clone(),
        body: json!({ "agent": AGENT, "venture": VENTURE, "repo": "o/r", "client_session_id": name }),
    };
    let session_id = send(server, ledger, start)?["session_id"].clone();
    if turn % 2 == 1 {
        let end = Request {
            path: "/eod",
            name: name.clone(),
            body: json!({ "session_id": session_id, "handoff": { "summary": name } }),
        };
        send(server, ledger, end)?;
    }
    Some(())
}

/// Sends a request and records its result. Returns `None` if the server has ended.
fn send(server: &ServerProcess, ledger: &Mutex<Ledger>, request: Request) -> Option<Value> {
    let headers = [("idempotency-key", request.name.as_str())];
    let sent = server.try_send("POST", request.path, &headers, request.body.to_string().as_bytes());
    let mut ledger = ledger.lock().expect("the ledger");
    let Ok(answer) = sent else {
        ledger.unanswered.push(request);
        return None;
    };
    assert_eq!(answer.status, 200, "{} {}", request.path, answer.text);
    let body = answer.json();
    let id = |name: &str| body[name].as_str().expect("an id").to_owned();
    if request.path == "/sod" {
        ledger.sessions.insert(request.name, id("session_id").parse().expect("a session id"));
    } else {
        ledger.handoffs.insert(request.name, id("handoff_id").parse().expect("a handoff id"));
    }
    Some(body)
}

fn repeat_unanswered(server: &ServerProcess, ledger: &Mutex<Ledger>) -> usize {
    let unanswered = std::mem::take(&mut ledger.lock().expect("the ledger").unanswered);
    let count = unanswered.len();
    for request in unanswered {
        send(server, ledger, request).expect("a server that is not killed answers");
    }
    count
}

/// Reads the store without the server: every acknowledged write exists, and nothing exists twice.
fn verify(config: &StoreConfig, ledger: &Ledger) -> Result<(), String> {
    let store = Store::open(config).map_err(|error| format!("{error:?}"))?;
    let (sessions, handoffs) = store
        .read(|tx| {
            let venture: baton_core::Venture = VENTURE.parse().expect("a venture");
            let filter = SessionFilter { venture: Some(venture.clone()), ..SessionFilter::default() };
            let mut sessions = Vec::new();
            let mut page = Page::first(1_000);
            loop {
                let found = tx.active_sessions(&filter, page)?;
                let Some(last) = found.last() else { break };
                page.before = Some(Cursor { before: last.id.ulid() });
                sessions.extend(found);
            }
            let mut handoffs = Vec::new();
            let mut page = Page::first(1_000);
            loop {
                let found = tx.handoffs(&HandoffFilter::of(venture.clone()), page)?;
                let Some(last) = found.last() else { break };
                page.before = Some(Cursor { before: last.id.ulid() });
                handoffs.extend(found);
            }
            Ok::<_, StoreError>((sessions, handoffs))
        })
        .wait()
        .map_err(|error| format!("{error:?}"))?;
    let mut stored_handoffs = BTreeMap::new();
    for handoff in handoffs {
        if let Some(other) = stored_handoffs.insert(handoff.summary.clone(), handoff.clone()) {
            return Err(format!("handoff {} exists twice: {} and {}", handoff.summary, handoff.id, other.id));
        }
    }
    let mut stored_sessions = BTreeMap::new();
    for session in sessions {
        let name = session.tuple.client_session_id.as_ref().map(ToString::to_string).unwrap_or_default();
        if let Some(other) = stored_sessions.insert(name.clone(), session.id) {
            return Err(format!("session {name} exists twice: {} and {other}", session.id));
        }
    }
    for (name, id) in &ledger.handoffs {
        if stored_handoffs.get(name).map(|handoff| handoff.id) != Some(*id) {
            return Err(format!("acknowledged handoff {name} {id} is missing or has another id"));
        }
    }
    for (name, id) in &ledger.sessions {
        let ended = stored_handoffs.get(name).map(|handoff| handoff.session_id);
        if stored_sessions.get(name).copied().or(ended) != Some(*id) {
            return Err(format!("acknowledged session {name} {id} is missing or has another id"));
        }
    }
    Ok(())
}
