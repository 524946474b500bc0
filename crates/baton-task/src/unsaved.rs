//! Changes of the working tree that are in no snapshot. They are drift for the next role.

use baton_core::task::Role;
use baton_core::{ErrorCode, Fault};

use crate::draft::Draft;
use crate::rules::{ScopeMatcher, compare};
use crate::secrets::without_secrets;
use crate::snapshot::list;
use crate::working_tree::{Inspector, Reading};

/// Describes the changes since the newest snapshot, which would be drift if the role released the task now. `None` if
/// the role does not hold the task, there is no snapshot, or nothing changed. The current tree is not stored.
pub(crate) fn describe_unsaved(draft: &Draft<'_>, role: &Role) -> Result<Option<String>, Fault> {
    let context = &draft.context;
    if context.holder() != Some(role) {
        return Ok(None);
    }
    let Some(newest) = context.latest_snapshot() else { return Ok(None) };
    let Some(snapshot) = context.full_snapshot(newest) else { return Ok(None) };
    let (state, changes) = draft.environment().tree().verify(snapshot, Reading::Changed, &mut RejectAll)?;
    let scope = ScopeMatcher::new(&context.immutable.scope_patterns);
    let comparison = compare(snapshot, &state, &changes, &scope, &[]);
    if comparison.matches() {
        return Ok(None);
    }
    let mut names: Vec<String> = changes.iter().map(|change| without_secrets(&change.path)).collect();
    if names.is_empty() {
        names.push(if state.tree == snapshot.tree { "HEAD moved" } else { "files differ" }.into());
    }
    Ok(Some(format!("the working tree differs from snapshot {} ({})", newest.sequence, list(&names))))
}

/// Adds a warning if the role holds the task and the tree has changes that are in no snapshot.
pub(crate) fn warn_of_unsaved(draft: &mut Draft<'_>, role: &Role) -> Result<(), Fault> {
    if let Some(unsaved) = describe_unsaved(draft, role)? {
        let id = &draft.context.task_id;
        draft.warnings.push(format!(
            "{unsaved}; this is drift for the next role; resolve it then with baton task resolve-drift {id} --note TEXT"
        ));
    }
    Ok(())
}

/// Returns an error if the role holds the task and the tree has changes that are in no snapshot.
pub(crate) fn require_saved(draft: &Draft<'_>, role: &Role) -> Result<(), Fault> {
    let Some(unsaved) = describe_unsaved(draft, role)? else { return Ok(()) };
    let id = &draft.context.task_id;
    Err(Fault::new(ErrorCode::TaskConflict, format!("cannot release {id} as {role}: {unsaved}"))
        .hint(format!("take a snapshot first: baton task snapshot-worktree {id} --agent {role}")))
}

/// Rejects everything, so that nothing is stored.
struct RejectAll;

impl Inspector for RejectAll {
    fn restart(&mut self) {}

    fn inspect(&mut self, _: &str, _: &[u8]) {}

    fn check(&self) -> Result<(), Fault> {
        Err(Fault::new(ErrorCode::SecretFound, "no content of this tree is stored"))
    }
}
