//! The server: a thread that accepts, a thread per connection, and their shared state.
#![expect(clippy::expect_used, reason = "a test whose server does not start must fail loudly")]

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::BufReader;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::answer::answer;
use super::behaviour::Behaviour;
use super::http::{Request, read_request, write_response};

/// Maximum number of request bytes that are kept; later requests are only counted.
const MAX_REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

/// A running server, stopped on drop.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    answered: AtomicU64,
    connections: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    is_closing: bool,
    /// Behaviours of the next requests, one for each.
    script: VecDeque<Behaviour>,
    /// Behaviour after the script.
    behaviour: Behaviour,
    requests: Vec<Request>,
    remembered_bytes: usize,
    received: u64,
    open: HashMap<u64, TcpStream>,
}

impl ModelServer {
    /// Starts a server with valid answers on a free port.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared::default());
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Returns the base URL of the Messages API; append `/v1` for chat completions.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the behaviour after the script.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.state().behaviour = behaviour;
    }

    /// Sets the behaviours of the next requests, one for each.
    pub fn script(&self, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.shared.state().script.extend(behaviours);
    }

    /// Returns the requests so far in order, as far as they are kept (64 MiB).
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Removes the requests so far.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.requests.clear();
        state.remembered_bytes = 0;
        state.received = 0;
    }

    /// Returns the number of received requests.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.shared.state().received
    }

    /// Returns the number of answered requests, with any status.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Returns the number of accepted connections.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until this many requests were received, answered or not.
    ///
    /// # Panics
    ///
    /// Panics if they are not received within a minute.
    pub fn wait_for_requests(&self, count: u64) {
        let state = self.shared.state();
        let waiting = |state: &mut State| state.received < count;
        let result = self.shared.changed.wait_timeout_while(state, Duration::from_secs(60), waiting);
        let (_state, timeout) = result.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{count} requests were not received");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.changed.notify_all();
        // Wakes the acceptor, which then sees the closing flag.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and returns the behaviour for it.
    fn receive(&self, request: &Request) -> Behaviour {
        let mut state = self.state();
        state.received += 1;
        if state.remembered_bytes + request.body.len() <= MAX_REMEMBERED_BYTES {
            state.remembered_bytes += request.body.len();
            state.requests.push(request.clone());
        }
        let behaviour = state.script.pop_front().unwrap_or_else(|| state.behaviour.clone());
        drop(state);
        self.changed.notify_all();
        behaviour
    }

    /// Waits for a time, or until the server is dropped. Returns false if the server is closing.
    fn pause(&self, time: Option<Duration>) -> bool {
        let state = self.state();
        let open = |state: &mut State| !state.is_closing;
        let state = match time {
            Some(time) => {
                self.changed.wait_timeout_while(state, time, open).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait_while(state, open).unwrap_or_else(PoisonError::into_inner),
        };
        !state.is_closing
    }
}

/// Returns a random part of a duration.
fn random_part_of(most: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    most.mul_f64((random % 1_000) as f64 / 1_000.0)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        if shared.state().is_closing {
            break;
        }
        let Ok(stream) = stream else { continue };
        let id = shared.connections.fetch_add(1, Ordering::Relaxed);
        let Ok(other) = stream.try_clone() else { continue };
        shared.state().open.insert(id, other);
        let shared = Arc::clone(shared);
        threads.push(std::thread::spawn(move || {
            serve(&stream, &shared);
            let _ = stream.shutdown(Shutdown::Both);
            shared.state().open.remove(&id);
        }));
    }
    for (_, stream) in shared.state().open.drain() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Answers the requests of a connection until it is closed.
fn serve(stream: &TcpStream, shared: &Shared) {
    // Without a delay for small writes.
    let _ = stream.set_nodelay(true);
    let (Ok(reader), Ok(mut writer)) = (stream.try_clone(), stream.try_clone()) else { return };
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let behaviour = shared.receive(&request);
        let goes_on = match &behaviour {
            Behaviour::Hang => shared.pause(None),
            Behaviour::Slow(time) => shared.pause(Some(*time)),
            Behaviour::SlowUpTo(most) => shared.pause(Some(random_part_of(*most))),
            _ => true,
        };
        let Some(response) = goes_on.then(|| answer(&behaviour, &request)).flatten() else { return };
        // Counted before the answer is sent, so that a client that has the answer sees it counted.
        shared.answered.fetch_add(1, Ordering::Relaxed);
        if write_response(&mut writer, Behaviour::DATE, &response).is_err() {
            return;
        }
    }
}
