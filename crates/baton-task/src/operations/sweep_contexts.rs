//! `task.sweep_contexts`

use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive::{RETENTION, archive, archived, drop_expired, drop_objects, empty_trash, live};
use crate::durable::remove_temporaries;
use crate::environment::TaskEnvironment;
use crate::folder::{lock_existing_store, read_context, try_lock_task};
use crate::operation::{Effect, LIST, OnCheckout, Operation, params_as_input};
use crate::rules::{IN_PROGRESS, parse_ttl};
use crate::task_file;

/// Archives unused contexts and deletes expired archives.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepContexts {
    /// Minimum time since the last change, for example `12h` or `7d`. Defaults to `7d`.
    #[serde(default = "default_ttl")]
    pub ttl: String,
    /// Only list what would be archived or deleted. Defaults to false.
    #[serde(default)]
    pub dry_run: bool,
    /// Include contexts whose task is still in progress. Defaults to false.
    #[serde(default)]
    pub all: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
}

fn default_ttl() -> String {
    "7d".into()
}

/// Output of `task.sweep_contexts`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepContextsOutput {
    /// Tasks whose context was archived, or would be.
    pub swept: Vec<TaskId>,
    /// Tasks whose context is kept.
    pub kept: Vec<TaskId>,
    /// Completed tasks whose archive was deleted, or would be.
    pub expired: Vec<TaskId>,
    /// Errors of contexts that cannot be read. They are left unchanged.
    pub unreadable: Vec<String>,
    /// True if this was a dry run.
    pub dry_run: bool,
    /// Command that lists the remaining tasks.
    pub next: String,
}

impl Operation<OnCheckout> for SweepContexts {
    const NAME: &'static str = "task.sweep_contexts";
    const SUMMARY: &'static str = "Archive inactive contexts whose task is deleted or no longer in progress, \
        and delete expired archives.";
    const EFFECT: Effect = Effect::Write;
    type Output = SweepContextsOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let ttl = parse_ttl("ttl", &params.ttl)?;
        let actor = environment.actor(params.actor.as_deref())?;
        let (dry_run, next) = (params.dry_run, LIST.into());
        let mut output = SweepContextsOutput { dry_run, next, ..SweepContextsOutput::default() };
        let Some(_store) = lock_existing_store(environment)? else { return Ok(output) };
        let now = environment.now();
        for id in live(environment) {
            if !params.dry_run {
                remove_temporaries(&environment.folder(&id));
            }
            let context = match read_context(environment, &id) {
                Ok(Some(context)) => context,
                Ok(None) => continue,
                Err(fault) => {
                    output.unreadable.push(fault.message);
                    continue;
                }
            };
            let is_inactive = context.audit.updated_at.plus(ttl) <= now;
            // A task whose lock is held is in use. The store lock is held already, so this must not wait.
            let lock = if is_inactive { try_lock_task(environment, &id)? } else { None };
            if lock.is_some() && (params.all || !may_be_in_progress(environment, &id)) {
                if !params.dry_run {
                    archive(environment, &id, now)?;
                    tracing::info!(task = %id, %actor, "a context was archived");
                }
                output.swept.push(id);
            } else {
                output.kept.push(id);
            }
        }
        let expired = if params.dry_run {
            archived(environment)
                .into_iter()
                .filter(|archived| archived.archived_at.plus(RETENTION) <= now)
                .collect()
        } else {
            empty_trash(environment);
            drop_objects(environment, now);
            drop_expired(environment, now)
        };
        output.expired = expired.into_iter().map(|archived| archived.task_id).collect();
        Ok(output)
    }
}

/// Returns false if the task file is missing or has another status. A task whose file cannot be read counts as in
/// progress.
fn may_be_in_progress(environment: &TaskEnvironment, id: &TaskId) -> bool {
    match task_file::read(environment.root(), id) {
        Ok(read) => read.task.status == IN_PROGRESS,
        Err(fault) => fault.code != ErrorCode::TaskNotFound,
    }
}
