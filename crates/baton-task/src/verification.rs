//! Comparison of the working tree with a snapshot, shared by `verify-worktree`, `resolve-drift`, `update-agent` and
//! `complete`.

use baton_core::task::Role;
use baton_core::{ErrorCode, Fault};
use serde_json::json;

use crate::artifact::Compress;
use crate::content_scan::ContentScan;
use crate::draft::Draft;
use crate::environment::TaskEnvironment;
use crate::rules::{
    Artifact, Comparison, Difference, DifferenceKind, DriftEvent, ScopeMatcher, TaskContext, TreeChange,
    TreePoint, TreeState, WorktreeSnapshot, compare,
};
use crate::secrets::{SecretScan, without_secrets};
use crate::snapshot::{MAX_LISTED, missing_paths};
use crate::working_tree::{Inspector, Reading};

/// Result of a verification.
pub(crate) struct Verified {
    /// The expected snapshot.
    pub(crate) snapshot: WorktreeSnapshot,
    /// Role that recorded the snapshot.
    pub(crate) agent: Role,
    /// Ids of the current tree.
    pub(crate) actual: TreePoint,
    /// State of the current tree.
    pub(crate) state: TreeState,
    /// Changed files.
    pub(crate) changes: Vec<TreeChange>,
    /// Differences and notices.
    pub(crate) comparison: Comparison,
    /// Reason why the current tree was not stored, if it contains a secret.
    pub(crate) withheld: Option<String>,
}

/// Compares the tree with the last snapshot of a role.
pub(crate) fn verify(
    environment: &TaskEnvironment,
    context: &TaskContext,
    role: &Role,
    reading: Reading,
) -> Result<Verified, Fault> {
    context.role(role)?;
    let snapshot = context.expected_snapshot(role).cloned().ok_or_else(|| context.no_snapshot(role))?;
    let mut scan = ContentScan::new(&context.audit.accepted_secrets, false);
    let (state, changes) = environment.tree().verify(&snapshot, reading, &mut scan)?;
    let withheld = scan.check().err().map(|fault| fault.message);
    let scope = ScopeMatcher::new(&context.immutable.scope_patterns);
    let missing = missing_paths(environment, context, &state);
    let mut comparison = compare(&snapshot, &state, &changes, &scope, &missing);
    comparison.differences.iter_mut().chain(&mut comparison.notices).for_each(hide_secrets);
    let actual = TreePoint { tree: state.tree.clone(), head: state.head.commit.clone() };
    Ok(Verified { snapshot, agent: role.clone(), actual, state, changes, comparison, withheld })
}

/// Redacts secrets in file names, because differences are stored.
fn hide_secrets(difference: &mut Difference) {
    let Difference { path, expected, actual, message, .. } = difference;
    for text in [path, expected, actual].into_iter().flatten().chain([message]) {
        *text = without_secrets(text);
    }
}

impl Verified {
    /// Records the drift with its diff, and returns true if it is new.
    pub(crate) fn record(&self, draft: &mut Draft<'_>) -> Result<bool, Fault> {
        let expected = TreePoint { tree: self.snapshot.tree.clone(), head: self.snapshot.head.clone() };
        let diff =
            if draft.context.drift.is_known(&expected, &self.actual) { None } else { self.keep_diff(draft)? };
        let differences = self.comparison.differences.clone();
        let is_new = draft.context.drift.record(DriftEvent {
            expected_agent: self.agent.clone(),
            snapshot: self.snapshot.sequence,
            expected,
            actual: self.actual.clone(),
            detected_at: draft.now,
            detected_by: draft.actor.clone(),
            difference_count: differences.len() as u64,
            differences,
            resolution: None,
            diff,
        });
        draft.context.update_drift_budgets();
        Ok(is_new)
    }

