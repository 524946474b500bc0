//! The open connections, and which one is closed when there are too many.
//!
//! A connection is busy from the authentication of its request until the response is ready. Busy connections
//! are never closed in favour of others, and fewer requests may be busy than connections may be open. So
//! there is always a connection that can be closed, and a new connection, for example of a health check, is
//! always accepted: among the connections of the peer that has the most, the server closes the one that has
//! been idle or sending its request for the longest time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::{ErrorCode, Fault};
use tokio::sync::Notify;

use crate::http::metrics::Metrics;
use crate::http::peer::Peer;

/// Number of connections that authenticated requests cannot occupy.
const RESERVED_CONNECTIONS: usize = 32;
/// Maximum number of closed connections whose sockets are not released yet. Above this, accepting waits.
const MAX_CLOSING: usize = 32;
/// Minimum connection limit of a server.
pub(super) const MIN_CONNECTIONS: usize = RESERVED_CONNECTIONS + 32;

/// The open connections of a server.
pub(super) struct Connections {
    capacity: usize,
    registry: Mutex<Registry>,
    closed: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Registry {
    next_id: u64,
    /// Increases whenever a connection becomes idle: a lower number means idle for longer.
    next_turn: u64,
    open: HashMap<u64, Entry>,
    busy: usize,
    idle_count: usize,
    idle: HashMap<Peer, BTreeMap<u64, Idle>>,
}

struct Entry {
    peer: Peer,
    state: State,
    close: Arc<Notify>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle { turn: u64 },
    Busy,
    Closing,
}

struct Idle {
    id: u64,
    since: Instant,
}

impl Connections {
    /// Creates a registry with a limit on open connections.
    pub(super) fn new(limit: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            capacity: limit.max(MIN_CONNECTIONS),
            registry: Mutex::default(),
            closed: Notify::new(),
            metrics,
        }
    }

    /// Adds a connection and closes another one if there are too many.
    pub(super) fn open(self: &Arc<Self>, peer: Peer) -> Arc<Connection> {
        let mut registry = self.registry();
        if registry.open_count() >= self.capacity && registry.close_one() {
            self.metrics.count("baton_connections_closed_total", "limit");
        }
        let id = registry.next_id;
        registry.next_id += 1;
        let close = Arc::new(Notify::new());
        registry.open.insert(id, Entry { peer, state: State::Closing, close: close.clone() });
        registry.set_idle(id);
        drop(registry);
        Arc::new(Connection { id, peer, close, connections: self.clone() })
    }

    /// Waits until enough closed connections have released their sockets.
    pub(super) async fn settled(&self) {
        loop {
            let closed = self.closed.notified();
            if self.registry().open.len() < self.capacity + MAX_CLOSING {
                return;
            }
            closed.await;
        }
    }

    /// Closes the connection that has been idle for the longest time. Returns false if all are busy.
    pub(super) fn close_one(&self) -> bool {
        self.registry().close_one()
    }

    /// Closes connections that have been idle for this long. A client that is sending a request or reading a
    /// response counts as idle.
    pub(super) fn close_idle(&self, limit: Duration) {
        let Some(before) = Instant::now().checked_sub(limit) else { return };
        let mut registry = self.registry();
        let old: Vec<u64> = registry
            .idle
            .values()
            .flat_map(|idle| idle.values().take_while(|idle| idle.since <= before).map(|idle| idle.id))
            .collect();
        for id in old {
            registry.close(id);
            self.metrics.count("baton_connections_closed_total", "timeout");
        }
    }

    /// Closes every connection and returns the number of requests in progress.
    pub(super) fn close_all(&self) -> usize {
        let mut registry = self.registry();
        let busy = registry.busy;
        let all: Vec<u64> = registry.open.keys().copied().collect();
        for id in all {
            registry.close(id);
        }
        busy
    }

    /// Waits until no connection is open.
    pub(super) async fn all_closed(&self) {
        loop {
            let closed = self.closed.notified();
            if self.registry().open.is_empty() {
                return;
            }
            closed.await;
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Returns the number of connections that are not closing.
    fn open_count(&self) -> usize {
        self.busy + self.idle_count
    }

    fn set_idle(&mut self, id: u64) {
        let turn = self.next_turn;
        self.next_turn += 1;
        if let Some(entry) = self.open.get_mut(&id) {
            entry.state = State::Idle { turn };
            self.idle_count += 1;
            self.idle.entry(entry.peer).or_default().insert(turn, Idle { id, since: Instant::now() });
        }
    }

    /// Sets the state of a connection to closing and updates the counts.
    fn set_closing(&mut self, id: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        match std::mem::replace(&mut entry.state, State::Closing) {
            State::Busy => self.busy -= 1,
            State::Closing => {}
            State::Idle { turn } => {
                self.idle_count -= 1;
                let peer = entry.peer;
                if let Some(idle) = self.idle.get_mut(&peer) {
                    idle.remove(&turn);
                    if idle.is_empty() {
                        self.idle.remove(&peer);
                    }
                }
            }
        }
    }

    fn close(&mut self, id: u64) {
        self.set_closing(id);
        if let Some(entry) = self.open.get(&id) {
            entry.close.notify_one();
        }
    }

    fn close_one(&mut self) -> bool {
        let most = self.idle.values().max_by_key(|idle| idle.len());
        let Some(id) = most.and_then(|idle| idle.values().next()).map(|idle| idle.id) else { return false };
        self.close(id);
        true
    }
}

/// An open connection. It is removed from the registry when the last reference is dropped.
pub(super) struct Connection {
    id: u64,
    peer: Peer,
    close: Arc<Notify>,
    connections: Arc<Connections>,
}

impl Connection {
    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Waits until the connection must be closed.
    pub(super) async fn close_requested(&self) {
        self.close.notified().await;
    }

    /// Records the arrival of a request head, which makes this connection the last candidate for closing.
    pub(super) fn received_head(&self) {
        let mut registry = self.connections.registry();
        if registry.open.get(&self.id).is_some_and(|entry| matches!(entry.state, State::Idle { .. })) {
            registry.set_closing(self.id);
            registry.set_idle(self.id);
        }
    }

    /// Starts an authenticated request. Fails if too many are in progress or the connection is closing.
    pub(super) fn start_request(self: &Arc<Self>) -> Result<BusyConnection, Fault> {
        let mut registry = self.connections.registry();
        let is_idle =
            registry.open.get(&self.id).is_some_and(|entry| matches!(entry.state, State::Idle { .. }));
        if !is_idle || registry.busy >= self.connections.capacity - RESERVED_CONNECTIONS {
            drop(registry);
            self.connections.metrics.count("baton_requests_rejected_total", "connections");
            return Err(Fault::new(ErrorCode::Overloaded, "too many requests are in progress")
                .hint("send the request again in a moment"));
        }
        registry.set_closing(self.id);
        registry.busy += 1;
        if let Some(entry) = registry.open.get_mut(&self.id) {
            entry.state = State::Busy;
        }
        Ok(BusyConnection { connection: self.clone() })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut registry = self.connections.registry();
        registry.set_closing(self.id);
        registry.open.remove(&self.id);
        drop(registry);
        self.connections.closed.notify_waiters();
    }
}

/// Marks a connection as busy until this is dropped.
pub(super) struct BusyConnection {
    connection: Arc<Connection>,
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        let id = self.connection.id;
        let mut registry = self.connection.connections.registry();
        if registry.open.get(&id).is_some_and(|entry| entry.state == State::Busy) {
            registry.set_closing(id);
            registry.set_idle(id);
        }
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
