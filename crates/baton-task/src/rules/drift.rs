//! Drift: differences between the working tree and a snapshot, and the log of detected drifts.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::Timestamp;
use baton_core::task::{ChangeStatus, Role, TreeChange, TreeState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::ScopeMatcher;
use super::snapshot::{Artifact, WorktreeSnapshot};
use super::status_report::{Entry, entries};

/// Maximum number of stored differences per drift. The count is always complete.
const MAX_KEPT: usize = 200;

/// A tree and its HEAD commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreePoint {
    /// Id of the tree.
    pub tree: String,
    /// HEAD; null before the first commit.
    pub head: Option<String>,
}

/// Kind of difference.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DifferenceKind {
    /// HEAD points to another commit.
    BaseCommitMoved,
    /// Uncommitted changes of the snapshot were committed, at least in part.
    Committed,
    /// Uncommitted changes of the snapshot were stashed.
    Stashed,
    /// Uncommitted changes of the snapshot were discarded: tracked files match HEAD.
    Reset,
    /// The content of a file changed.
    ContentChanged,
    /// The mode of a file changed.
    ModeChanged,
    /// A file became a symbolic link, or the reverse.
    TypeChanged,
    /// A file was renamed.
    Renamed,
    /// A file was added.
    Added,
    /// A file was removed.
    Removed,
    /// A file in scope is missing.
    ScopeFileMissing,
    /// Only the index differs: files were staged or unstaged.
    StagedOnly,
}

/// One difference between the working tree and a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs, for example `content_changed` or `removed`.
    pub kind: DifferenceKind,
    /// Path of the file, or null.
    pub path: Option<String>,
    /// State in the snapshot.
    pub expected: Option<String>,
    /// State of the working tree, for example the hash of the file.
    pub actual: Option<String>,
    /// True if the file is in scope; null if there is no file.
    pub in_scope: Option<bool>,
    /// Description of the difference.
    pub message: String,
}

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Differences that are drift; empty if the tree matches.
    pub differences: Vec<Difference>,
    /// Differences that are not drift.
    pub notices: Vec<Difference>,
}

