//! `checkpoint.list`: what a workflow has, latest first.

use baton_core::checkpoint::WorkflowId;
use baton_core::{Fault, Venture};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::{venture_of, workflow};
use super::view::CheckpointView;
use crate::operation::{Context, Effect, Operation, store_fault};

const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;

/// Lists checkpoints.
#[derive(Debug)]
pub struct ListCheckpoints;

/// Of which workflow, and which part of the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListCheckpointsParams {
    /// The workflow.
    pub session_id: WorkflowId,
    /// How many at the most: 1 to 100, 20 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// How many to skip first.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
    /// The undertaking of the workflow; the configured one when left out.
    #[serde(default)]
    pub venture: Option<Venture>,
}

/// A part of the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListCheckpointsOutput {
    /// The checkpoints, latest first.
    pub checkpoints: Vec<CheckpointView>,
}

/// Reads `limit` and `offset`.
pub(super) fn window(limit: Option<i64>, offset: Option<i64>) -> Result<(u32, u32), Fault> {
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
    const SUMMARY: &'static str = "List metadata of the available checkpoints of a session, most recent first. Useful \
                                   for finding a checkpoint to resume from.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListCheckpointsParams;
    type Output = ListCheckpointsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        window(params.limit, params.offset).map(|_| ())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let venture = venture_of(context, params.venture.as_ref())?;
        workflow(tx, &venture, &params.session_id)?;
        let (limit, offset) = window(params.limit, params.offset)?;
        let found = tx.checkpoints(&venture, &params.session_id, offset, limit).map_err(store_fault)?;
        Ok(ListCheckpointsOutput { checkpoints: found.into_iter().map(Into::into).collect() })
    }
}
