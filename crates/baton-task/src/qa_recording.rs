//! Recording of QA results, shared by `run-qa` and `record-qa`.

use std::collections::BTreeSet;

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use baton_qa::{QaComparison, QaRun, QaStatus, compare_runs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact::Compress;
use crate::checkout_state::checkout_state;
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::gather::task_file_is_unchanged;
use crate::rules::{Artifact, Immutable, QaCommand, QaResults, TaskContext, canonical_line, unwritable};
use crate::snapshot::list;

/// Output of `task.record_qa` and `task.run_qa`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordQaOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub agent: Role,
    /// Result of the log: `passed`, `failed` or `unknown`.
    pub status: QaStatus,
    /// Reason for the status `unknown`.
    pub reason: Option<String>,
    /// Exit code that was passed with a log.
    pub exit_code: Option<i32>,
    /// Commands that were run, with exit code and duration.
    pub commands: Vec<QaCommand>,
    /// Results of each tool.
    pub runs: Vec<QaRun>,
    /// Path of the stored log; with several commands, the last log.
    pub qa_log_path: String,
    /// True if this is the baseline that later results are compared with.
    pub is_baseline: bool,
    /// Differences from the baseline; null for a baseline or without one.
    pub compared_with_baseline: Option<QaComparison>,
    /// Revision of the frozen part.
    pub immutable_revision: u64,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

/// A result that is going to be recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QaRecording<'a> {
    pub(crate) task_id: &'a TaskId,
    pub(crate) role: &'a Role,
    /// True if the result describes the state before the first role's work.
    pub(crate) baseline: bool,
}

