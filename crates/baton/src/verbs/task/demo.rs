//! The task part of `baton demo`: a small checkout, two roles, and an unexpected edit between them.

use std::fs;
use std::io;
use std::path::Path;

use baton_core::Fault;
use baton_task::{
    InitContext, ResolveDrift, SnapshotWorktree, TaskEnvironment, TaskOperation, UpdateAgent, operation,
};
use serde_json::{Value, json};

use super::checkout::task_environment;
use super::describe;
use crate::exit::Exit;
use crate::output::Failure;

const TASK: &str = "TASK-0007";

/// Files of the checkout. A repository without commits is a few files, so git is not needed to create it.
const FILES: [(&str, &str); 5] = [
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"),
    ("src/login.rs", "pub fn login() {}\n"),
    ("standards/backend.md", "# Backend\n\n## Sessions\n\nA session ends when its user logs out.\n"),
    (
        "tasks/TASK-0007-logout.task.yaml",
        "title: Logout\nstatus: in_progress\npriority: P1\narea: backend\ndescription: Customers can log out.\n\
         scope: { in: [src/**] }\nacceptance_criteria: [The cookie is gone]\n\
         standards: [\"standards/backend.md#sessions\"]\nqa: { commands: [cargo test] }\n",
    ),
];

/// One step of the demo: the command and its result.
pub(crate) struct Step {
    pub(crate) operation: &'static str,
    pub(crate) command: String,
    pub(crate) text: String,
    pub(crate) output: Value,
}

/// Runs the steps in a temporary folder.
pub(crate) fn demo(folder: &Path) -> Result<Vec<Step>, Failure> {
    make(folder).map_err(|error| {
        Failure::new(Exit::Failure, "internal", format!("cannot create a temporary checkout: {error}"))
            .hint("set TMPDIR to a folder that can be written")
    })?;
    let environment = task_environment(folder, "demo");
    let edit = |text: &str| fs::write(folder.join("src/login.rs"), text).unwrap_or_default();
    let role = |agent: &str, status: &str| json!({ "task_id": TASK, "agent": agent, "status": status });
    let mut steps = vec![
        run_step::<InitContext>(
            &environment,
            "init-context TASK-0007",
            json!({ "task_id": TASK }),
            describe::initialized,
        )?,
        run_step::<UpdateAgent>(
            &environment,
            "update-agent TASK-0007 --agent implementer --status in_progress",
            role("implementer", "in_progress"),
            describe::updated,
        )?,
    ];
    edit("pub fn login() {}\n\npub fn logout() {}\n");
    steps.push(run_step::<SnapshotWorktree>(
        &environment,
        "snapshot-worktree TASK-0007 --agent implementer     # after the work",
        json!({ "task_id": TASK, "agent": "implementer" }),
        describe::snapshot,
    )?);
    steps.push(run_step::<UpdateAgent>(
        &environment,
        "update-agent TASK-0007 --agent implementer --status done",
        role("implementer", "done"),
        describe::updated,
    )?);
    edit("pub fn login() {}\n\npub fn logout() { todo!() }\n");
    steps.push(run_failing_step::<UpdateAgent>(
        &environment,
        "update-agent TASK-0007 --agent reviewer --status in_progress     # a file was edited meanwhile",
        role("reviewer", "in_progress"),
    )?);
    steps.push(run_step::<ResolveDrift>(
        &environment,
        "resolve-drift TASK-0007 --note 'I marked what is missing'",
        json!({ "task_id": TASK, "note": "I marked what is missing" }),
        describe::resolved,
    )?);
    steps.push(run_step::<UpdateAgent>(
        &environment,
        "update-agent TASK-0007 --agent reviewer --status in_progress",
        role("reviewer", "in_progress"),
        describe::updated,
    )?);
    Ok(steps)
}

fn make(folder: &Path) -> io::Result<()> {
    for part in [".git/objects", ".git/refs"] {
        fs::create_dir_all(folder.join(part))?;
    }
    for (path, text) in FILES {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn call<O: TaskOperation>(environment: &TaskEnvironment, params: Value) -> Result<Value, Fault> {
    operation::<O>().call(environment, params)
}

fn run_step<O: TaskOperation>(
    environment: &TaskEnvironment,
    command: &str,
    params: Value,
    describe: impl FnOnce(&O::Output) -> String,
) -> Result<Step, Failure> {
    let output = call::<O>(environment, params)?;
    let typed: O::Output = serde_json::from_value(output.clone()).map_err(|error| {
        Failure::new(Exit::Failure, "internal", format!("cannot parse the result: {error}"))
    })?;
    Ok(Step { operation: O::NAME, command: format!("baton task {command}"), text: describe(&typed), output })
}

/// Runs a step that is expected to fail.
fn run_failing_step<O: TaskOperation>(
    environment: &TaskEnvironment,
    command: &str,
    params: Value,
) -> Result<Step, Failure> {
    match call::<O>(environment, params) {
        Ok(answer) => {
            Err(Failure::new(Exit::Failure, "internal", format!("expected an error, got: {answer}")))
        }
        Err(fault) => Ok(Step {
            operation: O::NAME,
            command: format!("baton task {command}"),
            text: format!("refused with exit code {}: {}", Exit::from(fault.code) as u8, fault.message),
            output: json!({ "error": fault.code, "details": fault.details }),
        }),
    }
}
