//! `task.get_diff`

use baton_core::task::{Artifact, Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact;
use crate::folder::require_context;
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// Finds the diff of a role's work.
#[derive(Debug)]
pub struct GetDiff;

/// What a diff is counted from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffType {
    /// From the base of the task: everything so far.
    #[default]
    FromBase,
    /// From the snapshot that the role took over: what it did.
    Incremental,
}

/// What [`GetDiff`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDiffParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// The role whose last snapshot is meant.
    pub agent: Role,
    /// What it is counted from: `from_base` or `incremental`.
    #[serde(default, rename = "type")]
    pub kind: DiffType,
    /// Answer the diff itself, not only where it is.
    #[serde(default)]
    pub content: bool,
}

/// What [`GetDiff`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetDiffOutput {
    /// The task.
    pub task_id: TaskId,
    /// The role.
    pub agent: Role,
    /// What it is counted from.
    #[serde(rename = "type")]
    pub kind: DiffType,
    /// The number of the snapshot.
    pub snapshot: u64,
    /// Where it is, and its hashes.
    pub artifact: Artifact,
    /// How much differs from the base: `+145 -32`.
    pub diff_stat: String,
    /// The diff; `null` when it was not asked for. What is no UTF-8 in it is replaced.
    pub content: Option<String>,
}

impl TaskOperation for GetDiff {
    const NAME: &'static str = "task.get_diff";
    const SUMMARY: &'static str = "Find or read the diff of a role's work, cumulative or incremental";
    const EFFECT: Effect = Effect::Read;
    const IDEMPOTENT: bool = true;
    type Params = GetDiffParams;
    type Output = GetDiffOutput;

    fn run(place: &TaskPlace, params: &GetDiffParams) -> Result<GetDiffOutput, Fault> {
        let context = require_context(place, &params.task_id)?;
        let state = context.role(&params.agent)?;
        let snapshot = state.worktree_snapshot.as_ref().ok_or_else(|| context.no_snapshot(&params.agent))?;
        let path = match params.kind {
            DiffType::FromBase => Some(&snapshot.diff_from_base),
            DiffType::Incremental => snapshot.diff_from_previous.as_ref(),
        };
        let artifact = path.and_then(|path| snapshot.artifact(path)).ok_or_else(|| {
            let why = snapshot
                .incremental_diff_error
                .as_deref()
                .unwrap_or("there was no snapshot for it to take over");
            Fault::new(ErrorCode::NotFound, format!("{} has no incremental diff: {why}", params.agent)).hint(
                format!("baton task get-diff {} --agent {} --type from_base", params.task_id, params.agent),
            )
        })?;
        artifact::require(place.root(), artifact)?;
        let content = if params.content {
            let bytes = artifact::read(place.root(), artifact)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        } else {
            None
        };
        Ok(GetDiffOutput {
            task_id: context.task_id.clone(),
            agent: params.agent.clone(),
            kind: params.kind,
            snapshot: snapshot.sequence,
            artifact: artifact.clone(),
            diff_stat: snapshot.diff_stat.clone(),
            content,
        })
    }
}