impl QaRecording<'_> {
    /// Opens the task and acquires it for the role, unless the result is the baseline.
    pub(crate) fn open<'a>(
        &self,
        environment: &'a TaskEnvironment,
        options: &WriteOptions<'_>,
    ) -> Result<Draft<'a>, Fault> {
        let mut draft = Draft::open(environment, self.task_id, options)?;
        self.check(environment, &draft.context)?;
        if !self.baseline {
            draft.context.hold_or_start(self.role, draft.now)?;
        }
        Ok(draft)
    }

    /// Returns an error if a drift is open or the task file changed. A result of a role also requires that the role
    /// holds the task or may start it; a baseline requires that no role has worked yet.
    pub(crate) fn check(&self, environment: &TaskEnvironment, context: &TaskContext) -> Result<(), Fault> {
        let (role, id) = (self.role, self.task_id);
        context.role(role)?;
        context.require_no_drift()?;
        if !task_file_is_unchanged(environment, context) {
            let message = format!("{} changed after the context was created", context.task_file);
            return Err(Fault::new(ErrorCode::TaskConflict, message)
                .hint(format!("apply the change first: baton task rebuild-context {id}")));
        }
        if !self.baseline {
            return if context.may_start_implicitly(role) { Ok(()) } else { context.require_holder(role) };
        }
        if context.pipeline.first() != Some(role) {
            let first = context.pipeline.first().map_or("the first role", Role::as_str);
            let message =
                format!("cannot record the baseline as {role}: only {first} works before any change");
            return Err(Fault::new(ErrorCode::TaskConflict, message)
                .hint("omit --baseline to record the result of this role"));
        }
        if let Some(snapshot) = context.latest_snapshot() {
            return Err(not_the_baseline(&format!("{id} has snapshot {} already", snapshot.sequence)));
        }
        if context.last_holder.as_ref().is_some_and(|last| context.holder() != Some(last)) {
            return Err(not_the_baseline(&format!("a role has worked on {id} already")));
        }
        Ok(())
    }

    /// Rejects a baseline if the checkout changed since `init-context`. `log` is the path of the recorded log in the
    /// checkout, which may be a new file and is ignored.
    pub(crate) fn check_tree(
        &self,
        environment: &TaskEnvironment,
        context: &TaskContext,
        log: Option<&str>,
    ) -> Result<(), Fault> {
        if !self.baseline {
            return Ok(());
        }
        let sources = context.sources.iter().map(|source| source.path.as_str());
        let state = checkout_state(environment, sources.chain(log))?;
        let same = match context.git.state_at_init {
            Some(expected) => expected == state.sha256,
            // Contexts of earlier versions have no hash.
            None => state.paths.is_empty() || context.git.dirty_at_init,
        };
        if same {
            return Ok(());
        }
        let problem = if environment.tree().head()?.commit != context.git.head {
            "HEAD moved after init-context".to_owned()
        } else if state.paths.is_empty() {
            "files that were modified at init-context are no longer modified".to_owned()
        } else {
            format!(
                "the checkout changed after init-context; files that differ from HEAD: {}",
                list(&state.paths)
            )
        };
        Err(not_the_baseline(&problem))
    }

    /// Records the result for the role or as the baseline, and saves the context.
    pub(crate) fn store(&self, mut draft: Draft<'_>, found: QaResults) -> Result<RecordQaOutput, Fault> {
        let results = QaResults {
            recorded_at: Some(draft.now),
            recorded_by: Some(self.role.clone()),
            actor: Some(draft.actor.clone()),
            ..found
        };
        let baseline = draft.context.immutable.validation_baseline.initial_results.clone();
        let has_baseline = !self.baseline && baseline.status != QaStatus::Pending;
        let qa_log_path = results.log.as_ref().map(|log| log.path.clone()).unwrap_or_default();
        if self.baseline {
            let mut next = draft.context.immutable.clone();
            next.validation_baseline.initial_results = results.clone();
            replace_immutable(&mut draft, next, "record_qa")?;
        } else {
            let state = draft.role(self.role)?;
            state.qa_log_path = Some(qa_log_path.clone());
            state.qa_results = Some(results.clone());
        }
        let compared = has_baseline.then(|| compare_runs(&baseline.runs, &results.runs));
        if let Some(missing) =
            compared.as_ref().map(|compared| &compared.missing_tools).filter(|list| !list.is_empty())
        {
            draft.warnings.push(format!("in the baseline and not in this result: {}", missing.join(", ")));
        }
        if has_baseline {
            let runs = baseline.runs.iter().chain(&results.runs).filter(|run| run.may_omit_failures());
            let tools: BTreeSet<&str> = runs.map(|run| run.tool.as_str()).collect();
            draft.warnings.extend(tools.iter().map(|tool| {
                format!(
                    "not all failures of {tool} are stored, so new or fixed ones may be missing; see the logs"
                )
            }));
        }
        let (context, warnings) = draft.save()?;
        Ok(RecordQaOutput {
            next: context.next_command(),
            task_id: context.task_id,
            agent: self.role.clone(),
            status: results.status,
            reason: results.reason,
            exit_code: results.exit_code,
            commands: results.commands,
            runs: results.runs,
            qa_log_path,
            is_baseline: self.baseline,
            compared_with_baseline: compared,
            immutable_revision: context.immutable_revision.number,
            warnings,
        })
    }

    /// Stores a log next to the context.
    pub(crate) fn keep_log(&self, draft: &mut Draft<'_>, bytes: &[u8]) -> Result<Artifact, Fault> {
        draft.keep(&format!("{}-qa", self.role), "log", bytes, Compress::WhenLarge)
    }
}

fn not_the_baseline(why: &str) -> Fault {
    Fault::new(ErrorCode::TaskConflict, format!("cannot record the baseline: {why}")).hint(
        "remove or ignore files that do not belong to the state before the first role's work, or leave --baseline out to \
         record a later result",
    )
}

/// Replaces the frozen part with a new revision and stores the previous one as an artifact.
pub(crate) fn replace_immutable(draft: &mut Draft<'_>, next: Immutable, reason: &str) -> Result<(), Fault> {
    let number = draft.context.immutable_revision.number;
    let value = serde_json::to_value(&draft.context.immutable).map_err(unwritable)?;
    let past = draft.keep(
        &format!("immutable-r{number}"),
        "json",
        canonical_line(&value)?.as_bytes(),
        Compress::Always,
    )?;
    draft.context.revise(next, past, reason, draft.now, &draft.actor)
}
