//! Recording of snapshots, shared by `snapshot-worktree` and `resolve-drift`.

use std::collections::HashSet;

use baton_core::task::Role;
use baton_core::{ErrorCode, Fault, Sha256Hash, counted};
use serde_json::json;

use crate::artifact::{Compress, encode};
use crate::draft::Draft;
use crate::environment::TaskEnvironment;
use crate::rules::{
    Artifact, LARGE_DIFF_BYTES, ScopeMatcher, SnapshotKind, SnapshotRef, StartSnapshot, TaskContext,
    TreeDiff, TreeState, WorktreeSnapshot, file_metadata, files_changed, normalize_diff, scope_hash,
};

const MEBIBYTE: u64 = 1024 * 1024;

/// Maximum number of paths or differences in a message; the details contain all of them.
pub(crate) const MAX_LISTED: usize = 20;

/// Records a snapshot of the tree for a role and appends it to the context.
pub(crate) fn take_snapshot(
    draft: &mut Draft<'_>,
    role: &Role,
    kind: SnapshotKind,
) -> Result<WorktreeSnapshot, Fault> {
    let mut scan = draft.content_scan();
    let state = draft.environment().tree().snapshot(&mut scan)?;
    draft.scan().merge(scan.finish());
    if let Some(branch) = &state.head.branch {
        draft.scan().value("git.branch", &json!(branch));
    }
    let snapshot = describe(draft, role, kind, &state)?;
    draft.context.snapshots.push(SnapshotRef {
        sequence: snapshot.sequence,
        kind,
        agent: role.clone(),
        actor: snapshot.actor.clone(),
        snapshot_time: snapshot.snapshot_time,
        tree: snapshot.tree.clone(),
        head: snapshot.head.clone(),
        diff_from_base: snapshot.diff_from_base.clone(),
        diff_from_previous: snapshot.diff_from_previous.clone(),
    });
    match kind {
        SnapshotKind::Work => draft.context.role_mut(role)?.worktree_snapshot = Some(snapshot.clone()),
        // The next role continues from this state, but it is not the work of `role`.
        SnapshotKind::Resolution => draft.context.resolution = Some(snapshot.clone()),
    }
    Ok(snapshot)
}

/// Warns of changes out of scope, of a moved HEAD and of nested repositories.
fn warn_of_snapshot(
    draft: &mut Draft<'_>,
    role: &Role,
    kind: SnapshotKind,
    state: &TreeState,
    out_of_scope: &[String],
) {
    if !out_of_scope.is_empty() {
        draft.warnings.push(format!(
            "{} out of scope: {}",
            counted(out_of_scope.len() as u64, "changed file"),
            list(out_of_scope)
        ));
    }
    let expected_head = draft.context.expected_head().cloned();
    if kind == SnapshotKind::Work && state.head.commit != expected_head {
        let (from, to) = (commit_name(expected_head.as_deref()), commit_name(state.head.commit.as_deref()));
        let base = commit_name(draft.context.git.base_commit.as_deref());
        draft.warnings.push(format!(
            "HEAD moved from {from} to {to}: the new commits are recorded as work of {role}, because changes are compared \
             with {base}; to exclude them, run git reset --soft {from} and take the snapshot again"
        ));
    }
    for module in &state.submodules {
        let kind = if module.registered { "a submodule" } else { "an embedded repository" };
        draft.warnings.push(format!("{} is {kind}: its files are not part of the snapshot", module.path));
    }
}