impl Comparison {
    /// Returns true if the tree matches.
    pub fn matches(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares a tree with a snapshot. `changes` are the differences between the snapshot and the current tree; `missing`
/// are the paths in scope that do not exist now.
pub fn compare(
    snapshot: &WorktreeSnapshot,
    actual: &TreeState,
    changes: &[TreeChange],
    scope: &ScopeMatcher,
    missing: &[String],
) -> Comparison {
    let mut comparison = Comparison::default();
    let moved = snapshot.head != actual.head.commit;
    let same_tree = snapshot.tree == actual.tree;
    let (before, now) = (entries(&snapshot.status_report), entries(&actual.status_report));
    let whole_tree = |kind, text: &str| {
        tree_difference(kind, Some(snapshot.tree.clone()), Some(actual.tree.clone()), text)
    };
    if moved {
        comparison.differences.push(tree_difference(
            DifferenceKind::BaseCommitMoved,
            snapshot.head.clone(),
            actual.head.commit.clone(),
            "base commit changed, cannot verify deltas",
        ));
        let is_changed = |path: &str| changes.iter().any(|change| change.path == path);
        // The file differed from HEAD, was not changed since, and equals HEAD now.
        let committed = |path: &&&str| !now.contains_key(**path) && !is_changed(path);
        let count = before.keys().filter(committed).count();
        if count > 0 {
            let text = if count == before.len() || now.values().all(|entry| !entry.is_tracked()) {
                "working tree was committed, delta tracking invalidated"
            } else {
                "some of the working tree was committed, delta tracking invalidated"
            };
            comparison.differences.push(tree_difference(DifferenceKind::Committed, None, None, text));
        }
    } else if !same_tree && changes_are_gone(&before, &now, actual.clean) {
        let left = if actual.clean { "working tree is clean" } else { "tracked files are as in HEAD" };
        let (kind, what) = if snapshot.stash == actual.stash {
            (DifferenceKind::Reset, "the changes were reset")
        } else {
            (DifferenceKind::Stashed, "the changes were stashed")
        };
        comparison.differences.push(whole_tree(kind, &format!("{left}: {what}")));
    }
    if !same_tree {
        comparison.differences.extend(changes.iter().map(|change| file_difference(change, scope)));
        if changes.is_empty() {
            // The tree ids differ although no changed file is known, so report a general difference.
            comparison.differences.push(whole_tree(DifferenceKind::ContentChanged, "working tree differs"));
        }
    }
    let gone = missing.iter().filter(|path| !snapshot.scope_missing.contains(path)).map(|path| Difference {
        kind: DifferenceKind::ScopeFileMissing,
        path: Some(path.clone()),
        expected: Some("there".into()),
        actual: Some("missing".into()),
        in_scope: Some(true),
        message: format!("{path}: belongs to the scope and is missing"),
    });
    if comparison.matches() {
        comparison.notices.extend(gone)
    } else {
        comparison.differences.extend(gone)
    }
    if same_tree && !moved && snapshot.status_report != actual.status_report {
        comparison.notices.extend(staged_only(&before, &now, scope));
    }
    comparison
}

type Report<'a> = BTreeMap<&'a str, Entry<'a>>;

/// Returns true if tracked files differed from HEAD before and none does now. Untracked files are ignored, because a
/// stash or reset leaves them in place.
fn changes_are_gone(before: &Report<'_>, now: &Report<'_>, clean: bool) -> bool {
    let tracked = |report: &Report<'_>| report.values().any(|entry| entry.is_tracked());
    clean || tracked(before) && !tracked(now)
}

/// Lists every path whose index entry differs while its content is the same.
fn staged_only(before: &Report<'_>, now: &Report<'_>, scope: &ScopeMatcher) -> Vec<Difference> {
    let paths: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let differing = paths.into_iter().filter(|path| before.get(path) != now.get(path));
    let notice = |path: &str| {
        let (was, is) = (before.get(path), now.get(path));
        let staged = |entry: Option<&Entry<'_>>| entry.is_some_and(|entry| entry.is_staged());
        let what = match (staged(was), staged(is)) {
            (false, true) => "it was staged",
            (true, false) => "it was unstaged",
            _ => "something else is staged",
        };
        let letters = |entry: Option<&Entry<'_>>| {
            entry.map_or_else(|| "unchanged".to_owned(), |entry| entry.letters.to_owned())
        };
        Difference {
            kind: DifferenceKind::StagedOnly,
            path: Some(path.to_owned()),
            expected: Some(letters(was)),
            actual: Some(letters(is)),
            in_scope: Some(scope.contains(path)),
            message: format!("{path}: only the index differs: {what}"),
        }
    };
    differing.map(notice).collect()
}

fn tree_difference(
    kind: DifferenceKind,
    expected: Option<String>,
    actual: Option<String>,
    text: &str,
) -> Difference {
    let message = match (&expected, &actual) {
        (Some(expected), Some(actual)) => {
            format!("{text} (expected {}, current {})", short(expected), short(actual))
        }
        _ => text.to_owned(),
    };
    Difference { kind, path: None, expected, actual, in_scope: None, message }
}

fn file_difference(change: &TreeChange, scope: &ScopeMatcher) -> Difference {
    let path = &change.path;
    let sha = |sha: &Option<String>| sha.clone().unwrap_or_else(|| "none".into());
    let (before, after) = (sha(&change.previous_sha256), sha(&change.sha256));
    let (kind, expected, actual, what) = match change.status {
        ChangeStatus::Modified => {
            let what = format!("expected SHA {}, current SHA {}", short(&before), short(&after));
            (DifferenceKind::ContentChanged, before, after, what)
        }
        ChangeStatus::Added => {
            let what = format!("was added, SHA {}", short(&after));
            (DifferenceKind::Added, "absent".into(), after, what)
        }
        ChangeStatus::Deleted => {
            let what = format!("was removed, SHA was {}", short(&before));
            (DifferenceKind::Removed, before, "absent".into(), what)
        }
        ChangeStatus::Renamed => {
            let from = change.previous_path.clone().unwrap_or_else(|| "another name".into());
            let edited = if before == after { "" } else { " and its content changed" };
            let what = format!("was renamed from {from}{edited}");
            (DifferenceKind::Renamed, from, path.clone(), what)
        }
        ChangeStatus::ModeChanged | ChangeStatus::TypeChanged => {
            let (before, after) = (sha(&change.previous_mode), sha(&change.mode));
            let kind = if change.status == ChangeStatus::ModeChanged {
                DifferenceKind::ModeChanged
            } else {
                DifferenceKind::TypeChanged
            };
            let what = format!("expected mode {before}, current mode {after}");
            (kind, before, after, what)
        }
    };
    let in_scope = scope.contains(path);
    let message = format!("{path}: {what}{}", if in_scope { "" } else { " (out of scope)" });
    Difference {
        kind,
        path: Some(path.clone()),
        expected: Some(expected),
        actual: Some(actual),
        in_scope: Some(in_scope),
        message,
    }
}

fn short(sha: &str) -> &str {
    sha.get(..12).unwrap_or(sha)
}

/// One drift: the expected and the actual tree differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftEvent {
    /// Role whose snapshot was verified.
    pub expected_agent: Role,
    /// Number of that snapshot.
    pub snapshot: u64,
    /// Expected tree.
    pub expected: TreePoint,
    /// Actual tree.
    pub actual: TreePoint,
    /// Time when the drift was detected.
    pub detected_at: Timestamp,
    /// Actor that detected the drift.
    pub detected_by: String,
    /// The first 200 differences.
    pub differences: Vec<Difference>,
    /// Number of differences.
    pub difference_count: u64,
    /// Resolution; null while the drift is open.
    pub resolution: Option<Resolution>,
    /// Diff from the expected to the actual tree; null if it may contain a secret or could not be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Artifact>,
}

