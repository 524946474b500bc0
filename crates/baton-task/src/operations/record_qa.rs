//! `task.record_qa`

use baton_core::task::qa::{QaComparison, QaRun, QaStatus, compare_runs, read_log};
use baton_core::task::{QaResults, Role, TaskId, canonical_line};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact::Compress;
use crate::folder::{Draft, Writing};
use crate::gather::task_file_is_unchanged;
use crate::inside::read_inside;
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// Records what quality checks came to.
#[derive(Debug)]
pub struct RecordQa;

/// What [`RecordQa`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordQaParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// The role that ran them.
    pub agent: Role,
    /// The log, from the root of the checkout; or send it as `content`.
    #[serde(default)]
    pub from: Option<String>,
    /// The log itself, in place of `from`.
    #[serde(default)]
    pub content: Option<String>,
    /// Who acts.
    #[serde(default)]
    pub actor: Option<String>,
    /// Write it although it looks like it holds a credential; that is recorded.
    #[serde(default)]
    pub force_secrets: bool,
}

/// What [`RecordQa`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordQaOutput {
    /// The task.
    pub task_id: TaskId,
    /// The role.
    pub agent: Role,
    /// What it came to.
    pub status: QaStatus,
    /// What each tool said.
    pub runs: Vec<QaRun>,
    /// Where the log is kept.
    pub qa_log_path: String,
    /// Whether this is the baseline that later runs are compared with.
    pub is_baseline: bool,
    /// What differs from the baseline; `null` when this is it or there is none yet.
    pub compared_with_baseline: Option<QaComparison>,
    /// The revision of the frozen part.
    pub immutable_revision: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl TaskOperation for RecordQa {
    const NAME: &'static str = "task.record_qa";
    const SUMMARY: &'static str = "Record the output of tests, linters and type checkers: counts, failures, and what changed since the baseline";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = false;
    type Params = RecordQaParams;
    type Output = RecordQaOutput;

    fn run(place: &TaskPlace, params: &RecordQaParams) -> Result<RecordQaOutput, Fault> {
        let (name, bytes) = match (&params.from, &params.content) {
            (Some(path), None) => {
                let read = read_inside(place.root(), "from", path).map_err(|fault| match fault.code {
                    ErrorCode::InvalidRequest if fault.hint.is_none() => {
                        fault.hint("only files of the checkout are read; pipe any other in with --from -")
                    }
                    _ => fault,
                })?;
                (read.path, read.bytes)
            }
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
        draft.context.role(role)?;
        draft.context.require_no_drift()?;
        if !task_file_is_unchanged(place, &draft.context) {
            return Err(Fault::new(
                ErrorCode::TaskConflict,
                format!("{} changed after the context was made", draft.context.task_file),
            )
            .hint(format!("take it over first: baton task rebuild-context {}", params.task_id)));
        }
        let report = read_log(&String::from_utf8_lossy(&bytes));
        if report.status == QaStatus::Unknown {
            let what = if bytes.trim_ascii().is_empty() {
                "the log is empty"
            } else {
                "no known tool was recognised in the log"
            };
            draft.warnings.push(format!("{what}; it is kept without counts and is no baseline"));
        }
        // Whoever reads of a finding knows the file that was given, not the one that would be kept.
        draft.scan().bytes(&name, &bytes);
        let log = draft.keep(&format!("{role}-qa"), "log", &bytes, Compress::WhenLarge)?;
        let qa_log_path = log.path.clone();
        let results = QaResults {
            status: report.status,
            recorded_at: Some(draft.now),
            recorded_by: Some(role.clone()),
            log: Some(log),
            runs: report.runs.clone(),
        };
        let baseline = draft.context.immutable.validation_baseline.initial_results.clone();
        // What nobody understood is nothing to compare with.
        let has_baseline = !matches!(baseline.status, QaStatus::Pending | QaStatus::Unknown);
        let is_baseline = !has_baseline && report.status != QaStatus::Unknown;
        if is_baseline {
            set_baseline(&mut draft, results.clone())?;
        }
        let state = draft.context.role_mut(role)?;
        state.qa_log_path = Some(qa_log_path.clone());
        state.qa_results = Some(results);
        let (context, warnings) = draft.save()?;
        Ok(RecordQaOutput {
            task_id: context.task_id,
            agent: role.clone(),
            status: report.status,
            compared_with_baseline: has_baseline.then(|| compare_runs(&baseline.runs, &report.runs)),
            runs: report.runs,
            qa_log_path,
            is_baseline,
            immutable_revision: context.immutable_revision.number,
            warnings,
        })
    }
}

/// Makes the first results that a tool was recognised in the baseline: a new revision of the frozen part, the one before is kept.
fn set_baseline(draft: &mut Draft<'_>, results: QaResults) -> Result<(), Fault> {
    let mut next = draft.context.immutable.clone();
    next.validation_baseline.initial_results = results;
    replace_immutable(draft, next, "record_qa")
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
