//! `task.record_qa`

use baton_core::task::qa::{QaComparison, QaRun, QaStatus, compare_runs, read_log, status_by_exit_code};
use baton_core::task::{QaCommand, QaResults, Role, TaskContext, TaskId, canonical_line};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact::Compress;
use crate::folder::{Draft, Writing};
use crate::gather::task_file_is_unchanged;
use crate::inside::read_anywhere;
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// Records the log of quality checks that ran outside of Baton.
#[derive(Debug)]
pub struct RecordQa;

/// Parameters of [`RecordQa`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordQaParams {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that ran the checks and holds the task, for example `implementer`.
    pub agent: Role,
    /// Path of the log, absolute or relative to the root of the checkout. Omit it to send `content`.
    #[serde(default)]
    pub from: Option<String>,
    /// The log itself, instead of `from`.
    #[serde(default)]
    pub content: Option<String>,
    /// Exit code of the command that wrote the log: 0 is `passed`, any other is `failed`. Without it the log decides, and a
    /// log that is not understood completely is `unknown`.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Record this as the baseline: the state before the first role's work, which later results are compared with.
    #[serde(default)]
    pub baseline: bool,
    /// Actor who records it.
    #[serde(default)]
    pub actor: Option<String>,
    /// Store the log even if it looks like it holds a secret (recorded in the audit).
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of [`RecordQa`] and [`RunQa`](super::RunQa).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordQaOutput {
    /// Task id.
    pub task_id: TaskId,
    /// Role.
    pub agent: Role,
    /// Result.
    pub status: QaStatus,
    /// Why the status is `unknown`.
    pub reason: Option<String>,
    /// Exit code that was given with a log.
    pub exit_code: Option<i32>,
    /// Commands that were run, with exit code and duration.
    pub commands: Vec<QaCommand>,
    /// Results of each tool.
    pub runs: Vec<QaRun>,
    /// Path of the stored log; of several, the last.
    pub qa_log_path: String,
    /// True if this is the baseline that later results are compared with.
    pub is_baseline: bool,
    /// Differences from the baseline; `null` when this is the baseline or there is none.
    pub compared_with_baseline: Option<QaComparison>,
    /// Revision of the frozen part.
    pub immutable_revision: u64,
    /// Command that continues the task.
    pub next: String,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl TaskOperation for RecordQa {
    const NAME: &'static str = "task.record_qa";
    const SUMMARY: &'static str = "Record the log of tests, linters and type checkers: counts, failures, and what changed since the baseline. Prefer task_run_qa, which also records exit codes";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = false;
    type Params = RecordQaParams;
    type Output = RecordQaOutput;

    fn run(place: &TaskPlace, params: &RecordQaParams) -> Result<RecordQaOutput, Fault> {
        let (name, bytes) = match (&params.from, &params.content) {
            (Some(path), None) => (path.clone(), read_anywhere(place.root(), "from", path)?),
            (None, Some(content)) => ("the log".to_owned(), content.clone().into_bytes()),
            _ => return Err(Fault::invalid("from", "give either a path or the content of a log")),
        };
        let writing = Writing {
            verb: "record-qa",
            actor: params.actor.as_deref(),
            force_secrets: params.force_secrets,
        };
        let mut draft = Draft::open(place, &params.task_id, &writing)?;
        let role = &params.agent;
        require_recordable(place, &draft.context, role, params.baseline)?;
        if !params.baseline {
            let now = draft.now;
            draft.context.hold(role, now)?;
        }
        let report = read_log(&String::from_utf8_lossy(&bytes));
        let (status, reason) = match params.exit_code {
            Some(code) => {
                let (status, warning) = status_by_exit_code(code, &report.runs);
                let reason = warning.clone().filter(|_| status == QaStatus::Unknown);
                draft.warnings.extend(warning.filter(|_| status != QaStatus::Unknown));
                (status, reason)
            }
            None => (report.status, report.reason),
        };
        if let Some(reason) = &reason {
            let hint = if params.exit_code.is_some() { "" } else { "; give --exit-code, or use run-qa" };
            draft.warnings.push(format!("the result is unknown: {reason}{hint}"));
        }
        draft.scan().bytes(&name, &bytes);
        let log = draft.keep(&format!("{role}-qa"), "log", &bytes, Compress::WhenLarge)?;
        let results = QaResults {
            status,
            recorded_at: Some(draft.now),
            recorded_by: Some(role.clone()),
            log: Some(log),
            runs: report.runs,
            exit_code: params.exit_code,
            commands: Vec::new(),
            reason,
            actor: Some(draft.actor.clone()),
        };
        store(draft, role, results, params.baseline)
    }
}

/// Refuses to record a result for a role that does not hold the task, while a drift is open, after the task file changed,
/// or a baseline after work began.
pub(crate) fn require_recordable(
    place: &TaskPlace,
    context: &TaskContext,
    role: &Role,
    baseline: bool,
) -> Result<(), Fault> {
    context.role(role)?;
    context.require_no_drift()?;
    let id = &context.task_id;
    if !task_file_is_unchanged(place, context) {
        let message = format!("{} changed after the context was made", context.task_file);
        return Err(Fault::new(ErrorCode::TaskConflict, message)
            .hint(format!("take the change over first: baton task rebuild-context {id}")));
    }
    if !baseline {
        return if context.may_begin_silently(role) { Ok(()) } else { context.require_holder(role) };
    }
    if context.pipeline.first() != Some(role) {
        let first = context.pipeline.first().map_or("the first role", Role::as_str);
        let message = format!("cannot record the baseline as {role}: only {first} works before any change");
        return Err(Fault::new(ErrorCode::TaskConflict, message)
            .hint("leave --baseline out to record the result of this role"));
    }
    let worked = context.last_holder.as_ref().is_some_and(|last| context.holder() != Some(last));
    let edited = place.tree().is_dirty()? && !context.git.dirty_at_init;
    let why = if let Some(snapshot) = context.latest_snapshot() {
        format!("{} has snapshot {} already", id, snapshot.sequence)
    } else if worked {
        format!("a role has worked on {id} already")
    } else if edited {
        "tracked files are modified already".to_owned()
    } else {
        return Ok(());
    };
    Err(Fault::new(ErrorCode::TaskConflict, format!("cannot record the baseline: {why}"))
        .hint("the baseline is the state before the first role's work; leave --baseline out to record a later result"))
}

/// Puts results on record for a role or as the baseline, and saves.
pub(crate) fn store(
    mut draft: Draft<'_>,
    role: &Role,
    results: QaResults,
    is_baseline: bool,
) -> Result<RecordQaOutput, Fault> {
    let baseline = draft.context.immutable.validation_baseline.initial_results.clone();
    let has_baseline = !is_baseline && baseline.status != QaStatus::Pending;
    let qa_log_path = results.log.as_ref().map(|log| log.path.clone()).unwrap_or_default();
    if is_baseline {
        let mut next = draft.context.immutable.clone();
        next.validation_baseline.initial_results = results.clone();
        replace_immutable(&mut draft, next, "record_qa")?;
    } else {
        let actor = draft.actor.clone();
        let state = draft.context.role_mut(role)?;
        state.qa_log_path = Some(qa_log_path.clone());
        state.qa_results = Some(results.clone());
        state.actor = Some(actor);
    }
    let compared = has_baseline.then(|| compare_runs(&baseline.runs, &results.runs));
    if let Some(missing) =
        compared.as_ref().map(|compared| &compared.missing_tools).filter(|list| !list.is_empty())
    {
        draft.warnings.push(format!("in the baseline and not in this result: {}", missing.join(", ")));
    }
    let (context, warnings) = draft.save()?;
    Ok(RecordQaOutput {
        next: context.next_command(),
        task_id: context.task_id,
        agent: role.clone(),
        status: results.status,
        reason: results.reason,
        exit_code: results.exit_code,
        commands: results.commands,
        runs: results.runs,
        qa_log_path,
        is_baseline,
        compared_with_baseline: compared,
        immutable_revision: context.immutable_revision.number,
        warnings,
    })
}

/// Puts a new revision in the place of the frozen part and keeps the one before.
pub(crate) fn replace_immutable(
    draft: &mut Draft<'_>,
    next: baton_core::task::Immutable,
    reason: &str,
) -> Result<(), Fault> {
    let number = draft.context.immutable_revision.number;
    let value = serde_json::to_value(&draft.context.immutable)
        .map_err(|error| Fault::new(ErrorCode::Internal, "the context cannot be written").caused_by(error))?;
    let past = draft.keep(
        &format!("immutable-r{number}"),
        "json",
        canonical_line(&value)?.as_bytes(),
        Compress::Always,
    )?;
    let (now, actor) = (draft.now, draft.actor.clone());
    draft.context.revise(next, past, reason, now, &actor)
}
