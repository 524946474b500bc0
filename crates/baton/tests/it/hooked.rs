//! The real binary as agents call it: what their hooks send, and short ways to see what came of it.
#![expect(clippy::print_stdout, reason = "what a test says is shown when it fails")]

use std::path::{Path, PathBuf};

use baton_testkit::binary::{Finished, Home};
use baton_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::served::with;

/// The chat of an agent, as it names it itself.
pub(crate) const CHAT: &str = "0f3b8a52-7a54-4b1c-9d0e-3f2f6f3a1c77";

/// A home in which hooks are called. Dropped in this order: the home, its database.
pub(crate) struct Hooked {
    pub(crate) home: Home,
    _database: Option<TestDatabase>,
}

impl Hooked {
    /// A home with a SQLite file to be.
    pub(crate) fn new() -> Self {
        Self::at(Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop"))
    }

    /// A home that is there already.
    pub(crate) const fn at(home: Home) -> Self {
        Self { home, _database: None }
    }

    /// A home on each kind of database in turn, saying which: the output of a failed test ends with it.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        let postgres = || {
            let database = TestDatabase::create()?;
            let home = Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop").on_postgres(&database.url);
            Some(Self { home, _database: Some(database) })
        };
        let sqlite = std::iter::once_with(|| Some(Self::new())).inspect(|_| println!("on SQLite"));
        let postgres = std::iter::once_with(postgres).inspect(|_| println!("on PostgreSQL"));
        sqlite.chain(postgres).flatten()
    }

    /// Calls a hook with any arguments and any input. Whatever they are, the agent is not failed.
    #[track_caller]
    pub(crate) fn call(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let finished = self.home.run_with_input(&[&["hook"], arguments].concat(), input);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished
    }

    /// Calls a hook that must have nothing to complain about; gives what the agent is told.
    #[track_caller]
    pub(crate) fn told(&self, event: &str, report: &Value) -> String {
        let finished = self.call(&[event], report.to_string().as_bytes());
        assert_eq!(finished.stderr, "", "{event}");
        finished.stdout
    }

    /// Calls a hook that must have nothing to complain about and nothing to tell.
    #[track_caller]
    pub(crate) fn hook(&self, event: &str, report: &Value) {
        assert_eq!(self.told(event, report), "", "{event}");
    }

    /// What Claude Code sends of an event, with fields added.
    pub(crate) fn claude(&self, event: &str, more: Value) -> Value {
        let transcript = format!("/home/dev/.claude/projects/-home-dev-shop/{CHAT}.jsonl");
        let report = json!({
            "session_id": CHAT, "transcript_path": transcript, "cwd": self.home.working_folder(),
            "permission_mode": "default", "hook_event_name": event,
        });
        with(report, more)
    }

    /// What Claude Code sends of a command that was run.
    pub(crate) fn bash(&self, command: &str, said: &str) -> Value {
        self.claude(
            "PostToolUse",
            json!({
                "tool_name": "Bash", "tool_input": { "command": command, "description": "Run it" },
                "tool_response": { "stdout": said, "stderr": "", "interrupted": false, "isImage": false },
            }),
        )
    }

    /// Runs a verb that must work, and gives its data.
    #[track_caller]
    pub(crate) fn data(&self, arguments: &[&str]) -> Value {
        let finished = self.home.run(&[arguments, &["--format", "json"]].concat());
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// How many items of the queue have come how far: raw, processing, done, error.
    #[track_caller]
    pub(crate) fn queue(&self) -> [u64; 4] {
        let stats = self.data(&["queue", "stats"]);
        ["raw", "processing", "done", "error"].map(|status| stats[status].as_u64().unwrap())
    }

    /// Does what a worker has to do now, and tells how many observations that made.
    #[track_caller]
    pub(crate) fn work(&self) -> u64 {
        let done = self.data(&["worker", "run", "--once"]);
        assert_eq!((&done["returned"], &done["given_up"]), (&0.into(), &0.into()));
        done["observations"].as_u64().unwrap()
    }

    /// The observations, newest first.
    #[track_caller]
    pub(crate) fn observations(&self) -> Vec<Value> {
        self.data(&["observation", "list", "--limit", "200"])["observations"].as_array().unwrap().clone()
    }

    /// An observation with its raw output.
    #[track_caller]
    pub(crate) fn raw(&self, observation: &Value) -> Value {
        self.data(&["observation", "show", observation["id"].as_str().unwrap(), "--raw"])
    }

    /// The sessions that are active, newest first.
    #[track_caller]
    pub(crate) fn sessions(&self) -> Vec<Value> {
        self.data(&["session", "list", "--venture", "local"])["sessions"].as_array().unwrap().clone()
    }

    /// What hooks wrote down of what went wrong, oldest first.
    pub(crate) fn troubles(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.data_dir().join("logs/hook.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The files of reports that could not be stored.
    pub(crate) fn spilled(&self) -> Vec<PathBuf> {
        files_below(&self.home.data_dir().join("spill/hooks"))
    }

    /// What `baton doctor` finds about hooks: how bad it is, and what it says.
    #[track_caller]
    pub(crate) fn diagnosis(&self) -> (String, String) {
        let told = self.home.run(&["doctor", "--format", "json"]).json();
        let findings = told["data"]["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["check"] == "hooks").unwrap();
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        (text("level"), text("message"))
    }

    /// Puts something in the place of the database that is none, and gives a way to put it back.
    pub(crate) fn break_database(&self) -> impl FnOnce() + use<> {
        let (database, away) = (self.home.data_dir().join("baton.db"), self.home.path().join("away.db"));
        std::fs::rename(&database, &away).unwrap();
        std::fs::write(&database, "this is no database, whatever it is called").unwrap();
        move || std::fs::rename(&away, &database).unwrap()
    }
}

/// Every file in a folder and below it.
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
