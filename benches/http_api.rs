//! The HTTP API under load: durable requests per second and latency with keep-alive on both databases, and the effect
//! of a million rows.
//!
//! The load comes from this process, on the same cores as the server. One thread polls all connections and sends the
//! next request on each answered one, like load generators do: with a thread per connection, the context switches would
//! take processor time from the server. Only `eod`, which needs its own session first, uses a thread per connection.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_benches::{Timings, machine, release_binary, table};
use baton_testkit::binary::{Home, RELAY_KEY, ServerProcess};
use baton_testkit::postgres::TestDatabase;
use rustix::event::{PollFd, PollFlags, poll};

const RUN: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_millis(500);

/// Number of the next session.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A keep-alive connection.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    fn write(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-relay-key: {RELAY_KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).expect("the server reads");
        self.filled = 0;
    }

    /// Reads available bytes; returns the range of the body once it is complete.
    fn read(&mut self) -> Option<(usize, usize)> {
        let read = self.stream.read(&mut self.buffer[self.filled..]).expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        self.filled += read;
        let (begin, end) = message(&self.buffer[..self.filled]).filter(|(_, end)| self.filled >= *end)?;
        assert!(self.buffer.starts_with(b"HTTP/1.1 200"), "{}", text(&self.buffer[..self.filled]));
        Some((begin, end))
    }

    fn open(server: &ServerProcess) -> Self {
        let address = server.url().trim_start_matches("http://");
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, buffer: vec![0; 256 * 1024], filled: 0 }
    }

    /// Sends a request and returns the body of the response.
    fn send(&mut self, method: &str, path: &str, body: &str) -> &[u8] {
        self.write(method, path, body);
        loop {
            if let Some((begin, end)) = self.read() {
                return &self.buffer[begin..end];
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the range of the body of a message, once its head is complete.
fn message(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let lines = std::str::from_utf8(&bytes[..head]).expect("a head in ASCII");
    let length =
        lines.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    Some((head + 4, head + 4 + length.unwrap_or(0)))
}

/// Creates the next request (method, path and body) for a connection and one of its sessions.
type MakeRequest = dyn Fn(&mut Connection, &str) -> (&'static str, String, String) + Sync;

/// Number of sessions per connection. Two heartbeats of one session within a millisecond are one write, which would
/// distort the results.
const SESSIONS: usize = 64;
/// Number of repositories of the sessions.
const REPOS: u64 = 20_000;

fn start_body(number: u64) -> String {
    format!(
        r#"{{"agent":"agent-{number}","venture":"bench","repo":"owner/repo-{}","branch":"feature/x","host":"box"}}"#,
        number % REPOS
    )
}

fn start(connection: &mut Connection) -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let body = text(connection.send("POST", "/sod", &start_body(number)));
    let at = body.find("sess_").expect("a session id");
    body[at..at + 31].to_owned()
}

/// Runs requests of one kind on this many connections and returns requests per second and latencies.
fn load(server: &ServerProcess, connections: usize, kind: &str, make: &MakeRequest) -> (f64, Timings) {
    if kind == "eod" {
        load_on_threads(server, connections, make)
    } else {
        load_on_one_thread(server, connections, make)
    }
}

/// A connection with its sessions, one of which is used for each request in turn.
struct Client {
    connection: Connection,
    sessions: Vec<String>,
    /// Number of requests sent.
    sent: usize,
    last_sent_at: Instant,
}

impl Client {
    fn open(server: &ServerProcess) -> Self {
        let mut connection = Connection::open(server);
        let sessions = (0..SESSIONS).map(|_| start(&mut connection)).collect();
        Self { connection, sessions, sent: 0, last_sent_at: Instant::now() }
    }

    fn send_next(&mut self, make: &MakeRequest) {
        let (method, path, body) = make(&mut self.connection, &self.sessions[self.sent % SESSIONS]);
        self.sent += 1;
        self.last_sent_at = Instant::now();
        self.connection.write(method, &path, &body);
    }
}

/// Runs the load with one thread for all connections.
fn load_on_one_thread(server: &ServerProcess, connections: usize, make: &MakeRequest) -> (f64, Timings) {
    let mut clients: Vec<Client> = (0..connections).map(|_| Client::open(server)).collect();
    let started = Instant::now();
    let mut timings = Vec::with_capacity(200_000);
    clients.iter_mut().for_each(|client| client.send_next(make));
    while started.elapsed() < WARM_UP + RUN {
        let ready: Vec<bool> = {
            let mut waiting: Vec<PollFd<'_>> =
                clients.iter().map(|client| PollFd::new(&client.connection.stream, PollFlags::IN)).collect();
            poll(&mut waiting, None).expect("an answer");
            waiting.iter().map(|one| !one.revents().is_empty()).collect()
        };
        for (client, _) in clients.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            if client.connection.read().is_some() {
                if started.elapsed() >= WARM_UP {
                    timings.push(client.last_sent_at.elapsed());
                }
                client.send_next(make);
            }
        }
    }
    (timings.len() as f64 / RUN.as_secs_f64(), Timings::new(timings))
}

/// Runs the load with one thread per connection.
fn load_on_threads(server: &ServerProcess, connections: usize, make: &MakeRequest) -> (f64, Timings) {
    let ready = std::sync::Barrier::new(connections);
    let all: Vec<(u64, Vec<Duration>)> = std::thread::scope(|scope| {
        let ready = &ready;
        let handles: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(move || {
                    let mut connection = Connection::open(server);
                    let sessions: Vec<String> = (0..SESSIONS).map(|_| start(&mut connection)).collect();
                    ready.wait();
                    let started = Instant::now();
                    let mut timings = Vec::with_capacity(100_000);
                    let (mut counted, mut turn) = (0, 0);
                    while started.elapsed() < WARM_UP + RUN {
                        let session = &sessions[turn % SESSIONS];
                        turn += 1;
                        let (method, path, body) = make(&mut connection, session);
                        let sent = Instant::now();
                        connection.send(method, &path, &body);
                        if started.elapsed() >= WARM_UP {
                            timings.push(sent.elapsed());
                            counted += 1;
                        }
                    }
                    (counted, timings)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a client")).collect()
    });
    let total: u64 = all.iter().map(|(counted, _)| counted).sum();
    let timings = all.into_iter().flat_map(|(_, timings)| timings).collect();
    (total as f64 / RUN.as_secs_f64(), Timings::new(timings))
}

fn kinds() -> Vec<(&'static str, Box<MakeRequest>)> {
    vec![
        (
            "heartbeat",
            Box::new(|_: &mut Connection, session: &str| {
                ("POST", "/heartbeat".into(), format!(r#"{{"session_id":"{session}"}}"#))
            }) as Box<MakeRequest>,
        ),
        (
            "sod (create)",
            Box::new(|_: &mut Connection, _: &str| {
                ("POST", "/sod".into(), start_body(NUMBER.fetch_add(1, Ordering::Relaxed)))
            }),
        ),
        (
            "eod",
            Box::new(|connection: &mut Connection, _: &str| {
                let session = start(connection);
                let body =
                    format!(r#"{{"session_id":"{session}","handoff":{{"summary":"done","blockers":[]}}}}"#);
                ("POST", "/eod".into(), body)
            }),
        ),
        (
            "active",
            Box::new(|_: &mut Connection, _: &str| {
                (
                    "GET",
                    format!(
                        "/active?venture=bench&repo=owner%2Frepo-{}",
                        NUMBER.load(Ordering::Relaxed) % REPOS
                    ),
                    String::new(),
                )
            }),
        ),
        (
            "handoffs/latest",
            Box::new(|_: &mut Connection, _: &str| {
                (
                    "GET",
                    format!(
                        "/handoffs/latest?venture=bench&repo=owner%2Frepo-{}",
                        NUMBER.load(Ordering::Relaxed) % REPOS
                    ),
                    String::new(),
                )
            }),
        ),
        (
            "handoffs",
            Box::new(|_: &mut Connection, _: &str| {
                ("GET", "/handoffs?venture=bench&limit=10".into(), String::new())
            }),
        ),
    ]
}

fn throughput(name: &str, home: &Home) {
    let server = home.serve_with(&[("BATON_RATE_LIMIT_PER_MINUTE", "0")]);
    let mut rows = Vec::new();
    for (kind, make) in kinds().into_iter().take(3) {
        for connections in [1, 8, 32] {
            let (rate, timings) = load(&server, connections, kind, make.as_ref());
            rows.push(vec![
                kind.to_owned(),
                connections.to_string(),
                format!("{rate:.0}"),
                format!("{:.2}", timings.percentile_ms(50)),
                format!("{:.2}", timings.percentile_ms(99)),
            ]);
        }
    }
    let note = "eod: each preceded by its sod, which is not counted but shares the time";
    table(
        &format!("Durable requests, {name} ({note})"),
        &["request", "connections", "requests/s", "p50 ms", "p99 ms"],
        &rows,
    );
}

/// Adds this many ended sessions with handoffs to a store.
fn fill(home: &Home, rows: u64) {
    let database = rusqlite::Connection::open(home.data_dir().join("baton.db")).expect("the database");
    let sql = format!(
        "PRAGMA synchronous = OFF;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows} - 1)
         INSERT INTO sessions (id, agent, venture, repo, status, created_at, last_heartbeat_at, ended_at, end_reason,
           schema_version, actor_key_id, creation_correlation_id)
         SELECT printf('sess_01HQXV3N%018d', i), 'agent-' || (i % 997), 'bench', 'owner/repo-' || (i % {REPOS}),
           'ended', 1700000000000 + i, 1700000000000 + i, 1700000000000 + i, 'manual', '1.0', '0123456789abcdef',
           'corr_fill' FROM n;
         INSERT INTO handoffs (id, session_id, venture, repo, from_agent, summary, payload_json, payload_hash,
           payload_size_bytes, schema_version, ends_session, late, created_at, actor_key_id,
           creation_correlation_id)
         SELECT replace(id, 'sess_', 'ho_'), id, venture, repo, agent, 'done and handed over', '{{}}',
           '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 2, '1.0', 1, 0, created_at,
           actor_key_id, creation_correlation_id FROM sessions WHERE creation_correlation_id = 'corr_fill';
         PRAGMA wal_checkpoint(TRUNCATE);"
    );
    database.execute_batch(&sql).expect("rows");
}

fn scale() {
    let measure = |rows: u64| {
        let home = Home::new(&release_binary("baton").to_string_lossy());
        drop(home.serve());
        fill(&home, rows);
        let server = home.serve_with(&[("BATON_RATE_LIMIT_PER_MINUTE", "0")]);
        kinds()
            .into_iter()
            .map(|(kind, make)| {
                let (_, timings) = load(&server, 8, kind, make.as_ref());
                (kind, timings.percentile_ms(50), timings.percentile_ms(99))
            })
            .collect::<Vec<_>>()
    };
    let (small, large) = (measure(1_000), measure(1_000_000));
    let rows: Vec<Vec<String>> = small
        .iter()
        .zip(&large)
        .map(|((kind, p50, p99), (_, large_p50, large_p99))| {
            vec![
                (*kind).to_owned(),
                format!("{p50:.2}"),
                format!("{large_p50:.2}"),
                format!("{p99:.2}"),
                format!("{large_p99:.2}"),
                format!("{:.2}×", large_p99 / p99),
            ]
        })
        .collect();
    table(
        "1,000 against 1,000,000 stored sessions and handoffs, SQLite, 8 connections",
        &["request", "p50 ms, 1,000", "p50 ms, 1,000,000", "p99 ms, 1,000", "p99 ms, 1,000,000", "p99 ratio"],
        &rows,
    );
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    machine();
    let binary = release_binary("baton").to_string_lossy().into_owned();
    if wants("sqlite") {
        throughput("SQLite", &Home::new(&binary));
    }
    if wants("postgres") {
        match std::env::var("BATON_BENCH_POSTGRES_URL") {
            Ok(server) => {
                let database = TestDatabase::create_on(&server);
                throughput("PostgreSQL", &Home::new(&binary).on_postgres(&database.url));
            }
            Err(_) => println!("\nno PostgreSQL: run scripts/bench"),
        }
    }
    if wants("scale") {
        scale();
    }
}
