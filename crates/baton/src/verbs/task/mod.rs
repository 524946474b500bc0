//! `baton task …`: works on the files of the current checkout and needs no store and no server. If a store is
//! available, the state of the tasks is recorded in it.

mod args;
mod context_format;
mod describe;
mod index;
mod tools;

use std::io::Read;

use baton_core::{Fault, Operation, strip_control};
use baton_qa::QaStatus;
use baton_task::{
    AnyTaskOperation, AttachEvidence, CONTEXT_FILE, CompleteTask, GetContext, GetDiff, InitContext,
    ListTasks, MarkBlocked, OUTPUT_FOLDER, OnCheckout, PurgeContext, RebuildContext, RecordQa, ResolveDrift,
    RunQa, SnapshotWorktree, SweepContexts, UpdateAgent, VerifyWorktree, WriteNote, operation,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use args::{TaskCommand, WORKFLOW};
pub(crate) use tools::local_tools;

use self::args::EnvArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, warn};
use crate::tasks::Checkout;

/// Maximum size of a QA log on standard input.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn run(command: TaskCommand, config: &Config) -> Result<Answer, Failure> {
    let command = match command {
        TaskCommand::List(args) if args.everywhere => return index::everywhere(args, config),
        other => other,
    };
    let checkout = Checkout::open(config)?;
    let verb = Verb { checkout: &checkout, config };
    match command {
        TaskCommand::InitContext(args) => verb.answer::<InitContext>(&args, describe::initialized),
        TaskCommand::GetContext(args) => verb.answer::<GetContext>(&args, describe::context),
        TaskCommand::UpdateAgent(mut args) => {
            args.verb.status = args.verb.status.replace('-', "_");
            args.verb.qa_log = args.verb.qa_log.map(|path| checkout.path(&path));
            verb.answer::<UpdateAgent>(&args, describe::updated)
        }
        TaskCommand::MarkBlocked(args) => verb.answer::<MarkBlocked>(&args, |output| {
            format!("{} of {} is blocked", output.agent, output.task_id)
        }),
        TaskCommand::SnapshotWorktree(args) => verb.answer::<SnapshotWorktree>(&args, describe::snapshot),
        TaskCommand::VerifyWorktree(args) => verb.answer::<VerifyWorktree>(&args, |output| {
            let notices: String =
                output.notices.iter().map(|notice| format!("\n  {}", notice.message)).collect();
            let (number, role) = (output.snapshot, &output.expected_agent);
            format!("the working tree matches snapshot {number} of {role}{notices}")
        }),
        TaskCommand::GetDiff(mut args) => {
            args.verb.kind = args.verb.kind.replace('-', "_");
            let (output, data) = verb.call::<GetDiff>(&args)?;
            let text = output.content.unwrap_or(output.artifact.path);
            Ok(Answer { next: Some(output.next), ..Answer::new(&data, text)? })
        }
        TaskCommand::Env(args) => environment(&verb, &args),
        TaskCommand::RecordQa(mut args) => {
            match args.verb.from.take().as_deref() {
                Some("-") | None => args.verb.content = Some(standard_input()?),
                Some(path) => args.verb.from = Some(checkout.path(path)),
            }
            verb.answer::<RecordQa>(&args, describe::quality)
        }
        TaskCommand::RunQa(args) => {
            let (output, data) = verb.call::<RunQa>(&args)?;
            let text = describe::then(describe::quality(&output), &output.next);
            // The result is recorded either way; the exit code stops scripts that chain commands.
            let exit = if output.status == QaStatus::Passed { Exit::Ok } else { Exit::Failure };
            Ok(Answer { exit, ..Answer::new(&data, text)? })
        }
        TaskCommand::Note(args) => verb.answer::<WriteNote>(&args, |output| {
            format!("{} note of {} recorded", output.note.kind, output.note.agent)
        }),
        TaskCommand::AttachEvidence(mut args) => {
            args.verb.path = checkout.path(&args.verb.path);
            verb.answer::<AttachEvidence>(&args, |output| context_format::attached(&output.evidence))
        }
        TaskCommand::RebuildContext(args) => verb.answer::<RebuildContext>(&args, describe::rebuilt),
        TaskCommand::ResolveDrift(mut args) => {
            args.verb.restore = args.verb.restore.iter().map(|path| checkout.path(path)).collect();
            verb.answer::<ResolveDrift>(&args, describe::resolved)
        }
        TaskCommand::Complete(args) => verb.answer::<CompleteTask>(&args, |output| {
            let (id, path) = (&output.task_id, &output.archive_path);
            format!("{id} is complete; {path} is kept until {}", output.kept_until)
        }),
        TaskCommand::PurgeContext(args) => verb.answer::<PurgeContext>(&args, |output| {
            let what = if output.purged { "was purged" } else { "had nothing to purge" };
            format!("{} {what}", output.task_id)
        }),
        TaskCommand::SweepContexts(args) => verb.answer::<SweepContexts>(&args, describe::swept),
        TaskCommand::List(args) => {
            verb.answer::<ListTasks>(&ListTasks { archived: args.archived }, describe::list)
        }
    }
}

