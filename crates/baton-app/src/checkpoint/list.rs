//! `checkpoint.list`: what a workflow has, latest first.

use baton_core::checkpoint::{Checkpoint, WorkflowId};
use baton_core::{Fault, Venture};
use baton_store::{SpillFolder, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::{venture_of, workflow};
use super::view::CheckpointView;
use super::waiting::Waiting;
use crate::operation::{Context, Effect, Operation, store_fault};

const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;

/// Lists checkpoints.
#[derive(Debug)]
pub struct ListCheckpoints;

/// The workflow and the page to list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListCheckpointsParams {
    /// Workflow id, for example `auth-migration`.
    pub session_id: WorkflowId,
    /// Maximum number of checkpoints, 1 to 100. Defaults to 20.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// Number of checkpoints to skip. Defaults to 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
    /// Venture of the workflow. Defaults to the configured venture.
    #[serde(default)]
    pub venture: Option<Venture>,
}

/// One page of checkpoints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListCheckpointsOutput {
    /// Checkpoints, newest first.
    pub checkpoints: Vec<CheckpointView>,
}

/// Reads `limit` and `offset`.
pub(crate) fn window(limit: Option<i64>, offset: Option<i64>) -> Result<(u32, u32), Fault> {
    let limit = match limit {
        None => DEFAULT_LIMIT,
        Some(limit) => u32::try_from(limit)
            .ok()
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| Fault::invalid("limit", format!("must be from 1 to {MAX_LIMIT}")))?,
    };
    let offset = u32::try_from(offset.unwrap_or(0))
        .map_err(|_| Fault::invalid("offset", "must be a whole number from 0"))?;
    Ok((limit, offset))
}

impl Operation for ListCheckpoints {
    const NAME: &'static str = "checkpoint.list";
    const SUMMARY: &'static str = "List metadata of the available checkpoints of a workflow, most recent \
        first. Call it to find a checkpoint to resume from.";
    const EFFECT: Effect = Effect::Read;
    const MEETS_WAITING: bool = true;
    type Params = ListCheckpointsParams;
    type Output = ListCheckpointsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        window(params.limit, params.offset).map(|_| ())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let venture = venture_of(context, params.venture.as_ref())?;
        let waiting = waiting(context, &venture, &params.session_id)?;
        if waiting.is_empty() {
            workflow(tx, &venture, &params.session_id)?;
        }
        let (limit, offset) = window(params.limit, params.offset)?;
        let total = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let mut found: Vec<Checkpoint> =
            waiting.into_iter().skip(offset as usize).take(limit as usize).collect();
        let left = limit - u32::try_from(found.len()).unwrap_or(limit);
        let stored = tx.checkpoints(&venture, &params.session_id, offset.saturating_sub(total), left);
        found.extend(stored.map_err(store_fault)?);
        Ok(ListCheckpointsOutput { checkpoints: found.into_iter().map(Into::into).collect() })
    }

    fn rescue(context: &Context<'_>, params: &Self::Params) -> Option<Result<Self::Output, Fault>> {
        list_waiting(context, params).transpose()
    }
}

/// The checkpoints of a workflow that wait beside the database; they are later than any in it.
fn waiting(context: &Context<'_>, venture: &Venture, id: &WorkflowId) -> Result<Vec<Checkpoint>, Fault> {
    if context.settings.checkpoints.vault.spill().is_none_or(SpillFolder::is_empty) {
        return Ok(Vec::new());
    }
    Ok(Waiting::read(context)?.of_workflow(venture, id))
}

fn list_waiting(
    context: &Context<'_>,
    params: &ListCheckpointsParams,
) -> Result<Option<ListCheckpointsOutput>, Fault> {
    let venture = venture_of(context, params.venture.as_ref())?;
    let found = waiting(context, &venture, &params.session_id)?;
    let (limit, offset) = window(params.limit, params.offset)?;
    let shown = found.iter().skip(offset as usize).take(limit as usize).cloned().map(Into::into).collect();
    Ok((!found.is_empty()).then_some(ListCheckpointsOutput { checkpoints: shown }))
}
