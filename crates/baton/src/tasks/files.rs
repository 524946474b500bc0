//! The files of a task for the dashboard: its context and its diffs.

use std::path::Path;

use baton_app::task::{TaskDiff, TaskFiles};
use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use baton_task::{DiffType, GetContext, GetDiff, OUTPUT_FOLDER, TaskEnvironment, run};
use serde_json::Value;

use super::checkout::{actor, task_environment};
use crate::config::Config;

/// Maximum total size of the diffs, so that a page with all of them stays small.
const MAX_DIFF_BYTES: usize = 48 * 1024;

/// Reads the context and the diffs of a task.
pub(crate) fn task_files(checkout: &Path, id: &TaskId, config: &Config) -> Result<TaskFiles, Fault> {
    if !checkout.join(OUTPUT_FOLDER).is_dir() {
        let message = format!("{} has no files of tasks", checkout.display());
        return Err(Fault::new(ErrorCode::NotFound, message));
    }
    let environment = task_environment(checkout, &actor(config));
    let found = run(&environment, GetContext { task_id: id.clone(), role: None })?;
    let context = found.context.as_ref();
    let has_drift = context.is_some_and(|context| !context.drift.events.is_empty());
    let roles = context.into_iter().flat_map(|context| {
        let has_snapshot = |role: &&Role| {
            context.coordination.get(*role).is_some_and(|state| state.worktree_snapshot.is_some())
        };
        context.pipeline.iter().filter(has_snapshot).cloned()
    });
    let wanted = has_drift.then_some((None, DiffType::Drift)).into_iter();
    let wanted = wanted.chain(roles.map(|role| (Some(role), DiffType::Incremental)));
    let (mut warnings, mut diffs, mut room) = (found.warnings.clone(), Vec::new(), MAX_DIFF_BYTES);
    for (agent, kind) in wanted {
        match diff(&environment, GetDiff { task_id: id.clone(), agent, kind, content: true }, room) {
            Ok(diff) => {
                room -= diff.content.len();
                diffs.push(diff);
            }
            Err(fault) => warnings.push(fault.message),
        }
    }
    let unwritable =
        |error| Fault::new(ErrorCode::Internal, "the context cannot be written").caused_by(error);
    match serde_json::to_value(context).map_err(unwritable)? {
        Value::Object(context) => Ok(TaskFiles { context, warnings, next: found.next, diffs }),
        _ => Err(Fault::new(ErrorCode::NotFound, format!("{id} has no context"))),
    }
}

/// Reads a diff and keeps up to `max_bytes` of it.
fn diff(environment: &TaskEnvironment, wanted: GetDiff, max_bytes: usize) -> Result<TaskDiff, Fault> {
    let found = run(environment, wanted)?;
    let mut content = found.content.unwrap_or_default();
    let is_truncated = content.len() > max_bytes;
    content.truncate(content.floor_char_boundary(max_bytes));
    let kind = if found.kind == DiffType::Drift { "drift" } else { "incremental" };
    Ok(TaskDiff {
        kind: kind.to_owned(),
        agent: found.agent.to_string(),
        diff_stat: found.diff_stat,
        content,
        is_truncated,
    })
}
