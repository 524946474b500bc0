//! `task.sweep_contexts`

use baton_core::task::{IN_PROGRESS, TaskId, parse_ttl};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::durable::remove_temporaries;
use crate::folder::{lock_existing_store, read_context, try_lock_task};
use crate::operation::{Effect, LIST, TaskOperation};
use crate::place::TaskPlace;
use crate::shelf::{KEPT, archive, archived, drop_expired, drop_objects, empty_bin, live};
use crate::task_file;

/// Archives contexts that nobody needs any more and removes what was archived long enough.
#[derive(Debug)]
pub struct SweepContexts;

/// What [`SweepContexts`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepContextsParams {
    /// How long a context must have been left alone, like `7d`; that is also the default.
    #[serde(default = "default_ttl")]
    pub ttl: String,
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Also take contexts whose task is still in progress.
    #[serde(default)]
    pub all: bool,
    /// Who acts.
    #[serde(default)]
    pub actor: Option<String>,
}

fn default_ttl() -> String {
    "7d".into()
}

/// What [`SweepContexts`] answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepContextsOutput {
    /// The contexts that were archived, or would be.
    pub swept: Vec<TaskId>,
    /// The contexts that stay.
    pub kept: Vec<TaskId>,
    /// Completed tasks that were kept long enough and are gone, or would be.
    pub expired: Vec<TaskId>,
    /// Contexts that cannot be read, and why. They are left alone.
    pub unreadable: Vec<String>,
    /// Whether this only says what would be done.
    pub dry_run: bool,
    /// Command that shows the remaining tasks.
    pub next: String,
}

impl TaskOperation for SweepContexts {
    const NAME: &'static str = "task.sweep_contexts";
    const SUMMARY: &'static str = "Archive contexts left alone for a time whose task is gone or no longer in \
        progress, and drop old archives";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = true;
    type Params = SweepContextsParams;
    type Output = SweepContextsOutput;

    fn run(place: &TaskPlace, params: &SweepContextsParams) -> Result<SweepContextsOutput, Fault> {
        let ttl = parse_ttl("ttl", &params.ttl)?;
        let actor = place.actor(params.actor.as_deref())?;
        let (dry_run, next) = (params.dry_run, LIST.into());
        let mut output = SweepContextsOutput { dry_run, next, ..SweepContextsOutput::default() };
        let Some(_store) = lock_existing_store(place)? else { return Ok(output) };
        let now = place.now();
        for id in live(place) {
            if !params.dry_run {
                remove_temporaries(&place.folder(&id));
            }
            let context = match read_context(place, &id) {
                Ok(Some(context)) => context,
                Ok(None) => continue,
                Err(fault) => {
                    output.unreadable.push(fault.message);
                    continue;
                }
            };
            let left_alone = context.audit.updated_at.plus(ttl) <= now;
            // A task whose lock is held is in use. The store lock is held already, so this must not wait.
            let lock = if left_alone { try_lock_task(place, &id)? } else { None };
            if lock.is_some() && (params.all || !is_worked_on(place, &id)) {
                if !params.dry_run {
                    archive(place, &id, now)?;
                    tracing::info!(task = %id, %actor, "a context was archived");
                }
                output.swept.push(id);
            } else {
                output.kept.push(id);
            }
        }
        let expired = if params.dry_run {
            archived(place).into_iter().filter(|archived| archived.archived_at.plus(KEPT) <= now).collect()
        } else {
            empty_bin(place);
            drop_objects(place, now);
            drop_expired(place, now)
        };
        output.expired = expired.into_iter().map(|archived| archived.task_id).collect();
        Ok(output)
    }
}

/// A task whose file cannot be read may be worked on: only one that is gone or says otherwise is not.
fn is_worked_on(place: &TaskPlace, id: &TaskId) -> bool {
    match task_file::read(place.root(), id) {
        Ok(read) => read.task.status == IN_PROGRESS,
        Err(fault) => fault.code != ErrorCode::TaskNotFound,
    }
}