/// Resolution of a drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    /// Time of the resolution.
    pub resolved_at: Timestamp,
    /// Actor that resolved the drift.
    pub resolved_by: String,
    /// Reason for accepting the resulting tree.
    pub note: String,
    /// Number of the resulting snapshot.
    pub snapshot: u64,
    /// Files that were restored to the expected content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Previous content of everything that was replaced or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
}

/// Previous content of a file or link that was replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// Path of the original, relative to the root of the repository; empty in contexts of earlier versions.
    #[serde(default)]
    pub original_path: String,
    /// Stored content.
    #[serde(flatten)]
    pub artifact: Artifact,
}

/// All drifts of a task, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftLog {
    /// Drifts, oldest first, resolved ones included.
    pub events: Vec<DriftEvent>,
}

impl DriftLog {
    /// Returns the number of open drifts.
    pub fn open_count(&self) -> u64 {
        self.unresolved().count() as u64
    }

    /// Returns the open drifts.
    pub fn unresolved(&self) -> impl Iterator<Item = &DriftEvent> {
        self.events.iter().filter(|event| event.resolution.is_none())
    }

    /// Returns true if an open drift between these two trees is recorded.
    pub fn is_known(&self, expected: &TreePoint, actual: &TreePoint) -> bool {
        self.unresolved().any(|event| event.expected == *expected && event.actual == *actual)
    }

    /// Records a drift and returns true if it is new. The same pair of trees counts once while it is open.
    pub fn record(&mut self, mut event: DriftEvent) -> bool {
        if self.is_known(&event.expected, &event.actual) {
            return false;
        }
        event.differences.truncate(MAX_KEPT);
        self.events.push(event);
        true
    }

    /// Resolves every open drift and returns their number.
    pub fn resolve(&mut self, resolution: &Resolution) -> u64 {
        let open: Vec<_> = self.events.iter_mut().filter(|event| event.resolution.is_none()).collect();
        let count = open.len() as u64;
        open.into_iter().for_each(|event| event.resolution = Some(resolution.clone()));
        count
    }
}

#[cfg(test)]
#[path = "drift_tests.rs"]
pub(crate) mod tests;
