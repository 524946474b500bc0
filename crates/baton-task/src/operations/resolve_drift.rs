//! `task.resolve_drift`

use baton_core::task::{Resolution, Role, SnapshotKind, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::mark_blocked::require_text;
use crate::folder::{Draft, Writing};
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;
use crate::worktree::take;

/// Settles every open drift: the present tree is the state to go on from.
#[derive(Debug)]
pub struct ResolveDrift;

/// What [`ResolveDrift`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveDriftParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// Why it is right to go on from the present tree.
    pub note: String,
    /// Who acts.
    #[serde(default)]
    pub actor: Option<String>,
    /// Write it although it looks like it holds a credential; that is recorded.
    #[serde(default)]
    pub force_secrets: bool,
}

/// What [`ResolveDrift`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResolveDriftOutput {
    /// The task.
    pub task_id: TaskId,
    /// How many drifts were settled.
    pub resolved: u64,
    /// The number of the snapshot to go on from.
    pub snapshot: u64,
    /// The role whose work that snapshot counts as.
    pub agent: Role,
    /// The exact tree.
    pub tree: String,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl TaskOperation for ResolveDrift {
    const NAME: &'static str = "task.resolve_drift";
    const SUMMARY: &'static str =
        "Acknowledge edits made outside the workflow with a note, and go on from the working tree as it is";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = false;
    type Params = ResolveDriftParams;
    type Output = ResolveDriftOutput;

    fn run(place: &TaskPlace, params: &ResolveDriftParams) -> Result<ResolveDriftOutput, Fault> {
        let note = require_text("note", &params.note)?;
        let writing = Writing {
            verb: "resolve-drift",
            actor: params.actor.as_deref(),
            force_secrets: params.force_secrets,
        };
        let mut draft = Draft::open(place, &params.task_id, &writing)?;
        draft.scan().value("note", &json!(note));
        let last = draft.context.latest_snapshot().map(|snapshot| snapshot.agent.clone());
        let Some(agent) = last.filter(|_| draft.context.drift.open() > 0) else {
            return Err(Fault::new(ErrorCode::TaskConflict, format!("{} has no open drift", params.task_id))
                .hint(format!("baton task get-context {} shows where it stands", params.task_id)));
        };
        let snapshot = take(&mut draft, &agent, SnapshotKind::Resolution)?;
        let resolution = Resolution {
            resolved_at: draft.now,
            resolved_by: draft.actor.clone(),
            note: note.to_owned(),
            snapshot: snapshot.sequence,
        };
        let resolved = draft.context.drift.resolve(&resolution);
        draft.context.count_drift();
        let (context, warnings) = draft.save()?;
        Ok(ResolveDriftOutput {
            task_id: context.task_id,
            resolved,
            snapshot: snapshot.sequence,
            agent,
            tree: snapshot.tree,
            warnings,
        })
    }
}
