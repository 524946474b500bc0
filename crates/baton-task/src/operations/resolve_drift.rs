//! `task.resolve_drift`

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input, require_text};
use crate::restore::restore;
use crate::rules::{Resolution, SetAside, SnapshotKind};
use crate::snapshot::take_snapshot;
use crate::verification::verify;
use crate::working_tree::Reading;

/// Resolves all open drifts: accepts the edits or restores files, and records the resulting tree.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveDrift {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Reason for accepting the resulting working tree, for example "The edit of the README is intended".
    pub note: String,
    /// Files to restore to the last snapshot, as paths relative to the root of the checkout, for example
    /// `src/auth.rs`. A copy of their current content is stored next to the context. All other changes are
    /// kept.
    #[serde(default)]
    pub restore: Vec<String>,
    /// Restore every file that differs from the last snapshot. Defaults to false.
    #[serde(default)]
    pub restore_all: bool,
    /// Actor to record for the resulting snapshot. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the content even if it appears to contain a secret (recorded in the audit log). Defaults to
    /// false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.resolve_drift`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResolveDriftOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Number of drifts that were resolved.
    pub resolved: u64,
    /// Number of the resulting snapshot.
    pub snapshot: u64,
    /// Role whose snapshot the tree had drifted from.
    pub agent: Role,
    /// Actor recorded for the resulting snapshot.
    pub resolved_by: String,
    /// Id of the resulting tree.
    pub tree: String,
    /// Files that were restored.
    pub restored: Vec<String>,
    /// Previous content of everything that was replaced or removed.
    pub set_aside: Vec<SetAside>,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for ResolveDrift {
    const NAME: &'static str = "task.resolve_drift";
    const SUMMARY: &'static str = "Resolve a drift: keep the changes made outside the roles, or restore \
        files to the last snapshot. Requires a note with the reason.";
    const EFFECT: Effect = Effect::Create;
    type Output = ResolveDriftOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let note = require_text("note", &params.note)?;
        if params.restore_all && !params.restore.is_empty() {
            return Err(Fault::invalid("restore", "give paths or restore_all, not both"));
        }
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.scan().value("note", &json!(note));
        let agent = match draft.context.latest_snapshot() {
            Some(snapshot) if draft.context.drift.open_count() > 0 => snapshot.agent.clone(),
            _ => {
                let message = format!("{} has no open drift", params.task_id);
                return Err(Fault::new(ErrorCode::TaskConflict, message)
                    .hint(format!("show its state with baton task get-context {}", params.task_id)));
            }
        };
        let (mut restored, mut set_aside) = (Vec::new(), Vec::new());
        if params.restore_all || !params.restore.is_empty() {
            let verified = verify(environment, &draft.context, &agent, Reading::Changed)?;
            if let Some(secret) = &verified.withheld
                && !params.force_secrets
            {
                let message = format!("cannot store the current content of the files: {secret}");
                return Err(Fault::new(ErrorCode::SecretFound, message)
                    .hint("remove the secret, or add --force-secrets if it is not one"));
            }
            let paths = (!params.restore_all).then_some(params.restore.as_slice());
            let outcome = restore(&mut draft, &verified, paths)?;
            (restored, set_aside) = (outcome.paths, outcome.set_aside);
        }
        let snapshot = take_snapshot(&mut draft, &agent, SnapshotKind::Resolution)?;
        let resolution = Resolution {
            resolved_at: draft.now,
            resolved_by: draft.actor.clone(),
            note: note.to_owned(),
            snapshot: snapshot.sequence,
            restored: restored.clone(),
            set_aside: set_aside.clone(),
        };
        let resolved = draft.context.drift.resolve(&resolution);
        draft.context.update_drift_budgets();
        let (context, warnings) = draft.save()?;
        Ok(ResolveDriftOutput {
            next: context.next_command(),
            task_id: context.task_id,
            resolved,
            snapshot: snapshot.sequence,
            agent,
            resolved_by: snapshot.actor,
            tree: snapshot.tree,
            restored,
            set_aside,
            warnings,
        })
    }
}
