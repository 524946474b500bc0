//! `checkpoint.diff`: compares two checkpoints.

use baton_checkpoint::{Change, Diff, DiffLimits};
use baton_core::checkpoint::{Checkpoint, CheckpointRef, CheckpointStatus, WorkflowId};
use baton_core::{CheckpointId, ErrorCode, Venture};

use super::find::{Wanted, find, read, workflow};

use crate::prelude::*;

/// Number of recent checkpoints searched for two active ones.
const RECENT: u32 = 50;

/// The checkpoints to compare: `from` and `to`, or `sessionId` for the last two checkpoints of a workflow.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiffCheckpoints {
    /// Id of the earlier checkpoint (`ckpt_…`).
    pub from: Option<CheckpointRef>,
    /// Id of the later checkpoint (`ckpt_…`).
    pub to: Option<CheckpointRef>,
    /// Workflow whose last two checkpoints to compare. Use it instead of `from` and `to`.
    #[serde(default, alias = "workflowId")]
    pub session_id: Option<WorkflowId>,
    /// Venture of the workflow. Defaults to the configured venture.
    pub venture: Option<Venture>,
}

/// Differences between two checkpoints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffCheckpointsOutput {
    /// Id of the earlier checkpoint (`ckpt_…`).
    pub from: CheckpointId,
    /// Id of the later checkpoint (`ckpt_…`).
    pub to: CheckpointId,
    /// Number of added values.
    pub added: u64,
    /// Number of removed values.
    pub removed: u64,
    /// Number of changed values.
    pub changed: u64,
    /// Changes, sorted by path.
    pub changes: Vec<Change>,
    /// Number of changes that are not listed.
    pub unlisted: u64,
}

/// Which two checkpoints to compare.
#[derive(Debug)]
pub enum Pair {
    Named(CheckpointRef, CheckpointRef),
    Last(WorkflowId),
}

impl DiffCheckpoints {
    fn pair(&self) -> Result<Pair, Fault> {
        match (&self.from, &self.to, &self.session_id) {
            (Some(from), Some(to), None) => Ok(Pair::Named(from.clone(), to.clone())),
            (None, None, Some(id)) => Ok(Pair::Last(id.clone())),
            _ => Err(Fault::invalid("from", "is required together with `to`, unless sessionId is given")
                .hint("give two checkpoint ids, or a sessionId for its last two checkpoints")),
        }
    }
}

impl Operation<OnStore> for DiffCheckpoints {
    const NAME: &'static str = "checkpoint.diff";
    const SUMMARY: &'static str = "Compare two checkpoints, or the last two checkpoints of a workflow. Lists \
        the added, removed and changed values.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = DiffCheckpointsOutput;
    params_and!(Pair, Self::pair);

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, pair) = input;
        let pair = match pair {
            Pair::Named(from, to) => [
                find(context, tx, None, &Wanted::Checkpoint(from.clone()))?,
                find(context, tx, None, &Wanted::Checkpoint(to.clone()))?,
            ],
            Pair::Last(id) => last_two(context, tx, params.venture.as_ref(), id)?,
        };
        let [from, to] = &pair;
        let (old, new) = (read(context, tx, from)?, read(context, tx, to)?);
        let Diff { changes, added, removed, changed, unlisted } =
            Diff::between(old.json(), new.json(), DiffLimits::default());
        Ok(DiffCheckpointsOutput {
            from: from.id,
            to: to.id,
            added: added as u64,
            removed: removed as u64,
            changed: changed as u64,
            changes,
            unlisted: unlisted as u64,
        })
    }
}

fn last_two(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    venture: Option<&Venture>,
    id: &WorkflowId,
) -> Result<[Checkpoint; 2], Fault> {
    let venture = context.venture(venture)?;
    workflow(tx, &venture, id)?;
    let mut found = tx.checkpoints(&venture, id, 0, RECENT)?;
    found.retain(|checkpoint| checkpoint.status == CheckpointStatus::Active);
    match found.as_slice() {
        [later, earlier, ..] => Ok([earlier.clone(), later.clone()]),
        _ => Err(Fault::new(
            ErrorCode::CheckpointNotFound,
            format!("workflow `{id}` does not have two checkpoints to compare"),
        )
        .hint("save another one first")),
    }
}
