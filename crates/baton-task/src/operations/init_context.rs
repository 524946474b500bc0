//! `task.init_context`

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::archive;
use crate::checkout_state::checkout_state;
use crate::draft::{Draft, WriteOptions};
use crate::environment::{CONTEXT_FILE, OUTPUT_FOLDER, TaskEnvironment};
use crate::folder::{last_number, lock_task, read_context};
use crate::gather::{Gathered, gather};
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{
    Audit, CONTEXT_VERSION, DriftLog, GitBase, LargeText, Revision, RoleState, SummaryLine, TaskContext,
    export_file, unwritable,
};

/// Creates the context of a task, before the first role starts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitContext {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Commit that changes are compared with. Defaults to HEAD.
    pub base_commit: Option<String>,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Truncate text above 2 KiB and refer to the task file. Defaults to false.
    #[serde(default)]
    pub truncate: bool,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.init_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitContextOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Path of the context, relative to the root of the checkout.
    pub context_path: String,
    /// Commit that changes are compared with.
    pub base_commit: Option<String>,
    /// Roles in the order in which they work, for example `implementer`, `reviewer`.
    pub pipeline: Vec<Role>,
    /// Paths of the role exports.
    pub exports: Vec<String>,
    /// Captured fields and their sources.
    pub summary: Vec<SummaryLine>,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for InitContext {
    const NAME: &'static str = "task.init_context";
    const SUMMARY: &'static str = "Create the context of a task: freeze its description, standards, QA \
        commands and scope. Call it once, before the first role starts.";
    const EFFECT: Effect = Effect::Create;
    type Output = InitContextOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let id = &params.task_id;
        let large_text = if params.truncate { LargeText::Truncate } else { LargeText::Keep };
        let actor = environment.actor(params.actor.as_deref())?;
        require_new(environment, id)?;
        let gathered = gather(environment, id, large_text)?;
        let head = environment.tree().head()?;
        let base_commit = match &params.base_commit {
            Some(revision) => Some(environment.tree().resolve_commit(revision)?),
            None => head.commit.clone(),
        };
        let task_lock = lock_task(environment, id)?;
        require_new(environment, id)?;
        let state = checkout_state(environment, gathered.sources.iter().map(|source| source.path.as_str()))?;
        let git = GitBase {
            base_commit,
            head: head.commit,
            branch: head.branch,
            task_file_sha: gathered.read.sha256,
            dirty_at_init: state.dirty,
            state_at_init: Some(state.sha256),
        };
        let mut warnings = gathered.captured.warnings.clone();
        if git.dirty_at_init {
            warnings.push(
                "the working tree has modified files already; they will count as changes of this task".into(),
            );
        }
        let others: Vec<String> =
            archive::live(environment).iter().filter(|other| *other != id).map(ToString::to_string).collect();
        if !others.is_empty() {
            warnings.push(format!(
                "other tasks have a context in this checkout ({}): changes of one task are drift for the other",
                others.join(", ")
            ));
        }
        let summary = gathered.captured.summary.clone();
        let context = new_context(environment, id, &actor, git, gathered)?;
        // Files of an earlier context whose `context.json` is missing are kept; new files get higher numbers.
        if last_number(&environment.folder(id)) > 0 {
            warnings
                .push(format!("{OUTPUT_FOLDER}/{id} contains files of an earlier context; they are kept"));
        }
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::begin(environment, context, task_lock, &options)?;
        let frozen = serde_json::to_value(&draft.context.immutable).map_err(unwritable)?;
        draft.scan().value("immutable", &frozen);
        let named = json!({ "branch": draft.context.git.branch });
        draft.scan().value("git", &named);
        let task_file = draft.context.task_file.clone();
        draft.scan().name(&task_file);
        draft.warnings = warnings;
        let (context, warnings) = draft.save()?;
        let folder = format!("{OUTPUT_FOLDER}/{id}");
        Ok(InitContextOutput {
            next: context.next_command(),
            task_id: id.clone(),
            context_path: format!("{folder}/{CONTEXT_FILE}"),
            base_commit: context.git.base_commit,
            exports: context.pipeline.iter().map(|role| format!("{folder}/{}", export_file(role))).collect(),
            pipeline: context.pipeline,
            summary,
            warnings,
        })
    }
}

fn require_new(environment: &TaskEnvironment, id: &TaskId) -> Result<(), Fault> {
    if read_context(environment, id)?.is_none() {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::TaskExists, format!("{id} has a context already")).hint(format!(
        "read it with baton task get-context {id}; apply changed files with baton task rebuild-context {id}"
    )))
}

fn new_context(
    environment: &TaskEnvironment,
    id: &TaskId,
    actor: &str,
    git: GitBase,
    gathered: Gathered,
) -> Result<TaskContext, Fault> {
    let now = environment.now();
    let immutable = gathered.captured.immutable;
    Ok(TaskContext {
        version: CONTEXT_VERSION,
        task_id: id.clone(),
        task_file: gathered.read.path,
        created_at: now,
        created_by: actor.to_owned(),
        git,
        immutable_revision: Revision {
            number: 1,
            sha256: immutable.hash()?,
            created_at: now,
            created_by: actor.to_owned(),
            reason: "init".into(),
        },
        immutable,
        past_revisions: Vec::new(),
        sources: gathered.sources,
        coordination: gathered.pipeline.iter().map(|role| (role.clone(), RoleState::default())).collect(),
        pipeline: gathered.pipeline,
        last_holder: None,
        snapshots: Vec::new(),
        drift: DriftLog::default(),
        evidence: Vec::new(),
        notes: Vec::new(),
        resolution: None,
        artifact_count: 0,
        audit: Audit {
            updated_at: now,
            updated_by: actor.to_owned(),
            updated_with: "init-context".into(),
            git_head: None,
            update_count: 0,
            forced_secrets: Vec::new(),
            accepted_secrets: Vec::new(),
        },
    })
}
