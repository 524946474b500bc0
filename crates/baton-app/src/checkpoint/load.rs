//! `checkpoint.load`: returns a saved context, in full or within a budget.

use baton_checkpoint::{Budget, ContextText, Level, Omission, Overflow, Unlisted, View, ViewOptions};
use baton_core::checkpoint::{Checkpoint, CheckpointRef, WorkflowId};
use baton_core::{CheckpointId, Venture};
use baton_store::{NoteFilter, Page};
use serde_json::{Value, json};

use super::find::{Wanted, corrupt_without_store, find, newer_damaged, read, workflow};
use super::spooled::find_spooled;
use super::view::CheckpointMetadata;
use crate::note::NoteView;
use crate::prelude::*;

/// Maximum number of notes in the response; the newest are returned.
const MAX_NOTES: u32 = 50;

/// The checkpoint to load and an optional size budget.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadCheckpoint {
    /// Checkpoint id. Pass either this or `sessionId`.
    pub checkpoint_id: Option<CheckpointRef>,
    /// Id of the workflow whose latest checkpoint to load. Pass either this or `checkpointId`.
    #[serde(default, alias = "workflowId")]
    pub session_id: Option<WorkflowId>,
    /// Maximum bytes of context as compact JSON, for example 20000. Critical values are returned in full, other
    /// values are shortened. Omit to load the full context.
    #[schemars(range(min = 1))]
    pub max_bytes: Option<i64>,
    /// Maximum model tokens of context and omissions, for example 4000. Pass either this or `maxBytes`.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<i64>,
    /// How values are shortened to fit the budget: `basic` keeps long excerpts of few values, `aggressive` keeps
    /// short excerpts of many. Defaults to `standard`.
    pub level: Option<Level>,
    /// Venture of the workflow. Defaults to the configured venture.
    pub venture: Option<Venture>,
}

/// A saved context.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadCheckpointOutput {
    /// Checkpoint id (`ckpt_…`).
    pub checkpoint_id: CheckpointId,
    /// Workflow id, for example `auth-migration`.
    pub session_id: WorkflowId,
    /// The context, shortened if a budget was given.
    pub context: ContextText,
    /// Name, tags, status, sizes and origin of the checkpoint.
    pub metadata: CheckpointMetadata,
    /// Notes that were recorded in the session that saved the checkpoint, newest first, at most 50. `note_list` returns all.
    #[serde(default)]
    pub notes: Vec<NoteView>,
    /// Sizes and omissions; null if no budget was given.
    pub view: Option<ViewReport>,
    /// True if the checkpoint was read from the outbox because the database was unavailable.
    pub degraded: bool,
    /// Damaged checkpoints of the workflow that are newer than the returned one, newest first. Empty when the checkpoint was
    /// loaded by its id.
    #[serde(default)]
    pub newer_damaged: Vec<CheckpointId>,
    /// Problem with the returned checkpoint and how to fix it, or null.
    #[serde(default)]
    pub warning: Option<String>,
}

/// Sizes and omissions of a shortened context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ViewReport {
    /// Budget in bytes; null for a token budget.
    pub budget_bytes: Option<u64>,
    /// Budget in tokens; null for a byte budget.
    pub budget_tokens: Option<u64>,
    /// Bytes of the returned context as compact JSON.
    pub shown_bytes: u64,
    /// Estimated tokens of the returned context. Most tokenizers count fewer.
    pub shown_tokens: u64,
    /// Values that were shortened or omitted: the 1,000 largest, or fewer if a token budget has less room.
    pub omissions: Vec<Omission>,
    /// Number and size of omissions that are not listed; null if all are listed.
    pub unlisted: Option<Unlisted>,
    /// Set if the critical values alone exceed the budget. They are returned in full.
    pub overflow: Option<Overflow>,
    /// How to load the omitted values, or null.
    pub more: Option<String>,
}

/// Validated parameters of a load.
#[derive(Debug)]
pub struct Load {
    wanted: Wanted,
    venture: Option<Venture>,
    budget: Option<Budget>,
    level: Level,
}

impl LoadCheckpoint {
    fn budget(&self) -> Result<Option<Budget>, Fault> {
        let positive = |field: &str, number: i64| {
            usize::try_from(number)
                .ok()
                .filter(|number| *number > 0)
                .ok_or_else(|| Fault::invalid(field, "must be a whole number from 1"))
        };
        match (self.max_bytes, self.max_tokens) {
            (None, None) => Ok(None),
            (Some(bytes), None) => positive("maxBytes", bytes).map(Budget::Bytes).map(Some),
            (None, Some(tokens)) => positive("maxTokens", tokens).map(Budget::Tokens).map(Some),
            (Some(_), Some(_)) => {
                Err(Fault::invalid("maxBytes", "excludes maxTokens").hint("give one of the two"))
            }
        }
    }
}

impl Operation<OnStore> for LoadCheckpoint {
    const NAME: &'static str = "checkpoint.load";
    const SUMMARY: &'static str = "Load a workflow's state and context from persistent storage, by \
        checkpoint ID or the latest of a workflow (sessionId). Returns the full context, or the most \
        important part of it if maxBytes or maxTokens is given. Call it to resume a workflow.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Input = Load;
    type Output = LoadCheckpointOutput;
    erased!();

