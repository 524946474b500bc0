//! Test checkout with a task, a standard and some code.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault, Timestamp};
use baton_task::rules::TaskContext;
use baton_task::{AnyTaskOperation, TaskEnvironment, catalog};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::walked_tree::WalkedTree;

pub(crate) const TASK: &str = "TASK-0824";

pub(crate) const TASK_FILE: &str = "\
id: TASK-0824
title: Faster settings
status: in_progress
priority: P1
area: backend
owner: somebody
description: |
  Make it
  faster.
scope:
  in:
    - src/**/*.rs
    - docs/settings.md
  out:
    - the mobile app
acceptance_criteria:
  - It is faster
standards:
  - standards/backend.md#layering-rules
qa:
  commands:
    - cargo test
";

pub(crate) const STANDARD: &str =
    "# Backend\n\n## Layering Rules\n\nLayers point down. Always.\n\n## Other\n\nMore.\n";

/// A checkout with a manual clock.
pub(crate) struct Checkout {
    folder: TempDir,
    clock: Arc<AtomicI64>,
    pub(crate) environment: TaskEnvironment,
    pub(crate) tree: WalkedTree,
}

pub(crate) fn environment_at(root: &Path, clock: Arc<AtomicI64>) -> TaskEnvironment {
    TaskEnvironment::new(
        root,
        WalkedTree::at(root),
        move || Timestamp::from_millis(clock.load(Ordering::Relaxed)),
        "tester",
    )
}

impl Checkout {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let clock = Arc::new(AtomicI64::new(1_800_000_000_000));
        let tree = WalkedTree::at(root);
        let environment = environment_at(root, Arc::clone(&clock));
        let checkout = Self { tree, clock, environment, folder };
        checkout.write("tasks/open/TASK-0824-settings.task.yaml", TASK_FILE);
        checkout.write("standards/backend.md", STANDARD);
        checkout.write("src/main.rs", "fn main() {}\n");
        checkout.write("README.md", "Read me\n");
        checkout.tree.commit();
        checkout
    }

    /// Creates a checkout whose task has a context.
    pub(crate) fn with_context() -> Self {
        let checkout = Self::new();
        checkout.call("init_context", json!({ "task_id": TASK }));
        checkout
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn advance_clock(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    pub(crate) fn try_call(&self, name: &str, params: Value) -> Result<Value, Fault> {
        find(name).call(&self.environment, params)
    }

    /// Calls an operation that must succeed.
    pub(crate) fn call(&self, name: &str, params: Value) -> Value {
        self.try_call(name, params).unwrap_or_else(|fault| panic!("{name}: {fault:?}"))
    }

    /// Calls an operation that must fail, and returns the fault.
    pub(crate) fn refused(&self, name: &str, params: Value) -> Fault {
        match self.try_call(name, params) {
            Ok(answer) => panic!("{name} was not refused: {answer}"),
            Err(fault) => fault,
        }
    }

    pub(crate) fn code(&self, name: &str, params: Value) -> ErrorCode {
        self.refused(name, params).code
    }

    pub(crate) fn update(&self, role: &str, status: &str) -> Value {
        let params = json!({ "task_id": TASK, "agent": role, "status": status, "without_qa": true });
        self.call("update_agent", params)
    }

    pub(crate) fn snapshot(&self, role: &str) -> Value {
        self.call("snapshot_worktree", json!({ "task_id": TASK, "agent": role, "actor": "agent-1" }))
    }

    /// Works as a role: acquires the task, writes a file, records a snapshot and finishes.
    pub(crate) fn work(&self, role: &str, path: &str, text: &str) {
        self.update(role, "in_progress");
        self.write(path, text);
        self.snapshot(role);
        self.update(role, "done");
    }

    pub(crate) fn context(&self) -> TaskContext {
        context_at(self.root(), TASK)
    }
}

/// Reads a context and checks that all files that it refers to exist.
pub(crate) fn read_with_artifacts(root: &Path, task: &str) -> TaskContext {
    let path = format!(".agent-output/{task}/context.json");
    let context = TaskContext::from_document(&fs::read(root.join(&path)).unwrap(), &path).unwrap();
    let artifacts = context.artifacts().into_iter().map(|artifact| &artifact.path);
    for path in artifacts.chain(context.snapshots.iter().map(|snapshot| &snapshot.diff_from_base)) {
        assert!(root.join(path).is_file(), "{path}");
    }
    context
}

/// Reads a context and verifies the hashes of its artifacts.
pub(crate) fn context_at(root: &Path, task: &str) -> TaskContext {
    let context = read_with_artifacts(root, task);
    for artifact in context.artifacts() {
        let stored = fs::read(root.join(&artifact.path)).unwrap();
        assert_eq!(baton_core::Sha256Hash::of(&stored), artifact.stored_sha256, "{}", artifact.path);
    }
    assert_eq!(context.task_id, task.parse::<TaskId>().unwrap());
    context
}

pub(crate) fn find(name: &str) -> &'static AnyTaskOperation {
    let wire = format!("task.{name}");
    catalog().into_iter().find(|operation| operation.name == wire).unwrap_or_else(|| panic!("no {wire}"))
}