fn describe(
    draft: &mut Draft<'_>,
    role: &Role,
    kind: SnapshotKind,
    state: &TreeState,
) -> Result<WorktreeSnapshot, Fault> {
    let environment = draft.environment();
    let git = draft.context.git.clone();
    let mut scan = draft.content_scan();
    let context = &draft.context;
    let (cumulative, scope) = std::thread::scope(|threads| {
        // Computing the diff waits for git.
        let scope = threads.spawn(|| {
            let missing = missing_paths(environment, context, state);
            (hash_without(&context.immutable.repo_paths, &missing), missing)
        });
        let base = git.base_commit.as_deref();
        (environment.tree().changes_since(base, state, &mut scan), scope.join())
    });
    let cumulative = cumulative?;
    let (scope_hash, scope_missing) =
        scope.map_err(|_| Fault::new(ErrorCode::Internal, "cannot compare the scope with the tree"))?;
    draft.scan().merge(scan.finish());
    let previous = taken_over(&draft.context, role, kind)?;
    let from_base = keep_diff(draft, &format!("{role}-from-base"), &cumulative)?;
    let mut artifacts = vec![from_base.clone()];
    let mut incremental = None;
    let mut incremental_diff_error = None;
    if let Some(previous) = &previous {
        match environment.tree().changes_between(&previous.record, state) {
            Ok(diff) => {
                let kept = keep_diff(draft, &format!("{role}-incremental"), &diff)?;
                incremental = Some((kept.path.clone(), Sha256Hash::of(&normalize_diff(&diff.patch))));
                artifacts.push(kept);
            }
            Err(fault) => {
                draft.warnings.push(format!("no incremental diff: {}", fault.message));
                incremental_diff_error = Some(fault.message);
            }
        }
    }
    let scope = ScopeMatcher::new(&draft.context.immutable.scope_patterns);
    let out_of_scope: Vec<String> = cumulative
        .changes
        .iter()
        .map(|change| change.path.clone())
        .filter(|path| !scope.contains(path))
        .collect();
    warn_of_snapshot(draft, role, kind, state, &out_of_scope);
    let diff_from_previous = incremental.as_ref().map(|(path, _)| path.clone());
    let by_implementer = role.as_str() != "implementer"
        && previous.as_ref().is_some_and(|previous| previous.agent.as_str() == "implementer");
    Ok(WorktreeSnapshot {
        sequence: draft.context.snapshots.len() as u64 + 1,
        kind,
        actor: draft.actor.clone(),
        base_commit: git.base_commit,
        head: state.head.commit.clone(),
        tree: state.tree.clone(),
        record: state.record.clone(),
        stash: state.stash.clone(),
        snapshot_time: draft.now,
        diff_from_base: from_base.path,
        diff_sha: Sha256Hash::of(&normalize_diff(&cumulative.patch)),
        status_report: state.status_report.clone(),
        file_metadata: file_metadata(&cumulative.changes),
        files_changed: files_changed(&cumulative.changes),
        diff_stat: cumulative.stat.to_string(),
        scope_hash,
        scope_missing,
        out_of_scope,
        submodules: state.submodules.clone(),
        previous_agent: previous.map(|previous| previous.agent),
        diff_from_implementer: diff_from_previous.clone().filter(|_| by_implementer),
        diff_from_previous,
        incremental_diff_sha: incremental.map(|(_, sha)| sha),
        incremental_diff_error,
        artifacts,
    })
}

/// Returns the snapshot that incremental changes are compared with: for work, the one that the role started from,
/// regardless of its own later snapshots; for a drift resolution, the newest one.
fn taken_over(
    context: &TaskContext,
    role: &Role,
    kind: SnapshotKind,
) -> Result<Option<StartSnapshot>, Fault> {
    let state = context.role(role)?;
    if kind == SnapshotKind::Work && state.taken_over.is_some() {
        return Ok(state.taken_over.clone());
    }
    // Contexts of earlier versions do not record the snapshot that a role started from.
    let began_with_none = kind == SnapshotKind::Work && state.snapshots_before == 0;
    let Some(latest) = context.latest_snapshot().filter(|_| !began_with_none) else { return Ok(None) };
    let missing =
        || Fault::new(ErrorCode::TaskCorrupt, format!("snapshot {} is not in the context", latest.sequence));
    context.start_snapshot().map(Some).ok_or_else(missing)
}

pub(crate) fn commit_name(commit: Option<&str>) -> &str {
    commit.map_or("no commit", |commit| commit.get(..12).unwrap_or(commit))
}

fn keep_diff(draft: &mut Draft<'_>, name: &str, diff: &TreeDiff) -> Result<Artifact, Fault> {
    let size = diff.patch.len() as u64;
    if size > LARGE_DIFF_BYTES {
        draft.warnings.push(format!(
            "diff size {}MB exceeds 10MB threshold; review for unintended binary files",
            size / MEBIBYTE
        ));
    }
    let encoded = std::thread::scope(|scope| {
        let encoding = scope.spawn(|| encode(&diff.patch, Compress::Always));
        draft.scan().patch(&diff.patch);
        encoding.join()
    });
    let (stored, artifact) =
        encoded.map_err(|_| Fault::new(ErrorCode::Internal, "cannot compress a diff"))??;
    Ok(draft.keep_encoded(name, "diff", stored, artifact))
}

/// Formats at most [`MAX_LISTED`] paths.
pub(crate) fn list(paths: &[String]) -> String {
    let named = paths.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    if paths.len() > MAX_LISTED { format!("{named} and {} more", paths.len() - MAX_LISTED) } else { named }
}

/// Hashes the paths that are not missing.
fn hash_without(paths: &[String], missing: &[String]) -> String {
    let missing: HashSet<&String> = missing.iter().collect();
    scope_hash(paths.iter().filter(|path| !missing.contains(path)).map(String::as_str))
}

/// Lists the paths in scope that are missing.
pub(crate) fn missing_paths(
    environment: &TaskEnvironment,
    context: &TaskContext,
    state: &TreeState,
) -> Vec<String> {
    // Most paths of a scope are in the tree, so only folders, ignored and missing paths need a system call.
    let present: HashSet<&str> = state.paths.iter().map(String::as_str).collect();
    let is_missing = |path: &&String| {
        !present.contains(path.as_str()) && environment.root().join(path).symlink_metadata().is_err()
    };
    context.immutable.repo_paths.iter().filter(is_missing).cloned().collect()
}
