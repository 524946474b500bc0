//! Test repository in its own home folder, with tasks, and helpers that run the real binary on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_testkit::binary::{Finished, Home};
use serde_json::Value;

pub(crate) const TASK: &str = "TASK-0824";

const TASK_FILE: &str = "\
title: Faster settings
status: in_progress
priority: P1
area: backend
description: |
  Make it faster.
scope:
  in:
    - src/**/*.rs
acceptance_criteria:
  - It is faster
standards:
  - standards/backend.md#layering-rules
qa:
  commands:
    - cargo test
";

const GIT_CONFIG: &str = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n\
                          [gc]\n\tauto = 0\n[protocol \"file\"]\n\tallow = always\n";

pub(crate) struct Checkout {
    pub(crate) home: Home,
}

impl Checkout {
    /// Creates a repository with a commit and a task in progress.
    pub(crate) fn new() -> Self {
        let checkout = Self::unborn();
        checkout.commit();
        checkout
    }

    /// Creates a repository before its first commit.
    pub(crate) fn unborn() -> Self {
        Self::unborn_in(Home::new(env!("CARGO_BIN_EXE_baton")))
    }

    /// Refers to the checkout in a home, which need not exist.
    pub(crate) fn at(home: Home) -> Self {
        Self { home: home.with("GIT_CONFIG_NOSYSTEM", "1").working_in("shop") }
    }

    /// Creates a repository before its first commit in the given home.
    pub(crate) fn unborn_in(home: Home) -> Self {
        let checkout = Self::at(home);
        let home = &checkout.home;
        fs::write(home.path().join(".gitconfig"), GIT_CONFIG).unwrap();
        checkout.git(&["init", "--quiet"]);
        checkout.write(".gitignore", ".agent-output/\n");
        checkout.write("tasks/TASK-0824-settings.task.yaml", TASK_FILE);
        checkout.write("tasks/TASK-0825-other.task.yaml", TASK_FILE);
        checkout.write("standards/backend.md", "# Backend\n\n## Layering Rules\n\nLayers point down.\n");
        checkout.write("src/main.rs", "fn main() {}\n");
        checkout.write("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n\npub fn two() -> u32 {\n    2\n}\n");
        checkout.write("README.md", "Read me\n");
        checkout
    }

    /// Creates a repository whose task has a context.
    pub(crate) fn with_context() -> Self {
        let checkout = Self::new();
        checkout.task(&["init-context", TASK]);
        checkout
    }

    /// Creates a repository whose task the implementer has finished.
    pub(crate) fn implemented() -> Self {
        let checkout = Self::with_context();
        checkout.work("implementer", "fn main() {\n    println!(\"fast\");\n}\n");
        checkout
    }

    pub(crate) fn root(&self) -> &Path {
        self.home.working_folder()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git in the checkout; it must succeed.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
    }

    /// Runs `baton task …` with JSON output and returns the result, success or failure.
    pub(crate) fn try_task(&self, arguments: &[&str]) -> Finished {
        self.home.run(&[&["task"], arguments, &["--format", "json"]].concat())
    }

    /// Runs `baton task …`, which must succeed, and returns its data.
    pub(crate) fn task(&self, arguments: &[&str]) -> Value {
        let finished = self.try_task(arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {} {}", finished.stdout, finished.stderr);
        let answer = finished.json();
        assert_eq!((&answer["success"], &answer["error"]), (&Value::Bool(true), &Value::Null));
        answer["data"].clone()
    }

    /// Runs `baton task …`, which must fail with this exit code, and returns the error.
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> Value {
        let finished = self.try_task(arguments);
        assert_eq!(finished.code, code, "{arguments:?}: {} {}", finished.stdout, finished.stderr);
        let answer = finished.json();
        assert_eq!((&answer["success"], &answer["data"]), (&Value::Bool(false), &Value::Null));
        answer["error"].clone()
    }

    pub(crate) fn update(&self, role: &str, status: &str) -> Value {
        self.task(&["update-agent", TASK, "--agent", role, "--status", status, "--without-qa"])
    }

    pub(crate) fn snapshot(&self, role: &str) -> Value {
        self.task(&["snapshot-worktree", TASK, "--agent", role, "--actor", "agent-1"])["snapshot"].clone()
    }

    /// Works as a role: acquires the task, writes `src/main.rs`, records a snapshot and finishes.
    pub(crate) fn work(&self, role: &str, text: &str) {
        self.update(role, "in_progress");
        self.write("src/main.rs", text);
        self.snapshot(role);
        self.update(role, "done");
    }

    pub(crate) fn context(&self) -> Value {
        self.task(&["get-context", TASK])["context"].clone()
    }
}
