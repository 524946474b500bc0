//! The server: a thread that accepts, a thread for each connection, and what they share.
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

/// How many bytes of requests are remembered; of later ones only the number is known.
const MAX_REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

/// A running server, which ends when this goes out of scope.
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
    /// What comes first, once each.
    script: VecDeque<Behaviour>,
    /// What comes when the script is at its end.
    behaviour: Behaviour,
    requests: Vec<Request>,
    remembered_bytes: usize,
    received: u64,
    open: HashMap<u64, TcpStream>,
}

impl ModelServer {
    /// Starts a server that answers well, on a free port of this machine.
    ///
    /// # Panics
    ///
    /// When there is none.
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

    /// Where it listens: the base URL for the Messages API, and with `/v1` behind it for chat completions.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers like this from now on, once the script is at its end.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.state().behaviour = behaviour;
    }

    /// Answers the next requests like this, one after the other, before the standing behaviour.
    pub fn script(&self, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.shared.state().script.extend(behaviours);
    }

    /// The requests so far, in the order in which they came, as far as they are remembered (64 MiB).
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.requests.clear();
        state.remembered_bytes = 0;
        state.received = 0;
    }

    /// How many requests came.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.shared.state().received
    }

    /// How many requests were answered, in whatever way.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// How many connections were made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until this many requests came, whether they are answered or not.
    ///
    /// # Panics
    ///
    /// When they do not come within a minute.
    pub fn wait_for_requests(&self, count: u64) {
        let state = self.shared.state();
        let waiting = |state: &mut State| state.received < count;
        let result = self.shared.changed.wait_timeout_while(state, Duration::from_secs(60), waiting);
        let (_state, timeout) = result.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{count} requests did not come");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.changed.notify_all();
        // Wakes the acceptor, which then sees that it is over.
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

    /// Remembers a request and says how to answer it.
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

    /// Waits for a time, or without one until the server ends. Says whether the server goes on.
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

/// A part of a time, as large as chance wants it.
fn part_of(most: Duration) -> Duration {
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

/// Answers the requests of a connection until either side has enough.
fn serve(stream: &TcpStream, shared: &Shared) {
    // An answer is one small write: it must not wait for another.
    let _ = stream.set_nodelay(true);
    let (Ok(reader), Ok(mut writer)) = (stream.try_clone(), stream.try_clone()) else { return };
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let behaviour = shared.receive(&request);
        let goes_on = match &behaviour {
            Behaviour::Hang => shared.pause(None),
            Behaviour::Slow(time) => shared.pause(Some(*time)),
            Behaviour::SlowUpTo(most) => shared.pause(Some(part_of(*most))),
            _ => true,
        };
        let Some(response) = goes_on.then(|| answer(&behaviour, &request)).flatten() else { return };
        // Before the client can know: whoever has the answer finds it counted.
        shared.answered.fetch_add(1, Ordering::Relaxed);
        if write_response(&mut writer, Behaviour::DATE, &response).is_err() {
            return;
        }
    }
}
