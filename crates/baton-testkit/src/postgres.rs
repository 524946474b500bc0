//! PostgreSQL for tests: a separate database for every test, or a separate server for tests that stop it.
//!
//! `scripts/test` starts one server for the whole run and sets `BATON_TEST_POSTGRES_URL`. Without a server a test is
//! skipped with a message; on CI it fails.
#![expect(clippy::expect_used, clippy::panic, reason = "a test without its database must fail loudly")]

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use baton_store::{PostgresTimeouts, Store, StoreConfig, Threads};
use postgres::{Client, Config, NoTls};
use tempfile::TempDir;

use crate::processes::signal;

/// Variable with the URL of the test server. Its role must be allowed to create databases.
const SERVER_URL_VARIABLE: &str = "BATON_TEST_POSTGRES_URL";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// No connections to this template are allowed, so none can block a copy.
const EMPTY_TEMPLATE: &str = "template0";
/// Advisory lock of the process that prepares a template.
const TEMPLATE_LOCK: i64 = 7_333;

/// A separate database on the test server, removed on drop.
#[derive(Debug)]
pub struct TestDatabase {
    /// URL of the database, which is initially empty.
    pub url: String,
    name: String,
    server_url: String,
}

impl TestDatabase {
    /// Creates an empty database; `None` if this run has no PostgreSQL server.
    ///
    /// On `None` the caller returns early; a message about the skipped test was already written to stderr.
    ///
    /// # Panics
    ///
    /// Panics if the server is unusable, and on CI also if there is none, because a skipped run must not pass there.
    #[must_use]
    pub fn create() -> Option<Self> {
        Self::create_with("")
    }

    /// Creates an empty database with further options of `CREATE DATABASE`, otherwise like [`TestDatabase::create`].
    ///
    /// # Panics
    ///
    /// Panics like [`TestDatabase::create`], and if the server does not know the options.
    #[must_use]
    pub fn create_with(options: &str) -> Option<Self> {
        Some(Self::create_from(&Self::server_url()?, EMPTY_TEMPLATE, options))
    }

    /// Creates a database with the current schema, otherwise like [`TestDatabase::create`].
    ///
    /// It is a copy of a database that the first test of a run prepares, because migrations take longer than most tests.
    ///
    /// # Panics
    ///
    /// Panics like [`TestDatabase::create`].
    #[must_use]
    pub fn with_schema() -> Option<Self> {
        let server_url = Self::server_url()?;
        let template = template_with_schema(&server_url);
        Some(Self::create_from(&server_url, &template, ""))
    }

    /// Creates an empty database on the server at `server_url`.
    ///
    /// # Panics
    ///
    /// Panics if the server is unusable.
    #[must_use]
    pub fn create_on(server_url: &str) -> Self {
        Self::create_from(server_url, EMPTY_TEMPLATE, "")
    }

    /// Runs statements in this database.
    ///
    /// # Panics
    ///
    /// Panics if a statement fails.
    pub fn execute(&self, statements: &str) {
        if let Err(error) = run_on_server(&self.url, statements) {
            panic!("cannot run {statements}: {error:?}");
        }
    }

    /// Returns the URL of the test server; reports a skipped test if there is none.
    fn server_url() -> Option<String> {
        let url = variable(SERVER_URL_VARIABLE);
        if url.is_none() {
            assert!(variable("CI").is_none(), "PostgreSQL is missing: run scripts/test");
            report_skipped_test();
        }
        url
    }

    fn create_from(server_url: &str, template: &str, options: &str) -> Self {
        let name = unique_name();
        let statement = format!("CREATE DATABASE {name} TEMPLATE {template} {options}");
        if let Err(error) = run_on_server(server_url, &statement) {
            panic!("cannot create {name} on {server_url}: {error:?}");
        }
        Self { url: with_database(server_url, &name), name, server_url: server_url.to_owned() }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // FORCE ends connections that the test, or a process it started, left open.
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        if let Err(error) = run_on_server(&self.server_url, &statement) {
            // A panic here could hide why the test failed, and the server is discarded anyway.
            write_to_stderr(&format!("cannot drop the test database {}: {error:?}", self.name));
        }
    }
}

/// A separate server that the test may freeze or kill. Stopped on drop.
#[derive(Debug)]
pub struct TestServer {
    folder: TempDir,
    /// URL of the server.
    pub url: String,
}

impl TestServer {
    /// Starts a server; `None` if no server binaries are installed.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start, and on CI also if there are no binaries.
    #[must_use]
    pub fn start() -> Option<Self> {
        if !Command::new(script()).arg("bin").output().is_ok_and(|output| output.status.success()) {
            assert!(variable("CI").is_none(), "PostgreSQL is missing: run scripts/test");
            report_skipped_test();
            return None;
        }
        // A short path, because the server's socket is in it.
        let folder = tempfile::Builder::new().prefix("bpg").tempdir_in("/tmp").expect("a temporary folder");
        let url = run_script("start", folder.path());
        Some(Self { folder, url })
    }

    /// Kills the server like a crash, and starts it again.
    ///
    /// # Panics
    ///
    /// Panics if it does not start at the same address.
    pub fn crash_and_restart(&self) {
        assert!(signal(self.postmaster(), "KILL"), "the server runs");
        assert_eq!(run_script("start", self.folder.path()), self.url);
    }

