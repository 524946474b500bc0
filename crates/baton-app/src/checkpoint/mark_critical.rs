//! `checkpoint.mark_critical`: marks a key that views of all checkpoints of a workflow show in full.

use std::borrow::Cow;

use baton_checkpoint::classify::find_key;
use baton_core::Venture;
use baton_core::checkpoint::WorkflowId;

use super::find::{Wanted, find, read, workflow_not_found};

use crate::prelude::*;

/// Maximum number of marked keys of a workflow.
const MAX_MARKED: usize = 200;
/// Maximum number of keys listed in a message.
const NAMED_KEYS: usize = 20;
const MAX_KEY_BYTES: usize = 1024;

/// The key to mark as critical.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "MarkCriticalParams")]
pub struct MarkCritical {
    /// Workflow id, for example `auth-migration`.
    #[serde(alias = "workflowId")]
    pub session_id: WorkflowId,
    /// Key in the context: a top-level key, or a path such as `plan.steps`.
    #[schemars(length(min = 1, max = 1024))]
    pub context_key: String,
    /// Venture of the workflow. Defaults to the configured venture.
    pub venture: Option<Venture>,
}

/// Result of marking a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum MarkStatus {
    /// The key is marked as critical.
    #[serde(rename = "SUCCESS")]
    Success,
    /// The latest checkpoint has no such key.
    #[serde(rename = "KEY_NOT_FOUND")]
    KeyNotFound,
}

/// Result of the request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MarkCriticalOutput {
    /// `SUCCESS` or `KEY_NOT_FOUND`.
    pub status: MarkStatus,
    /// Explanation of the status; lists the existing keys if the key was not found.
    pub message: String,
}

impl Operation<OnStore> for MarkCritical {
    const NAME: &'static str = "checkpoint.mark_critical";
    const SUMMARY: &'static str = "Mark a key of the context as CRITICAL, so that it is never shortened or \
        dropped when a checkpoint of this workflow is loaded. Use it for essential information like user \
        goals or final answers.";
    const EFFECT: Effect = Effect::Write;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = MarkCriticalOutput;
    params_as_input!(|params| {
        let fits = (1..=MAX_KEY_BYTES).contains(&params.context_key.len());
        Fault::require(fits, "contextKey", format!("must be 1 to {MAX_KEY_BYTES} bytes"))
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let venture = context.venture(params.venture.as_ref())?;
        let id = &params.session_id;
        let found = tx.lock_workflow(&venture, id)?;
        let mut workflow = found.ok_or_else(|| workflow_not_found(id))?;
        let latest = find(context, tx, Some(&venture), &Wanted::Latest(id.clone()))?;
        let stored = read(context, tx, &latest)?;
        let Some(path) = find_key(stored.json(), &params.context_key) else {
            let keys: Vec<Cow<'_, str>> = stored.json().keys().take(NAMED_KEYS).collect();
            let message = format!(
                "the latest checkpoint has no key `{}`; it has: {}",
                params.context_key,
                keys.join(", ")
            );
            return Ok(MarkCriticalOutput { status: MarkStatus::KeyNotFound, message });
        };
        let message = format!("`{path}` is critical in every checkpoint of `{id}`, past and future");
        if !workflow.critical_keys.contains(&path) {
            if workflow.critical_keys.len() >= MAX_MARKED {
                return Err(Fault::invalid("contextKey", format!("{MAX_MARKED} keys are marked already")));
            }
            workflow.critical_keys.push(path);
            tx.update_workflow(&workflow)?;
        }
        Ok(MarkCriticalOutput { status: MarkStatus::Success, message })
    }
}
