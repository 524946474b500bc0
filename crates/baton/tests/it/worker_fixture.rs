//! Test home with a model server, for tests of the worker process. Its processes are killed on drop.
#![expect(clippy::print_stdout, reason = "the output is shown when a test fails")]

use std::ops::Deref;
use std::path::PathBuf;

use baton_testkit::binary::{Answer, Finished, Home, ask};
use baton_testkit::model_server::{Behaviour, ModelServer};
use baton_testkit::postgres::TestDatabase;
use baton_testkit::processes::{processes_of, signal, wait_until};
use serde_json::{Value, json};

/// A home with its database and model server. Its processes are killed first, then the fields are dropped in order.
pub(crate) struct WorkerFixture {
    home: Home,
    _database: Option<TestDatabase>,
    pub(crate) model: ModelServer,
}

impl Deref for WorkerFixture {
    type Target = Home;
    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Drop for WorkerFixture {
    fn drop(&mut self) {
        for pid in processes_of(&self.home.data_dir()) {
            signal(pid, "KILL");
        }
    }
}

impl WorkerFixture {
    pub(crate) fn sqlite() -> Self {
        Self::on(None, |home| home)
    }

    /// Creates a home on SQLite with additional settings.
    pub(crate) fn sqlite_with(change: impl FnOnce(Home) -> Home) -> Self {
        Self::on(None, change)
    }

    /// Creates a home with each kind of database in turn and prints the kind, so that a failed test shows it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let sqlite = std::iter::once_with(|| {
            println!("on SQLite");
            Some(Self::sqlite())
        });
        let postgres = std::iter::once_with(|| {
            println!("on PostgreSQL");
            Some(Self::on(Some(TestDatabase::with_schema()?), |home| home))
        });
        sqlite.chain(postgres).flatten()
    }

    fn on(database: Option<TestDatabase>, change: impl FnOnce(Home) -> Home) -> Self {
        let model = ModelServer::start();
        let mut home = Home::new(env!("CARGO_BIN_EXE_baton"))
            .with("BATON_COMPRESSOR", "anthropic")
            .with("BATON_ANTHROPIC_API_KEY", "sk-test-0123456789abcdef")
            .with("BATON_ANTHROPIC_BASE_URL", &model.url());
        if let Some(database) = &database {
            home = home.on_postgres(&database.url);
        }
        Self { home: change(home), _database: database, model }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.data_dir().join("worker.sock")
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.data_dir().join("worker.pid")
    }

    /// Runs a verb with JSON output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Finished {
        self.run(&[arguments, &["--format", "json"]].concat())
    }

    /// Runs a verb that must succeed and returns its data.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> Value {
        let finished = self.json(arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// Starts a worker and returns its process id.
    #[track_caller]
    pub(crate) fn start(&self) -> u32 {
        let started = self.ok(&["worker", "start"]);
        assert_eq!(started["running"], true, "{started}");
        u32::try_from(started["pid"].as_u64().unwrap()).unwrap()
    }

    /// Returns the process ids of all workers of this home.
    pub(crate) fn workers(&self) -> Vec<u32> {
        let is_worker = |pid: &u32| {
            let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&cmdline).contains("worker\0run")
        };
        processes_of(&self.data_dir()).into_iter().filter(is_worker).collect()
    }

    /// Sends a request to the socket of the worker.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, path: &str, body: &Value) -> Answer {
        ask(&self.socket(), method, path, body).unwrap()
    }

    /// Reports an event with a hook.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, report: Value) {
        let report = merged(json!({ "session_id": "chat", "cwd": self.path() }), report);
        let finished = self.run_with_input(&["hook", event], report.to_string().as_bytes());
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{finished:?}");
    }

    /// Reports a tool use with the output `item-<number>`.
    #[track_caller]
    pub(crate) fn capture(&self, number: u32) {
        self.hook("post-tool-use", tool_use(number));
    }

    pub(crate) fn stats(&self) -> Value {
        self.ok(&["queue", "stats"])
    }

    /// Waits until this many items are done and returns the titles of all observations, newest first.
    #[track_caller]
    pub(crate) fn titles_when(&self, count: u64) -> Vec<String> {
        wait_until("observations are made", || self.stats()["done"] == count);
        let listed = self.ok(&["observation", "list", "--limit", "200"]);
        let found = listed["observations"].as_array().unwrap();
        found.iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
    }

    /// Processes all pending items with a separate process and asserts the number of finished items.
    #[track_caller]
    pub(crate) fn finish(&self, count: u64) {
        self.model.behave(Behaviour::Good);
        self.ok(&["worker", "run", "--once"]);
        assert_eq!(self.stats()["done"], count);
    }
}

/// Returns a tool use with the output `item-<number>`.
pub(crate) fn tool_use(number: u32) -> Value {
    json!({
        "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_use_id": format!("use-{number}"),
        "tool_response": { "stdout": format!("what item-{number} said"), "stderr": "" },
    })
}

fn merged(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}
