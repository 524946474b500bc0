//! `baton task …`: works on the files of the current checkout and needs no store and no server. If a store is
//! available, the state of the tasks is recorded in it.

mod args;
mod checkout;
mod demo;
mod describe;
mod git_tree;
mod index;
mod tools;
mod view;

use std::io::Read;

use baton_core::ErrorCode;
use baton_core::task::qa::without_colours;
use baton_task::{
    AttachEvidence, CONTEXT_FILE, CompleteTask, GetContext, GetDiff, InitContext, ListTasks, MarkBlocked,
    OUTPUT_FOLDER, PurgeContext, RebuildContext, RecordQa, ResolveDrift, RunQa, SnapshotWorktree,
    SweepContexts, TaskOperation, UpdateAgent, VerifyWorktree, WriteNote, operation,
};
use serde_json::{Value, json};

pub(crate) use args::{TaskCommand, WORKFLOW};
pub(crate) use demo::demo;
pub(crate) use tools::local_tools;

use self::checkout::Checkout;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, warn};

/// Maximum size of a QA log on standard input.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn run(command: TaskCommand, config: &Config) -> Result<Answer, Failure> {
    if let TaskCommand::List(args) = &command
        && args.everywhere
    {
        return index::everywhere(args, config);
    }
    let checkout = Checkout::open(config)?;
    let verb = Verb { checkout: &checkout, config };
    match command {
        TaskCommand::InitContext(args) => verb.answer::<InitContext>(
            json!({ "task_id": args.task, "base_commit": args.base_commit, "truncate": args.truncate,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::initialized,
        ),
        TaskCommand::GetContext(args) => {
            verb.answer::<GetContext>(json!({ "task_id": args.task, "role": args.role }), describe::context)
        }
        TaskCommand::UpdateAgent(args) => verb.answer::<UpdateAgent>(
            json!({ "task_id": args.task, "agent": args.agent, "status": args.status.replace('-', "_"),
                "qa_log": args.qa_log.map(|path| checkout.path(&path)), "session_id": args.session_id,
                "without_snapshot": args.without_snapshot, "without_qa": args.without_qa,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::updated,
        ),
        TaskCommand::MarkBlocked(args) => verb.answer::<MarkBlocked>(
            json!({ "task_id": args.task, "agent": args.agent, "finding": args.finding,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            |output| describe::then(format!("{} of {} is blocked", output.agent, output.task_id), &output.next),
        ),
        TaskCommand::SnapshotWorktree(args) => verb.answer::<SnapshotWorktree>(
            json!({ "task_id": args.task, "agent": args.agent, "allow_clean": args.allow_clean,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::snapshot,
        ),
        TaskCommand::VerifyWorktree(args) => verb.answer::<VerifyWorktree>(
            json!({ "task_id": args.task, "expected_agent": args.expected_agent, "full": args.full, "actor": args.actor.actor }),
            |output| {
                let notices: String = output.notices.iter().map(|notice| format!("\n  {}", notice.message)).collect();
                let text = format!("the working tree matches snapshot {} of {}{notices}", output.snapshot, output.expected_agent);
                describe::then(text, &output.next)
            },
        ),
        TaskCommand::GetDiff(args) => verb.answer::<GetDiff>(
            json!({ "task_id": args.task, "agent": args.agent, "type": args.kind.replace('-', "_"), "content": args.content }),
            |output| output.content.clone().unwrap_or_else(|| output.artifact.path.clone()),
        ).map(Answer::with_next_on_stderr),
        TaskCommand::Env(args) => environment(&verb, &args.task),
        TaskCommand::RecordQa(args) => {
            let (from, content) = match args.from.as_str() {
                "-" => (None, Some(standard_input()?)),
                path => (Some(checkout.path(path)), None),
            };
            verb.answer::<RecordQa>(
                json!({ "task_id": args.task, "agent": args.agent, "from": from, "content": content,
                    "exit_code": args.exit_code, "baseline": args.baseline, "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
                describe::quality,
            )
        }
        TaskCommand::RunQa(args) => {
            let mut answer = verb.answer::<RunQa>(
                json!({ "task_id": args.task, "agent": args.agent, "command": args.command, "baseline": args.baseline,
                    "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
                describe::quality,
            )?;
            // The result is recorded either way; the exit code stops scripts that chain commands.
            if answer.data["status"] != "passed" {
                answer.exit = Exit::Failure;
            }
            Ok(answer)
        }
        TaskCommand::Note(args) => verb.answer::<WriteNote>(
            json!({ "task_id": args.task, "agent": args.agent, "text": args.text, "kind": args.kind,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            |output| {
                let text = format!("{} note of {} recorded", output.note.kind, output.note.agent);
                describe::then(text, &output.next)
            },
        ),
        TaskCommand::AttachEvidence(args) => verb.answer::<AttachEvidence>(
            json!({ "task_id": args.task, "type": args.kind, "path": checkout.path(&args.path), "lines": args.lines,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::evidence,
        ),
        TaskCommand::RebuildContext(args) => verb.answer::<RebuildContext>(
            json!({ "task_id": args.task, "truncate": args.truncate,
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::rebuilt,
        ),
        TaskCommand::ResolveDrift(args) => verb.answer::<ResolveDrift>(
            json!({ "task_id": args.task, "note": args.note, "restore_all": args.restore_all,
                "restore": args.restore.iter().map(|path| checkout.path(path)).collect::<Vec<_>>(),
                "actor": args.actor.actor, "force_secrets": args.secrets.force_secrets }),
            describe::resolved,
        ),
        TaskCommand::Complete(args) => verb.answer::<CompleteTask>(
            json!({ "task_id": args.task, "force": args.force, "actor": args.actor.actor }),
            |output| {
                let text =
                    format!("{} is complete; {} is kept until {}", output.task_id, output.archive_path, output.kept_until);
                describe::then(text, &output.next)
            },
        ),
        TaskCommand::PurgeContext(args) => {
            verb.answer::<PurgeContext>(json!({ "task_id": args.task, "actor": args.actor.actor }), |output| {
                let what = if output.purged { "was purged" } else { "had nothing to purge" };
                describe::then(format!("{} {what}", output.task_id), &output.next)
            })
        }
        TaskCommand::SweepContexts(args) => verb.answer::<SweepContexts>(
            json!({ "ttl": args.ttl, "all": args.all, "dry_run": args.dry_run, "actor": args.actor.actor }),
            describe::swept,
        ),
        TaskCommand::List(args) => verb.answer::<ListTasks>(json!({ "archived": args.archived }), describe::list),
    }
}

/// Prints the environment variables for agents as shell commands.
fn environment(verb: &Verb<'_>, task: &str) -> Result<Answer, Failure> {
    let answer = verb.answer::<GetContext>(json!({ "task_id": task }), |_| String::new())?;
    let root = verb.checkout.environment.root();
    let path = root.join(OUTPUT_FOLDER).join(task).join(CONTEXT_FILE).to_string_lossy().into_owned();
    let text = format!("export TASK_CONTEXT_PATH='{}'", path.replace('\'', r"'\''"));
    let data =
        json!({ "task_id": task, "variables": { "TASK_CONTEXT_PATH": path }, "next": answer.data["next"] });
    Ok(Answer::new(data, text).with_next_on_stderr())
}

struct Verb<'a> {
    checkout: &'a Checkout,
    config: &'a Config,
}

impl Verb<'_> {
    fn answer<O: TaskOperation>(
        &self,
        mut params: Value,
        describe: impl FnOnce(&O::Output) -> String,
    ) -> Result<Answer, Failure> {
        if let Value::Object(members) = &mut params {
            members.retain(|_, value| !value.is_null());
        }
        let result = operation::<O>().call(&self.checkout.environment, params.clone());
        let recorded =
            index::record(self.config, &self.checkout.environment, operation::<O>(), &params, &result);
        if let Err(failure) = recorded {
            warn(&format!("cannot update the task index: {}", failure.message));
        }
        let data = result.map_err(|mut fault| {
            if fault.code == ErrorCode::InvalidRequest && fault.hint.is_none() {
                let verb = O::NAME.trim_start_matches("task.").replace('_', "-");
                fault.hint = Some(format!("see baton task {verb} --help"));
            }
            fault
        })?;
        for warning in data["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            warn(warning);
        }
        let output: O::Output = serde_json::from_value(data.clone()).map_err(|error| {
            Failure::new(Exit::Failure, "internal", format!("cannot parse the result: {error}"))
        })?;
        Ok(Answer::new(data, describe(&output)))
    }
}

fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        Failure::new(Exit::Failure, "internal", format!("cannot read standard input: {error}"))
    })?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let message = format!("standard input is longer than {MAX_INPUT_BYTES} bytes");
        return Err(Failure::new(Exit::Validation, "payload_too_large", message)
            .hint("pass only the end of the log, which has the results: tail -c 60M"));
    }
    // Colours and control characters are removed; the parameters of a call reject control characters.
    let text = without_colours(&String::from_utf8_lossy(&bytes));
    Ok(text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')).collect())
}
