//! `task.rebuild_context`

use baton_core::Fault;
use baton_core::task::{Role, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::checkout_state::checkout_state;
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::folder::derived_problems;
use crate::gather::gather;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::qa_recording::replace_immutable;
use crate::rules::{LargeText, RoleState, Source, SummaryLine, TaskContext, unwritable};

/// Rebuilds the frozen part from changed sources, as a new revision.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildContext {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Truncate text above 2 KiB and refer to the task file. Defaults to false.
    #[serde(default)]
    pub truncate: bool,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.rebuild_context`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RebuildContextOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// True if the frozen part changed.
    pub changed: bool,
    /// Derived files that did not match the context and were rewritten.
    pub repaired: Vec<String>,
    /// Revision of the frozen part.
    pub immutable_revision: u64,
    /// Paths of the files that differ from the earlier context, for example `TASK-0824.yaml`.
    pub changed_sources: Vec<String>,
    /// Captured fields and their sources.
    pub summary: Vec<SummaryLine>,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for RebuildContext {
    const NAME: &'static str = "task.rebuild_context";
    const SUMMARY: &'static str = "Rebuild the frozen part of a context after the task file, standards or \
        configuration changed. The status of the roles is kept.";
    const EFFECT: Effect = Effect::Write;
    type Output = RebuildContextOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.context.require_no_drift()?;
        let large_text = if params.truncate { LargeText::Truncate } else { LargeText::Keep };
        let gathered = gather(environment, &params.task_id, large_text)?;
        draft.warnings.extend(gathered.captured.warnings);
        let mut next = gathered.captured.immutable;
        // The baseline was measured before any change, so it is kept.
        next.validation_baseline.initial_results =
            draft.context.immutable.validation_baseline.initial_results.clone();
        let pipeline = new_pipeline(&mut draft, gathered.pipeline);
        let changed_sources = differing(&draft.context.sources, &gathered.sources);
        let repaired = derived_problems(environment, &draft.context)?;
        let head = environment.tree().head()?;
        let moved = draft.context.snapshots.is_empty() && head.commit != draft.context.git.head;
        let is_revised = next != draft.context.immutable || gathered.sources != draft.context.sources;
        let changed = is_revised || pipeline.is_some() || moved;
        if moved {
            // Without a snapshot, the task continues from the current HEAD.
            let named = json!({ "branch": head.branch });
            draft.scan().value("git", &named);
            draft.context.git.head = head.commit;
            draft.context.git.branch = head.branch;
        }
        if changed {
            let frozen = serde_json::to_value(&next).map_err(unwritable)?;
            draft.scan().value("immutable", &frozen);
            if is_revised || pipeline.is_some() {
                replace_immutable(&mut draft, next, "rebuild")?;
            }
            draft.context.sources = gathered.sources;
            if draft.context.last_holder.is_none() {
                let sources = draft.context.sources.iter().map(|source| source.path.as_str());
                draft.context.git.state_at_init = Some(checkout_state(environment, sources)?.sha256);
            }
            draft.context.git.task_file_sha = gathered.read.sha256;
            draft.context.task_file = gathered.read.path;
        }
        if let Some(pipeline) = pipeline {
            replace_pipeline(&mut draft.context, pipeline);
        }
        let (context, warnings) =
            if changed || !repaired.is_empty() { draft.save()? } else { (draft.context, draft.warnings) };
        Ok(RebuildContextOutput {
            next: context.next_command(),
            task_id: context.task_id,
            changed,
            repaired,
            immutable_revision: context.immutable_revision.number,
            changed_sources,
            summary: gathered.captured.summary,
            warnings,
        })
    }
}

/// Returns the paths of changed, added and removed sources.
fn differing(before: &[Source], now: &[Source]) -> Vec<String> {
    let new = now.iter().filter(|source| !before.contains(source));
    let gone = before.iter().filter(|source| !now.iter().any(|other| other.path == source.path));
    new.chain(gone).map(|source| source.path.clone()).collect()
}

/// Returns the new pipeline if it differs and no role has worked yet.
fn new_pipeline(draft: &mut Draft<'_>, pipeline: Vec<Role>) -> Option<Vec<Role>> {
    if pipeline == draft.context.pipeline {
        return None;
    }
    if draft.context.last_holder.is_some() {
        draft.warnings.push("the changed pipeline is ignored, because a role has started already".into());
        return None;
    }
    Some(pipeline)
}

fn replace_pipeline(context: &mut TaskContext, pipeline: Vec<Role>) {
    let kept = std::mem::take(&mut context.coordination);
    context.coordination = pipeline
        .iter()
        .map(|role| (role.clone(), kept.get(role).cloned().unwrap_or_else(RoleState::default)))
        .collect();
    context.pipeline = pipeline;
}
