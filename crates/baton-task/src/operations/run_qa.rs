//! `task.run_qa`

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use baton_qa::{QaRun, QaStatus, read_log, status_by_exit_code};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::archive::require_context;
use crate::command::{CommandLine, Finished};
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::qa_recording::{QaRecording, RecordQaOutput};
use crate::rules::{QaCommand, QaResults};

/// Runs QA commands and records their exit codes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQa {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that runs the QA commands and holds the task, for example `implementer`.
    pub agent: Role,
    /// Command to run at the root of the checkout: one string for the shell, or a program and its arguments, for
    /// example `["cargo", "test"]`. Defaults to the QA commands of the task.
    #[serde(default)]
    pub command: Vec<String>,
    /// Record this as the baseline: the state before the first role's work. Later results are compared with it.
    /// Defaults to false.
    #[serde(default)]
    pub baseline: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the logs even if they appear to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

impl Operation<OnCheckout> for RunQa {
    const NAME: &'static str = "task.run_qa";
    const SUMMARY: &'static str = "Run the QA commands of the task, or the given command, and record exit \
        code, duration and log. The exit code decides whether the result is passed.";
    const EFFECT: Effect = Effect::Create;
    type Output = RecordQaOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let role = &params.agent;
        let context = require_context(environment, &params.task_id)?;
        let recording = QaRecording { task_id: &params.task_id, role, baseline: params.baseline };
        recording.check(environment, &context)?;
        // The tree is checked before the commands run: files that they write, such as coverage data, do not count.
        recording.check_tree(environment, &context, None)?;
        let lines = if params.command.is_empty() {
            let commands = &context.immutable.validation_baseline.commands;
            commands.iter().map(|command| CommandLine::Shell(command.clone())).collect()
        } else {
            vec![CommandLine::of(&params.command)]
        };
        if lines.is_empty() {
            let message = format!("{} has no QA commands", params.task_id);
            return Err(Fault::new(ErrorCode::InvalidRequest, message)
                .hint(format!("give one: baton task run-qa {} --agent {role} -- COMMAND", params.task_id)));
        }
        if let Some(line) = lines.iter().find(|line| line.is_empty()) {
            let message = format!("cannot run `{}`: it contains no command", line.text());
            return Err(Fault::new(ErrorCode::InvalidRequest, message)
                .hint(format!("give a command, or correct the QA commands in {}", context.task_file)));
        }
        // QA commands may take long, so the task is locked only to record the results.
        let context_path = environment.context_file(&params.task_id);
        let mut finished = Vec::new();
        for line in &lines {
            finished.push((line.text(), line.run(environment.root(), &context_path)?));
        }
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = recording.open(environment, &options)?;
        let results = results_of(&mut draft, &recording, finished)?;
        recording.store(draft, results)
    }
}

fn results_of(
    draft: &mut Draft<'_>,
    recording: &QaRecording<'_>,
    finished: Vec<(String, Finished)>,
) -> Result<QaResults, Fault> {
    let (mut commands, mut runs, mut reason) = (Vec::new(), Vec::new(), None);
    for (command, finished) in finished {
        let report = read_log(&String::from_utf8_lossy(&finished.output));
        let (status, warning) = status_by_exit_code(finished.exit_code, &report.runs);
        if let Some(warning) = warning {
            let warning = format!("`{command}`: {warning}");
            match status {
                QaStatus::Unknown => reason = reason.or(Some(warning)),
                _ => draft.warnings.push(warning),
            }
        }
        if finished.truncated {
            draft.warnings.push(format!("only the end of the output of `{command}` was stored"));
        }
        draft.scan().value("command", &serde_json::json!(command));
        draft.scan().bytes(&format!("output of `{command}`"), &finished.output);
        let log = recording.keep_log(draft, &finished.output)?;
        merge(&mut runs, report.runs);
        let (exit_code, duration_ms) = (finished.exit_code, finished.duration_ms);
        commands.push(QaCommand { command, exit_code, duration_ms, status, log });
    }
    let has = |wanted| commands.iter().any(|command: &QaCommand| command.status == wanted);
    let status = if has(QaStatus::Failed) {
        QaStatus::Failed
    } else if has(QaStatus::Unknown) {
        QaStatus::Unknown
    } else {
        QaStatus::Passed
    };
    Ok(QaResults {
        status,
        reason: reason.filter(|_| status == QaStatus::Unknown),
        log: commands.last().map(|command| command.log.clone()),
        runs,
        commands,
        ..QaResults::default()
    })
}

/// Adds up the results of commands that ran the same tool.
fn merge(all: &mut Vec<QaRun>, more: Vec<QaRun>) {
    for run in more {
        match all.iter_mut().find(|known| known.tool == run.tool) {
            Some(known) => known.merge(run),
            None => all.push(run),
        }
    }
}
