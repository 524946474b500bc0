//! `task.rebuild_context`

use baton_core::task::{LargeText, RoleState, SummaryLine, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record_qa::replace_immutable;
use crate::folder::{Draft, Writing};
use crate::gather::gather;
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// Takes changed files over into the frozen part, as a new revision of it.
#[derive(Debug)]
pub struct RebuildContext;

/// What [`RebuildContext`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildContextParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// Who acts.
    #[serde(default)]
    pub actor: Option<String>,
    /// Cut text above 2 KiB, with a pointer to the task file.
    #[serde(default)]
    pub truncate: bool,
    /// Write it although it looks like it holds a credential; that is recorded.
    #[serde(default)]
    pub force_secrets: bool,
}

/// What [`RebuildContext`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RebuildContextOutput {
    /// The task.
    pub task_id: TaskId,
    /// Whether anything differs.
    pub changed: bool,
    /// The revision of the frozen part.
    pub immutable_revision: u64,
    /// The sources that differ from those before.
    pub changed_sources: Vec<String>,
    /// What was captured, and from where.
    pub summary: Vec<SummaryLine>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl TaskOperation for RebuildContext {
    const NAME: &'static str = "task.rebuild_context";
    const SUMMARY: &'static str = "Take a changed task file, standards or configuration over as a new revision; where roles stand is kept";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = true;
    type Params = RebuildContextParams;
    type Output = RebuildContextOutput;

    fn run(place: &TaskPlace, params: &RebuildContextParams) -> Result<RebuildContextOutput, Fault> {
        let writing = Writing {
            verb: "rebuild-context",
            actor: params.actor.as_deref(),
            force_secrets: params.force_secrets,
        };
        let mut draft = Draft::open(place, &params.task_id, &writing)?;
        draft.context.require_no_drift()?;
        let large_text = if params.truncate { LargeText::Cut } else { LargeText::Keep };
        let gathered = gather(place, &params.task_id, large_text)?;
        draft.warnings.extend(gathered.captured.warnings);
        let mut next = gathered.captured.immutable;
        // What was measured before any change stays the baseline, whatever the task says now.
        next.validation_baseline.initial_results =
            draft.context.immutable.validation_baseline.initial_results.clone();
        let before = &draft.context.sources;
        let changed_sources: Vec<String> = gathered
            .sources
            .iter()
            .filter(|source| !before.contains(source))
            .map(|source| source.path.clone())
            .collect();
        let same = next == draft.context.immutable
            && gathered.sources == draft.context.sources
            && gathered.pipeline == draft.context.pipeline;
        if same {
            return Ok(RebuildContextOutput {
                task_id: params.task_id.clone(),
                changed: false,
                immutable_revision: draft.context.immutable_revision.number,
                changed_sources,
                summary: gathered.captured.summary,
                warnings: draft.warnings,
            });
        }
        let frozen = serde_json::to_value(&next).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the context cannot be written").caused_by(error)
        })?;
        draft.scan().value("immutable", &frozen);
        replace_immutable(&mut draft, next, "rebuild")?;
        draft.context.sources = gathered.sources;
        draft.context.git.task_file_sha = gathered.read.sha256;
        draft.context.task_file = gathered.read.path;
        if gathered.pipeline != draft.context.pipeline {
            take_pipeline(&mut draft, gathered.pipeline);
        }
        let (context, warnings) = draft.save()?;
        Ok(RebuildContextOutput {
            task_id: context.task_id,
            changed: true,
            immutable_revision: context.immutable_revision.number,
            changed_sources,
            summary: gathered.captured.summary,
            warnings,
        })
    }
}

/// Other roles can be taken over only as long as nobody has worked.
fn take_pipeline(draft: &mut Draft<'_>, pipeline: Vec<baton_core::task::Role>) {
    if draft.context.last_holder.is_some() {
        draft.warnings.push("the pipeline changed and stays as it was: somebody has worked already".into());
        return;
    }
    let kept = std::mem::take(&mut draft.context.coordination);
    draft.context.coordination = pipeline
        .iter()
        .map(|role| (role.clone(), kept.get(role).cloned().unwrap_or_else(RoleState::default)))
        .collect();
    draft.context.pipeline = pipeline;
}