    /// Stores the diff between the two trees, unless git cannot compute it or it contains a secret that was not accepted.
    fn keep_diff(&self, draft: &mut Draft<'_>) -> Result<Option<Artifact>, Fault> {
        if self.withheld.is_some() {
            return Ok(None);
        }
        let diff = match draft.environment().tree().changes_between(&self.snapshot.record, &self.state) {
            Ok(diff) => diff,
            Err(fault) => {
                tracing::warn!(task = %draft.context.task_id, error = %fault.message, "cannot compute the diff of a drift");
                return Ok(None);
            }
        };
        let mut scan = SecretScan::default();
        scan.patch(&diff.patch);
        if scan.require_accepted(&draft.context.audit.accepted_secrets).is_err() {
            return Ok(None);
        }
        draft.keep("drift", "diff", &diff.patch, Compress::Always).map(Some)
    }

    /// Creates the error that lists the differences.
    pub(crate) fn fault(&self, context: &TaskContext, recorded: bool) -> Fault {
        let id = &context.task_id;
        let messages: Vec<&str> = self.comparison.differences.iter().map(|d| d.message.as_str()).collect();
        let mut lines: Vec<String> =
            messages.iter().take(MAX_LISTED).map(|text| format!("  {text}")).collect();
        if messages.len() > MAX_LISTED {
            lines.push(format!("  and {} more", messages.len() - MAX_LISTED));
        }
        if let Some(why) = &self.withheld {
            let found = why.split_once(';').map_or(why.as_str(), |(found, _)| found);
            lines.push(format!("  only names and hashes of this tree were stored: {found}"));
        }
        let (agent, sequence, meaning) = (&self.agent, self.snapshot.sequence, self.meaning());
        // A role that held the task after the snapshot may have made the changes.
        let afterwards = context
            .last_holder
            .as_ref()
            .filter(|last| *last != agent)
            .map_or_else(String::new, |last| format!("; {last} held the task after that"));
        let message = format!(
            "working tree drift detected: it differs from snapshot {sequence} of {agent}: {meaning}{afterwards}\n{}",
            lines.join("\n")
        );
        Fault::new(ErrorCode::DriftDetected, message).hint(self.hint(context, recorded)).details(json!({
            "task_id": id,
            "expected_agent": self.agent,
            "snapshot": self.snapshot.sequence,
            "expected": { "tree": self.snapshot.tree, "head": self.snapshot.head },
            "actual": self.actual,
            "differences": self.comparison.differences,
            "recorded": recorded,
            "withheld": self.withheld,
            "drift_budget": context.drift.open_count(),
        }))
    }

    /// Describes the most important kind of difference.
    fn meaning(&self) -> &'static str {
        let has = |kind| self.comparison.differences.iter().any(|difference| difference.kind == kind);
        if has(DifferenceKind::Committed) {
            "working tree was committed, delta tracking invalidated"
        } else if has(DifferenceKind::BaseCommitMoved) {
            "base commit changed, cannot verify deltas"
        } else if has(DifferenceKind::Stashed) {
            "the changes were stashed"
        } else if has(DifferenceKind::Reset) {
            "the changes were reset"
        } else {
            "files were changed since"
        }
    }

    fn hint(&self, context: &TaskContext, recorded: bool) -> String {
        let id = &context.task_id;
        let newest = context.latest_snapshot().filter(|newest| newest.sequence != self.snapshot.sequence);
        if recorded {
            format!(
                "show it with baton task get-diff {id} --type drift --content; then keep it with baton task resolve-drift \
                 {id} --note TEXT, or undo it with baton task resolve-drift {id} --restore-all --note TEXT"
            )
        } else if let Some(holder) = context.holder() {
            format!(
                "wait until {holder} is done, then verify again; nothing was recorded, because {holder} holds the task and may change the tree"
            )
        } else if let Some(newest) = newest {
            format!(
                "verify snapshot {} instead, from which the next role starts: baton task verify-worktree {id} --expected-agent {}; nothing was recorded",
                newest.sequence, newest.agent
            )
        } else {
            format!(
                "verify again with baton task verify-worktree {id} --expected-agent {}; nothing was recorded",
                self.agent
            )
        }
    }
}
