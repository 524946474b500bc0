//! Test server: the real server on an empty database of either kind, with helpers to call it.
#![expect(clippy::print_stdout, reason = "the output is shown when a test fails")]

use std::collections::BTreeSet;
use std::ops::Deref;

use baton_core::Timestamp;
use baton_store::{PostgresTimeouts, Store, StoreConfig, Threads};
use baton_testkit::binary::{Answer, Home, ServerProcess};
use baton_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

/// A server with its home and database, dropped in this order.
pub(crate) struct Served {
    server: ServerProcess,
    pub(crate) home: Home,
    database: Option<TestDatabase>,
}

impl Deref for Served {
    type Target = ServerProcess;
    fn deref(&self) -> &ServerProcess {
        &self.server
    }
}

impl Served {
    /// Starts a server on SQLite.
    pub(crate) fn sqlite() -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_baton"));
        Self { server: home.serve(), home, database: None }
    }

    /// Starts a server on PostgreSQL, if a PostgreSQL server is available.
    pub(crate) fn postgres() -> Option<Self> {
        let database = TestDatabase::with_schema()?;
        let home = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&database.url);
        Some(Self { server: home.serve(), home, database: Some(database) })
    }

    /// Starts a server on each kind of database in turn and prints the kind, so that a failed test shows it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let sqlite = std::iter::once_with(|| Some(Self::sqlite()));
        let postgres = std::iter::once_with(Self::postgres);
        sqlite.chain(postgres).flatten().inspect(|served| println!("on {}", served.kind()))
    }

    /// Like `each`, with servers that run no worker.
    pub(crate) fn each_without_worker() -> impl Iterator<Item = Self> {
        Self::each().map(|served| {
            let Self { server, home, database } = served;
            server.kill();
            Self { server: home.serve_as(&["--no-worker"], &[]), home, database }
        })
    }

    /// Restarts the server with these environment variables.
    pub(crate) fn restarted(self, environment: &[(&str, &str)]) -> Self {
        let Self { server, home, database } = self;
        server.kill();
        Self { server: home.serve_with(environment), home, database }
    }

    /// Stops the server, which flushes its request log, and returns its home and database.
    pub(crate) fn stop(self) -> (Home, Option<TestDatabase>) {
        let Self { server, home, database } = self;
        assert_eq!(server.stop(), 0);
        (home, database)
    }

    /// Kills the server and returns its home.
    pub(crate) fn into_home(self) -> Home {
        self.server.kill();
        self.home
    }

    fn kind(&self) -> &'static str {
        if self.database.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// Opens the store directly.
    pub(crate) fn store(&self) -> Store {
        let threads = Threads::Caller;
        let config = match &self.database {
            Some(database) => StoreConfig::Postgres {
                url: database.url.clone(),
                threads,
                connections: 1,
                timeouts: PostgresTimeouts::default(),
            },
            None => StoreConfig::Sqlite { path: self.home.data_dir().join("baton.db"), threads },
        };
        Store::open(&config).unwrap()
    }

    /// Posts a body; the response must be 200.
    #[track_caller]
    pub(crate) fn ok(&self, path: &str, body: &Value) -> Value {
        expect(&self.post(path, body), 200)
    }

    /// Posts a body with an idempotency key.
    pub(crate) fn keyed(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("idempotency-key", key)], body.to_string().as_bytes())
    }

    /// Sends a GET request; the response must be 200.
    #[track_caller]
    pub(crate) fn found(&self, path: &str) -> Value {
        expect(&self.get(path), 200)
    }

    /// Posts a body; the response must be this error.
    #[track_caller]
    pub(crate) fn refused(&self, path: &str, body: &Value, status: u16, code: &str) -> Value {
        refusal(&self.post(path, body), status, code)
    }

    /// Starts a session of an agent in venture `v` and repository `o/r`, and returns its id.
    #[track_caller]
    pub(crate) fn start(&self, agent: &str) -> String {
        id(&self.ok("/sod", &who(agent))["session_id"])
    }

    /// Starts a session, ends it with a handoff, and returns both ids.
    #[track_caller]
    pub(crate) fn relay(&self, start: &Value, handoff: &Value) -> (String, String) {
        let session = id(&self.ok("/sod", start)["session_id"]);
        let ended = self.ok("/eod", &json!({ "session_id": session, "handoff": handoff }));
        (session, id(&ended["handoff_id"]))
    }
}

/// Returns the parameters to start a session of an agent in venture `v` and repository `o/r`.
pub(crate) fn who(agent: &str) -> Value {
    json!({ "agent": agent, "venture": "v", "repo": "o/r" })
}

/// Adds fields to an object.
pub(crate) fn with(mut object: Value, mut more: Value) -> Value {
    object.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    object
}

/// Returns a JSON string, for example an id.
#[track_caller]
pub(crate) fn id(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Asserts the status and the content type, and returns the JSON body.
#[track_caller]
pub(crate) fn expect(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// Asserts that the response is this error with all fields of an error body.
#[track_caller]
pub(crate) fn refusal(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!((answer.status, body["error"].as_str()), (status, Some(code)), "{}", answer.text);
    assert_eq!(names(&body), ["correlation_id", "details", "error", "hint", "message"].into());
    assert!(body["message"].is_string());
    if answer.header("x-idempotency-hit").is_none() {
        assert_eq!(body["correlation_id"].as_str(), answer.header("x-correlation-id"));
    }
    body
}

/// Returns the field names of an object.
pub(crate) fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Parses a time, which must be UTC with milliseconds and `Z`.
#[track_caller]
pub(crate) fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap();
    let time: Timestamp = text.parse().unwrap();
    assert_eq!(time.to_string(), text);
    time
}

/// Percent-encodes a part of a query or path.
pub(crate) fn encode(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