/// Returns the context of a task in the current checkout as text.
pub(crate) fn context_text(task: &str, config: &Config) -> Result<String, Failure> {
    let checkout = Checkout::open(config)?;
    let task_id = task.parse().map_err(|error| Fault::invalid("task_id", error))?;
    let output = baton_task::run(&checkout.environment, GetContext { task_id, role: None })?;
    Ok(describe::then(describe::context(&output), &output.next))
}

/// Prints the environment variables for agents as shell commands.
fn environment(verb: &Verb<'_>, args: &EnvArgs) -> Result<Answer, Failure> {
    let (output, _) = verb.call::<GetContext>(args)?;
    let task = &args.task;
    let root = verb.checkout.environment.root();
    let path = root.join(OUTPUT_FOLDER).join(task).join(CONTEXT_FILE).to_string_lossy().into_owned();
    let text = format!("export TASK_CONTEXT_PATH='{}'", path.replace('\'', r"'\''"));
    let data = json!({ "task_id": task, "variables": { "TASK_CONTEXT_PATH": path }, "next": output.next });
    Ok(Answer { next: Some(output.next), ..Answer::new(&data, text)? })
}

struct Verb<'a> {
    checkout: &'a Checkout,
    config: &'a Config,
}

impl Verb<'_> {
    /// Calls an operation, and formats its output with the next command of the workflow.
    fn answer<O: Operation<OnCheckout>>(
        &self,
        params: &impl Serialize,
        describe: impl FnOnce(&O::Output) -> String,
    ) -> Result<Answer, Failure> {
        let (output, data) = self.call::<O>(params)?;
        let text = describe::then(describe(&output), data["next"].as_str().unwrap_or_default());
        Answer::new(&data, text)
    }

    /// Calls an operation and returns its output, typed and as JSON.
    fn call<O: Operation<OnCheckout>>(&self, params: &impl Serialize) -> Result<(O::Output, Value), Failure> {
        let data = self.run(operation::<O>(), serde_json::to_value(params).map_err(unreadable)?)?;
        Ok((O::Output::deserialize(&data).map_err(unreadable)?, data))
    }

    /// Runs an operation, updates the index of tasks and prints the warnings.
    fn run(&self, operation: &AnyTaskOperation, mut params: Value) -> Result<Value, Failure> {
        if let Value::Object(members) = &mut params {
            members.retain(|_, value| !value.is_null());
        }
        let environment = &self.checkout.environment;
        let result = operation.call(environment, params.clone());
        if let Err(failure) = index::record(self.config, environment, operation, &params, &result) {
            warn(&format!("cannot update the task index: {}", failure.message));
        }
        let data = result?;
        for warning in data["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            warn(warning);
        }
        Ok(data)
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::internal(format!("cannot convert parameters or result: {error}"))
}

fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::internal(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let message = format!("standard input is longer than {MAX_INPUT_BYTES} bytes");
        return Err(Failure::new(Exit::Validation, "payload_too_large", message)
            .hint("pass only the end of the log, which has the results: tail -c 60M"));
    }
    // The parameters of a call reject control characters.
    Ok(strip_control(&String::from_utf8_lossy(&bytes)))
}
