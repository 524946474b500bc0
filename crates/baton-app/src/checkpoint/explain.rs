//! `checkpoint.explain`: the layer of each key of a context, with rule and reason.

use baton_checkpoint::classify::{Explanation, LayerBytes, find_key};
use baton_core::checkpoint::{CheckpointRef, WorkflowId};
use baton_core::{CheckpointId, ErrorCode, Venture};

use super::find::{Wanted, find, read, workflow};

use crate::prelude::*;

/// Maximum number of keys in a response.
const MAX_KEYS: usize = 1_000;

/// The checkpoint and key to explain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainContext {
    /// Checkpoint id. Pass either this or `sessionId`.
    pub checkpoint_id: Option<CheckpointRef>,
    /// Workflow whose latest checkpoint to explain. Pass either this or `checkpointId`.
    #[serde(default, alias = "workflowId")]
    pub session_id: Option<WorkflowId>,
    /// Explain only this key and the keys below it, for example `plan`.
    pub context_key: Option<String>,
    /// Venture of the workflow. Defaults to the configured venture.
    pub venture: Option<Venture>,
}

/// Classification of a context.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainContextOutput {
    /// Checkpoint id (`ckpt_…`).
    pub checkpoint_id: CheckpointId,
    /// Workflow id, for example `auth-migration`.
    pub session_id: WorkflowId,
    /// Number of bytes in each layer of the full context.
    pub layers: LayerBytes,
    /// Layer, rule and reason for each key.
    pub keys: Vec<Explanation>,
    /// Number of keys that are not listed.
    pub unlisted: u64,
    /// Keys marked as critical.
    pub critical_keys: Vec<String>,
}

impl Operation<OnStore> for ExplainContext {
    const NAME: &'static str = "checkpoint.explain";
    const SUMMARY: &'static str = "Explain how a saved context is classified: the layer of each key \
        (CRITICAL, IMPORTANT, USEFUL, EPHEMERAL), the rule and the reason.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = ExplainContextOutput;
    params_and!(Wanted, |params| Wanted::of(params.checkpoint_id.clone(), params.session_id.clone()));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, wanted) = input;
        let checkpoint = find(context, tx, params.venture.as_ref(), wanted)?;
        let stored = read(context, tx, &checkpoint)?;
        let critical_keys = workflow(tx, &checkpoint.venture, &checkpoint.workflow_id)?.critical_keys;
        let only = params.context_key.as_deref().map(|key| {
            find_key(stored.json(), key).ok_or_else(|| {
                Fault::new(ErrorCode::NotFound, format!("checkpoint {} has no key `{key}`", checkpoint.id))
                    .hint("omit contextKey to list every key")
            })
        });
        let only = only.transpose()?;
        let classified = context.settings.checkpoints.classifier.classify(stored.json(), &critical_keys);
        let wanted = classified.explanations(only.as_deref());
        let unlisted = wanted.len().saturating_sub(MAX_KEYS) as u64;
        let keys: Vec<Explanation> = wanted.take(MAX_KEYS).collect();
        Ok(ExplainContextOutput {
            checkpoint_id: checkpoint.id,
            session_id: checkpoint.workflow_id,
            layers: classified.bytes(),
            keys,
            unlisted,
            critical_keys,
        })
    }
}
