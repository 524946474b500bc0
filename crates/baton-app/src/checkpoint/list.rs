//! `checkpoint.list`: the checkpoints of a workflow, newest first.

use baton_core::Venture;
use baton_core::checkpoint::{Checkpoint, WorkflowId};

use super::find::workflow;
use super::spooled::spooled_of_workflow;
use super::view::CheckpointView;
use crate::page::Window;
use crate::prelude::*;

/// The workflow and the page to list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListCheckpoints {
    /// Workflow id, for example `auth-migration`.
    #[serde(alias = "workflowId")]
    pub session_id: WorkflowId,
    /// Maximum number of checkpoints, 1 to 100. Defaults to 20.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// Number of checkpoints to skip. Defaults to 0.
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
    /// Venture of the workflow. Defaults to the configured venture.
    pub venture: Option<Venture>,
}

/// One page of checkpoints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListCheckpointsOutput {
    /// Checkpoints, newest first.
    pub checkpoints: Vec<CheckpointView>,
}

impl Operation<OnStore> for ListCheckpoints {
    const NAME: &'static str = "checkpoint.list";
    const SUMMARY: &'static str = "List metadata of the available checkpoints of a workflow, most recent \
        first. Call it to find a checkpoint to resume from.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Input = (Venture, WorkflowId, Window);
    type Output = ListCheckpointsOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let window = Window::of(params.limit, params.offset)?;
        Ok((context.venture(params.venture.as_ref())?, params.session_id, window))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (venture, id, Window { limit, offset }) = input;
        let spooled = spooled_of_workflow(context.settings, venture, id);
        if spooled.is_empty() {
            workflow(tx, venture, id)?;
        }
        // Checkpoints in the outbox are newer than those in the database.
        let total = u32::try_from(spooled.len()).unwrap_or(u32::MAX);
        let mut found: Vec<Checkpoint> =
            spooled.into_iter().skip(*offset as usize).take(*limit as usize).collect();
        let left = limit - u32::try_from(found.len()).unwrap_or(*limit);
        found.extend(tx.checkpoints(venture, id, offset.saturating_sub(total), left)?);
        Ok(ListCheckpointsOutput { checkpoints: found.into_iter().map(Into::into).collect() })
    }

    fn without_store(context: &Context<'_>, input: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        let (venture, id, Window { limit, offset }) = input;
        let spooled = spooled_of_workflow(context.settings, venture, id);
        if spooled.is_empty() {
            return None;
        }
        let shown = spooled.into_iter().skip(*offset as usize).take(*limit as usize).map(Into::into);
        Some(Ok(ListCheckpointsOutput { checkpoints: shown.collect() }))
    }
}
