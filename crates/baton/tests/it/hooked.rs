//! Test home for hooks: the reports that agents send, and helpers to inspect the results.
#![expect(clippy::print_stdout, reason = "the output is shown when a test fails")]

use std::path::{Path, PathBuf};

use baton_testkit::binary::{Finished, Home};
use baton_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::served::with;

/// Chat id assigned by the agent.
pub(crate) const CHAT: &str = "0f3b8a52-7a54-4b1c-9d0e-3f2f6f3a1c77";

/// Home in which hooks are called. The home is dropped before its database.
pub(crate) struct Hooked {
    pub(crate) home: Home,
    _database: Option<TestDatabase>,
}

impl Hooked {
    /// Creates a home that uses SQLite.
    pub(crate) fn new() -> Self {
        Self::at(Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop"))
    }

    /// Uses an existing home.
    pub(crate) const fn at(home: Home) -> Self {
        Self { home, _database: None }
    }

    /// Creates a home with each kind of database in turn and prints the kind, so that a failed test shows it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let postgres = || {
            let database = TestDatabase::with_schema()?;
            let home = Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop").on_postgres(&database.url);
            Some(Self { home, _database: Some(database) })
        };
        let sqlite = std::iter::once_with(|| Some(Self::new())).inspect(|_| println!("on SQLite"));
        let postgres = std::iter::once_with(postgres).inspect(|_| println!("on PostgreSQL"));
        sqlite.chain(postgres).flatten()
    }

    /// Calls a hook with any arguments and input; it must exit with 0.
    #[track_caller]
    pub(crate) fn call(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let finished = self.home.run_with_input(&[&["hook"], arguments].concat(), input);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished
    }

    /// Calls a hook that must print nothing on standard error, and returns its response to the agent.
    #[track_caller]
    pub(crate) fn response(&self, event: &str, report: &Value) -> String {
        let finished = self.call(&[event], report.to_string().as_bytes());
        assert_eq!(finished.stderr, "", "{event}");
        finished.stdout
    }

    /// Calls a hook that must print nothing.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, report: &Value) {
        assert_eq!(self.response(event, report), "", "{event}");
    }

    /// Returns a report of Claude Code for an event, with additional fields.
    pub(crate) fn claude(&self, event: &str, more: Value) -> Value {
        let transcript = format!("/home/dev/.claude/projects/-home-dev-shop/{CHAT}.jsonl");
        let report = json!({
            "session_id": CHAT, "transcript_path": transcript, "cwd": self.home.working_folder(),
            "permission_mode": "default", "hook_event_name": event,
        });
        with(report, more)
    }

    /// Returns a report of Claude Code for a shell command.
    pub(crate) fn bash(&self, command: &str, stdout: &str) -> Value {
        self.claude(
            "PostToolUse",
            json!({
                "tool_name": "Bash", "tool_input": { "command": command, "description": "Run it" },
                "tool_response": { "stdout": stdout, "stderr": "", "interrupted": false, "isImage": false },
            }),
        )
    }

    /// Runs a verb that must succeed and returns its data.
    #[track_caller]
    pub(crate) fn data(&self, arguments: &[&str]) -> Value {
        let finished = self.home.run(&[arguments, &["--format", "json"]].concat());
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// Returns the number of queue items per status: raw, processing, done, error.
    #[track_caller]
    pub(crate) fn queue(&self) -> [u64; 4] {
        let stats = self.data(&["queue", "stats"]);
        ["raw", "processing", "done", "error"].map(|status| stats[status].as_u64().unwrap())
    }

    /// Runs the worker once and returns the number of new observations.
    #[track_caller]
    pub(crate) fn work(&self) -> u64 {
        let done = self.data(&["worker", "run", "--once"]);
        assert_eq!((&done["returned"], &done["given_up"]), (&0.into(), &0.into()));
        done["observations"].as_u64().unwrap()
    }

    /// Returns the observations, newest first.
    #[track_caller]
    pub(crate) fn observations(&self) -> Vec<Value> {
        self.data(&["observation", "list", "--limit", "200"])["observations"].as_array().unwrap().clone()
    }

    /// Returns an observation with its raw output.
    #[track_caller]
    pub(crate) fn raw(&self, observation: &Value) -> Value {
        self.data(&["observation", "show", observation["id"].as_str().unwrap(), "--raw"])
    }

    /// Returns the active sessions, newest first.
    #[track_caller]
    pub(crate) fn sessions(&self) -> Vec<Value> {
        self.data(&["session", "list", "--venture", "local"])["sessions"].as_array().unwrap().clone()
    }

    /// Returns the errors that hooks logged, oldest first.
    pub(crate) fn troubles(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.data_dir().join("logs/hook.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the files of reports in the outbox.
    pub(crate) fn spilled(&self) -> Vec<PathBuf> {
        files_below(&self.home.data_dir().join("spill/hooks"))
    }

    /// Returns level and message of the hooks finding of `baton doctor`.
    #[track_caller]
    pub(crate) fn diagnosis(&self) -> (String, String) {
        let report = self.home.run(&["doctor", "--format", "json"]).json();
        let findings = report["data"]["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["check"] == "hooks").unwrap();
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        (text("level"), text("message"))
    }

    /// Replaces the database with an invalid file and returns a function that restores it.
    pub(crate) fn break_database(&self) -> impl FnOnce() + use<> {
        let (database, away) = (self.home.data_dir().join("baton.db"), self.home.path().join("away.db"));
        std::fs::rename(&database, &away).unwrap();
        std::fs::write(&database, "this is no database, whatever it is called").unwrap();
        move || std::fs::rename(&away, &database).unwrap()
    }
}

/// Returns all files below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
