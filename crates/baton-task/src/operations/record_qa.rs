//! `task.record_qa`

use baton_core::Fault;
use baton_core::task::{Role, TaskId};
use baton_qa::{QaStatus, read_log, status_by_exit_code};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::draft::WriteOptions;
use crate::environment::TaskEnvironment;
use crate::named_file::{path_in_checkout, read_anywhere};
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::qa_recording::{QaRecording, RecordQaOutput};
use crate::rules::QaResults;

/// Records the log of QA commands that ran outside of Baton.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordQa {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that ran the QA commands and holds the task, for example `implementer`.
    pub agent: Role,
    /// Path of the log, absolute or relative to the root of the checkout. Omit it to send `content`.
    pub from: Option<String>,
    /// Text of the log, instead of `from`.
    pub content: Option<String>,
    /// Exit code of the command that wrote the log: 0 is `passed`, any other is `failed`. If omitted, the status is
    /// derived from the log, and a log that cannot be parsed completely is `unknown`.
    pub exit_code: Option<i32>,
    /// Record this as the baseline: the state before the first role's work. Later results are compared with it.
    /// Defaults to false.
    #[serde(default)]
    pub baseline: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the log even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

impl Operation<OnCheckout> for RecordQa {
    const NAME: &'static str = "task.record_qa";
    const SUMMARY: &'static str = "Record the log of tests, linters and type checkers: counts, failures and \
        changes since the baseline. Prefer task_run_qa, which also records exit codes.";
    const EFFECT: Effect = Effect::Create;
    type Output = RecordQaOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let (name, bytes) = match (&params.from, &params.content) {
            (Some(path), None) => (path.clone(), read_anywhere(environment.root(), "from", path)?),
            (None, Some(content)) => ("the log".to_owned(), content.clone().into_bytes()),
            _ => return Err(Fault::invalid("from", "give either a path or the content of a log")),
        };
        let recording =
            QaRecording { task_id: &params.task_id, role: &params.agent, baseline: params.baseline };
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = recording.open(environment, &options)?;
        let log = params.from.as_deref().and_then(|path| path_in_checkout(environment.root(), path));
        recording.check_tree(environment, &draft.context, log.as_deref())?;
        let report = read_log(&String::from_utf8_lossy(&bytes));
        let (status, reason) = match params.exit_code {
            Some(code) => match status_by_exit_code(code, &report.runs) {
                (QaStatus::Unknown, reason) => (QaStatus::Unknown, reason),
                (status, warning) => {
                    draft.warnings.extend(warning);
                    (status, None)
                }
            },
            None => (report.status, report.reason),
        };
        if let Some(reason) = &reason {
            let hint = if params.exit_code.is_some() { "" } else { "; give --exit-code, or use run-qa" };
            draft.warnings.push(format!("the result is unknown: {reason}{hint}"));
        }
        draft.scan().bytes(&name, &bytes);
        let log = Some(recording.keep_log(&mut draft, &bytes)?);
        let (runs, exit_code) = (report.runs, params.exit_code);
        recording.store(draft, QaResults { status, reason, exit_code, log, runs, ..QaResults::default() })
    }
}