    /// Suspends every process of the server: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        let postmaster = self.postmaster();
        signal(postmaster, "STOP");
        // The suspended parent starts no further processes.
        for child in children_of(postmaster) {
            signal(child, "STOP");
        }
    }

    /// Resumes a frozen server.
    pub fn thaw(&self) {
        let postmaster = self.postmaster();
        for child in children_of(postmaster) {
            signal(child, "CONT");
        }
        signal(postmaster, "CONT");
    }

    fn postmaster(&self) -> u32 {
        let file = self.folder.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).expect("the server runs");
        text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process id")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if self.folder.path().join("data/postmaster.pid").exists() {
            self.thaw();
        }
        run_script("stop", self.folder.path());
    }
}

fn script() -> PathBuf {
    PathBuf::from("../../scripts/postgres")
}

fn run_script(verb: &str, folder: &Path) -> String {
    let output = Command::new(script()).arg(verb).arg(folder).output().expect("the script runs");
    assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the child processes of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Returns the name of a database with the current schema, which is prepared on first use.
///
/// Tests of one run share it: the processes of `cargo nextest` by the id of the run, the threads of `cargo test` by the
/// id of the process. Other builds may have other migrations.
fn template_with_schema(server_url: &str) -> String {
    let run = variable("NEXTEST_RUN_ID").unwrap_or_else(|| process::id().to_string());
    let name = format!("baton_template_{}", run.replace('-', "_"));
    let prepare = |client: &mut Client| -> Result<(), postgres::Error> {
        client.execute("SELECT pg_advisory_lock($1)", &[&TEMPLATE_LOCK])?;
        if client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name])?.is_some() {
            return Ok(());
        }
        let draft = TestDatabase::create_on(server_url);
        let config = StoreConfig::Postgres {
            url: draft.url.clone(),
            threads: Threads::Caller,
            connections: 1,
            timeouts: PostgresTimeouts::default(),
        };
        drop(Store::open(&config).expect("the schema can be created"));
        client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {}", draft.name))
    };
    if let Err(error) = with_client(server_url, prepare) {
        panic!("cannot prepare {name} on {server_url}: {error:?}");
    }
    name
}

/// Reads an environment variable. An empty variable counts as unset.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns a name that is unique among the processes and threads that share the server. Databases of killed tests may
/// remain.
fn unique_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let random = RandomState::new().build_hasher().finish();
    format!("baton_test_{}_{count}_{random:016x}", process::id())
}

fn run_on_server(server_url: &str, statement: &str) -> Result<(), postgres::Error> {
    with_client(server_url, |client| client.batch_execute(statement))
}

/// Runs on a separate thread, because the client blocks on a runtime, which is not allowed inside async tests.
fn with_client(
    server_url: &str,
    work: impl FnOnce(&mut Client) -> Result<(), postgres::Error> + Send,
) -> Result<(), postgres::Error> {
    thread::scope(|scope| {
        let run = || -> Result<(), postgres::Error> {
            let mut config: Config = server_url.parse()?;
            work(&mut config.connect_timeout(CONNECT_TIMEOUT).connect(NoTls)?)
        };
        scope.spawn(run).join().expect("the PostgreSQL client does not panic")
    })
}

/// Replaces the database name of a URL and keeps its parameters.
fn with_database(server_url: &str, name: &str) -> String {
    let (location, parameters) = match server_url.split_once('?') {
        Some((location, parameters)) => (location, format!("?{parameters}")),
        None => (server_url, String::new()),
    };
    let (scheme, location) = location.split_once("://").expect("the server is named by a URL");
    let authority = location.split_once('/').map_or(location, |(authority, _)| authority);
    format!("{scheme}://{authority}/{name}{parameters}")
}

fn report_skipped_test() {
    // The test harness names the thread after the test.
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    write_to_stderr(&format!(
        "skipped {test}: no PostgreSQL ({SERVER_URL_VARIABLE} is unset; scripts/test sets it)"
    ));
}

/// Writes to stderr directly, because the harness captures `eprintln!` of passing tests.
fn write_to_stderr(message: &str) {
    // A closed stderr must not fail a test.
    let _ = writeln!(io::stderr(), "{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(url: &str) -> Result<Client, postgres::Error> {
        Client::connect(url, NoTls)
    }

    #[test]
    fn databases_are_separate_and_dropped_with_connections_open() {
        let (Some(first), Some(second)) = (TestDatabase::create(), TestDatabase::create()) else { return };
        let url = first.url.clone();
        let mut client = connect(&url).expect("connects to the first database");
        client.batch_execute("CREATE TABLE only_here ()").expect("creates a table");
        let mut other = connect(&second.url).expect("connects to the second database");
        other.batch_execute("SELECT FROM only_here").expect_err("the second database has no such table");

        drop(first);

        client.batch_execute("SELECT 1").expect_err("the connection was ended");
        assert!(connect(&url).is_err(), "{url} still exists");
        other.batch_execute("SELECT 1").expect("the second database is untouched");
    }

    #[test]
    fn with_database_replaces_only_the_path() {
        for (server_url, expected) in [
            ("postgres://baton@127.0.0.1:5433/postgres", "postgres://baton@127.0.0.1:5433/mine"),
            ("postgres://baton@localhost", "postgres://baton@localhost/mine"),
            ("postgresql://host/old?sslmode=disable", "postgresql://host/mine?sslmode=disable"),
            ("postgres:///old?host=/run/pg", "postgres:///mine?host=/run/pg"),
        ] {
            assert_eq!(with_database(server_url, "mine"), expected);
        }
    }
}