    fn prepare(context: &Context<'_>, mut params: Self) -> Result<Self::Input, Fault> {
        let wanted = Wanted::of(params.checkpoint_id.take(), params.session_id.take());
        let (wanted, budget) = Fault::both(wanted, params.budget())?;
        // A checkpoint id names the venture already, and the caller may not have access to the default one.
        let venture = match &wanted {
            Wanted::Latest(_) => Some(context.venture(params.venture.as_ref())?),
            Wanted::Checkpoint(_) => None,
        };
        Ok(Load { wanted, venture, budget, level: params.level.unwrap_or_default() })
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, load: &Self::Input) -> Result<Self::Output, Fault> {
        if let Some(found) = load_spooled(context, load)? {
            return Ok(found);
        }
        let checkpoint = find(context, tx, load.venture.as_ref(), &load.wanted)?;
        let stored = read(context, tx, &checkpoint)?;
        let marked = match load.budget {
            None => Vec::new(),
            Some(_) => workflow(tx, &checkpoint.venture, &checkpoint.workflow_id)?.critical_keys,
        };
        let newer_damaged = match load.wanted {
            Wanted::Latest(_) => newer_damaged(tx, &checkpoint)?,
            Wanted::Checkpoint(_) => Vec::new(),
        };
        let warning = older_warning(&checkpoint, &newer_damaged);
        let notes = match checkpoint.session_id {
            Some(session) => {
                let filter = NoteFilter { session_id: Some(session), ..NoteFilter::default() };
                tx.notes(&filter, Page::first(MAX_NOTES))?
            }
            None => Vec::new(),
        };
        let found = output_of(context, load, checkpoint, stored, &marked)?;
        let notes = notes.into_iter().map(Into::into).collect();
        Ok(LoadCheckpointOutput { notes, newer_damaged, warning, ..found })
    }

    fn without_store(context: &Context<'_>, load: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        load_spooled(context, load).transpose()
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "checkpointId": output.checkpoint_id, "sessionId": output.session_id })
    }
}

fn older_warning(loaded: &Checkpoint, newer_damaged: &[CheckpointId]) -> Option<String> {
    let newest = newer_damaged.first()?;
    let others = match newer_damaged.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    Some(format!(
        "this is an older checkpoint, saved at {}: the newer {newest}{others} cannot be loaded because the stored data is \
         damaged. Save the current context, restore a backup, or delete the damaged checkpoint",
        loaded.created_at
    ))
}

/// Loads a checkpoint from the outbox. It is newer than every checkpoint in the database.
fn load_spooled(context: &Context<'_>, load: &Load) -> Result<Option<LoadCheckpointOutput>, Fault> {
    let Some(spooled) = find_spooled(context, load.venture.as_ref(), &load.wanted) else { return Ok(None) };
    let checkpoint = spooled.checkpoint();
    let stored = ContextText::read(spooled.context(&context.settings.checkpoints.storage)?)
        .map_err(|error| corrupt_without_store(&checkpoint, &error.to_string()))?;
    let found = output_of(context, load, checkpoint, stored, &[])?;
    Ok(Some(LoadCheckpointOutput { degraded: true, ..found }))
}

/// Returns the output with the context in full or within the budget.
fn output_of(
    context: &Context<'_>,
    load: &Load,
    checkpoint: Checkpoint,
    stored: ContextText,
    marked: &[String],
) -> Result<LoadCheckpointOutput, Fault> {
    let unreadable = |error: serde_json::Error| corrupt_without_store(&checkpoint, &error.to_string());
    let (shown, view) = match load.budget {
        None if checkpoint.restores_size => (stored.restore_size().map_err(unreadable)?, None),
        None => (stored, None),
        Some(budget) => {
            let classifier = &context.settings.checkpoints.classifier;
            let options = ViewOptions { budget, level: load.level, shares: classifier.shares() };
            let view = View::of(&classifier.classify(stored.json(), marked), options);
            drop(stored);
            let (budget_bytes, budget_tokens) = match budget {
                Budget::Bytes(bytes) => (Some(bytes as u64), None),
                Budget::Tokens(tokens) => (None, Some(tokens as u64)),
            };
            let report = ViewReport {
                budget_bytes,
                budget_tokens,
                shown_bytes: view.size_bytes as u64,
                shown_tokens: view.tokens as u64,
                more: (!view.omissions.is_empty() || view.unlisted.is_some())
                    .then(|| format!("load {} without a budget for the whole context", checkpoint.id)),
                omissions: view.omissions,
                unlisted: view.unlisted,
                overflow: view.overflow,
            };
            (ContextText::read(view.context.into_bytes()).map_err(unreadable)?, Some(report))
        }
    };
    Ok(LoadCheckpointOutput {
        checkpoint_id: checkpoint.id,
        session_id: checkpoint.workflow_id.clone(),
        context: shown,
        metadata: checkpoint.into(),
        view,
        degraded: false,
        notes: Vec::new(),
        newer_damaged: Vec::new(),
        warning: None,
    })
}
