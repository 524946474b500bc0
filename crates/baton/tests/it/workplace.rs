//! A home with a model of its own, for tests of the worker as a process. Whatever runs there ends with it.
#![expect(clippy::print_stdout, reason = "what a test says is shown when it fails")]

use std::ops::Deref;
use std::path::PathBuf;

use baton_testkit::binary::{Answer, Finished, Home};
use baton_testkit::model_server::{Behaviour, ModelServer};
use baton_testkit::postgres::TestDatabase;
use baton_testkit::processes::{ask, processes_of, signal, wait_until};
use serde_json::{Value, json};

/// A home and its model. Dropped in this order: what runs there, the home, the database, the model.
pub(crate) struct Workplace {
    home: Home,
    _database: Option<TestDatabase>,
    pub(crate) model: ModelServer,
}

impl Deref for Workplace {
    type Target = Home;
    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        for pid in processes_of(&self.home.data_dir()) {
            signal(pid, "KILL");
        }
    }
}

impl Workplace {
    pub(crate) fn sqlite() -> Self {
        Self::on(None, |home| home)
    }

    /// One with further settings.
    pub(crate) fn sqlite_with(change: impl FnOnce(Home) -> Home) -> Self {
        Self::on(None, change)
    }

    /// One on each kind of database in turn, saying which: the output of a failed test ends with it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let sqlite = std::iter::once_with(|| {
            println!("on SQLite");
            Some(Self::sqlite())
        });
        let postgres = std::iter::once_with(|| {
            println!("on PostgreSQL");
            Some(Self::on(Some(TestDatabase::create()?), |home| home))
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

    /// Runs a verb with an answer for machines.
    pub(crate) fn json(&self, arguments: &[&str]) -> Finished {
        self.run(&[arguments, &["--format", "json"]].concat())
    }

    /// The data of a verb that must have worked.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> Value {
        let finished = self.json(arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// Starts a worker and gives its number.
    #[track_caller]
    pub(crate) fn start(&self) -> u32 {
        let started = self.ok(&["worker", "start"]);
        assert_eq!(started["running"], true, "{started}");
        u32::try_from(started["pid"].as_u64().unwrap()).unwrap()
    }

    /// The numbers of all workers of this home.
    pub(crate) fn workers(&self) -> Vec<u32> {
        let is_worker = |pid: &u32| {
            let told = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&told).contains("worker\0run")
        };
        processes_of(&self.data_dir()).into_iter().filter(is_worker).collect()
    }

    /// Asks the worker over its socket.
    #[track_caller]
    pub(crate) fn asked(&self, method: &str, path: &str, body: &Value) -> Answer {
        ask(&self.socket(), method, path, body).unwrap()
    }

    /// Lets an agent's hook report an event.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, report: Value) {
        let report = merged(json!({ "session_id": "chat", "cwd": self.path() }), report);
        let finished = self.run_with_input(&["hook", event], report.to_string().as_bytes());
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{finished:?}");
    }

    /// Lets an agent's hook report the use of a tool that says `item-<number>`.
    #[track_caller]
    pub(crate) fn capture(&self, number: u32) {
        self.hook("post-tool-use", tool_use(number));
    }

    pub(crate) fn stats(&self) -> Value {
        self.ok(&["queue", "stats"])
    }

    /// Waits until so many items became observations, and gives the titles of all, newest first.
    #[track_caller]
    pub(crate) fn titles_when(&self, count: u64) -> Vec<String> {
        wait_until("observations are made", || self.stats()["done"] == count);
        let listed = self.ok(&["observation", "list", "--limit", "200"]);
        let found = listed["observations"].as_array().unwrap();
        found.iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
    }

    /// Has everything that waits done by a process of its own: nothing was lost.
    #[track_caller]
    pub(crate) fn finish(&self, count: u64) {
        self.model.behave(Behaviour::Good);
        self.ok(&["worker", "run", "--once"]);
        assert_eq!(self.stats()["done"], count);
    }
}

/// A use of a tool that says `item-<number>`.
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
