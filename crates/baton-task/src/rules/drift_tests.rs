use super::*;
use crate::rules::snapshot::sample;
use baton_core::task::Head;

fn state(snapshot: &WorktreeSnapshot) -> TreeState {
    TreeState {
        paths: Vec::new(),
        head: Head { commit: snapshot.head.clone(), branch: Some("main".into()) },
        tree: snapshot.tree.clone(),
        stash: snapshot.stash.clone(),
        status_report: snapshot.status_report.clone(),
        record: serde_json::Value::Null,
        clean: false,
        submodules: Vec::new(),
    }
}

fn change(path: &str, status: ChangeStatus) -> TreeChange {
    TreeChange {
        path: path.into(),
        previous_path: (status == ChangeStatus::Renamed).then(|| "old.rs".into()),
        status,
        sha256: (status != ChangeStatus::Deleted).then(|| "b".repeat(64)),
        previous_sha256: (status != ChangeStatus::Added).then(|| "a".repeat(64)),
        mode: Some("100755".into()),
        previous_mode: Some("100644".into()),
        size_bytes: Some(1),
    }
}

fn compare_after(edit: impl FnOnce(&mut TreeState), changes: &[TreeChange], missing: &[&str]) -> Comparison {
    let snapshot = sample();
    let mut actual = state(&snapshot);
    edit(&mut actual);
    let scope = ScopeMatcher::new(&["src".into()]);
    let missing: Vec<String> = missing.iter().map(|path| (*path).to_owned()).collect();
    compare(&snapshot, &actual, changes, &scope, &missing)
}

fn kinds(list: &[Difference]) -> Vec<DifferenceKind> {
    list.iter().map(|difference| difference.kind).collect()
}

#[test]
fn same_tree_on_the_same_commit_matches() {
    let comparison = compare_after(|_| {}, &[], &["src/never-there.rs"]);
    assert_eq!(comparison, Comparison::default());
}

#[test]
fn every_change_is_reported_with_expected_and_actual_state() {
    let all = [
        (ChangeStatus::Added, DifferenceKind::Added, "src/x: was added, SHA bbbbbbbbbbbb"),
        (ChangeStatus::Deleted, DifferenceKind::Removed, "src/x: was removed, SHA was aaaaaaaaaaaa"),
        (
            ChangeStatus::Modified,
            DifferenceKind::ContentChanged,
            "src/x: expected SHA aaaaaaaaaaaa, current SHA bbbbbbbbbbbb",
        ),
        (
            ChangeStatus::Renamed,
            DifferenceKind::Renamed,
            "src/x: was renamed from old.rs and its content changed",
        ),
        (
            ChangeStatus::ModeChanged,
            DifferenceKind::ModeChanged,
            "src/x: expected mode 100644, current mode 100755",
        ),
        (
            ChangeStatus::TypeChanged,
            DifferenceKind::TypeChanged,
            "src/x: expected mode 100644, current mode 100755",
        ),
    ];
    for (status, kind, message) in all {
        let comparison = compare_after(|tree| tree.tree = "other".into(), &[change("src/x", status)], &[]);
        assert_eq!(kinds(&comparison.differences), [kind]);
        let difference = &comparison.differences[0];
        assert_eq!((difference.message.as_str(), difference.in_scope), (message, Some(true)));
        assert!(difference.expected.is_some() && difference.actual.is_some());
    }
}

#[test]
fn out_of_scope_changes_are_marked() {
    let comparison =
        compare_after(|tree| tree.tree = "other".into(), &[change("docs/x", ChangeStatus::Modified)], &[]);
    assert_eq!(comparison.differences[0].in_scope, Some(false));
    assert!(comparison.differences[0].message.ends_with("(out of scope)"));
}

#[test]
fn commits_stashes_and_resets_are_distinguished() {
    let moved = compare_after(|tree| tree.head.commit = Some("c2".into()), &[], &[]);
    assert_eq!(
        kinds(&moved.differences),
        [DifferenceKind::BaseCommitMoved],
        "what was left is in no commit yet"
    );
    let committed = compare_after(
        |tree| {
            tree.head.commit = Some("c2".into());
            tree.clean = true;
            tree.status_report = String::new();
        },
        &[],
        &[],
    );
    assert_eq!(kinds(&committed.differences), [DifferenceKind::BaseCommitMoved, DifferenceKind::Committed]);
    assert!(committed.differences[1].message.contains("was committed, delta tracking invalidated"));
    let stashed = compare_after(
        |tree| {
            tree.tree = "t0".into();
            tree.clean = true;
            tree.stash = Some("s1".into());
        },
        &[change("src/x", ChangeStatus::Deleted)],
        &[],
    );
    assert_eq!(kinds(&stashed.differences), [DifferenceKind::Stashed, DifferenceKind::Removed]);
    let reset = compare_after(
        |tree| {
            tree.tree = "t0".into();
            tree.clean = true;
        },
        &[],
        &[],
    );
    assert_eq!(kinds(&reset.differences), [DifferenceKind::Reset, DifferenceKind::ContentChanged]);
}

#[test]
fn different_trees_without_a_known_change_are_drift() {
    assert_eq!(
        kinds(&compare_after(|tree| tree.tree = "other".into(), &[], &[]).differences),
        [DifferenceKind::ContentChanged]
    );
}

#[test]
fn staging_is_a_notice_and_not_drift() {
    let staged = format!("{}? y\0", line("M.", "src/x"));
    let comparison = compare_after(|tree| tree.status_report = staged, &[], &[]);
    assert!(comparison.matches());
    assert_eq!(kinds(&comparison.notices), [DifferenceKind::StagedOnly; 2]);
    let notice = &comparison.notices[0];
    assert_eq!((notice.path.as_deref(), notice.in_scope), (Some("src/x"), Some(true)));
    assert_eq!((notice.expected.as_deref(), notice.actual.as_deref()), (Some(".M"), Some("M.")));
    assert_eq!(notice.message, "src/x: only the index differs: it was staged");
}

/// A line of a status report.
fn line(letters: &str, path: &str) -> String {
    format!("1 {letters} N... 100644 100644 100644 a a {path}\0")
}

/// Compares a snapshot with two edited files and an untracked one.
fn compare_edits(
    report: String,
    edit: impl FnOnce(&mut TreeState),
    changes: &[TreeChange],
) -> Vec<Difference> {
    let mut snapshot = sample();
    snapshot.status_report = format!("{}{}? src/new\0", line(".M", "src/x"), line(".M", "src/y"));
    let mut actual = state(&snapshot);
    actual.status_report = report;
    edit(&mut actual);
    compare(&snapshot, &actual, changes, &ScopeMatcher::new(&[]), &[]).differences
}

#[test]
fn commits_stashes_and_resets_are_detected_despite_untracked_files() {
    let untracked = || "? src/new\0".to_owned();
    let moved = |tree: &mut TreeState| tree.head.commit = Some("c2".into());
    let committed = compare_edits(untracked(), moved, &[]);
    assert_eq!(kinds(&committed), [DifferenceKind::BaseCommitMoved, DifferenceKind::Committed]);
    assert!(committed[1].message.starts_with("working tree was committed"), "{committed:?}");
    let partly = compare_edits(format!("{}{}", line(".M", "src/y"), untracked()), moved, &[]);
    assert!(partly[1].message.starts_with("some of the working tree was committed"), "{partly:?}");

    let back = [change("src/x", ChangeStatus::Modified), change("src/y", ChangeStatus::Modified)];
    let other = |tree: &mut TreeState| tree.tree = "other".into();
    let reset = compare_edits(untracked(), other, &back);
    assert_eq!(reset[0].kind, DifferenceKind::Reset);
    assert!(reset[0].message.starts_with("tracked files are as in HEAD: the changes were reset"));
    let stashed = |tree: &mut TreeState| (tree.tree, tree.stash) = ("other".into(), Some("s".into()));
    assert_eq!(compare_edits(untracked(), stashed, &back)[0].kind, DifferenceKind::Stashed);
    // Edits carried to another branch, and one of two edits undone, are not a commit, stash or reset.
    let same = || format!("{}{}{}", line(".M", "src/x"), line(".M", "src/y"), untracked());
    assert_eq!(kinds(&compare_edits(same(), moved, &[])), [DifferenceKind::BaseCommitMoved]);
    let one = compare_edits(format!("{}{}", line(".M", "src/y"), untracked()), other, &back[..1]);
    assert_eq!(kinds(&one), [DifferenceKind::ContentChanged]);
}

#[test]
fn missing_files_in_scope_are_reported_unless_they_were_missing_before() {
    let changes = [change("src/x", ChangeStatus::Deleted)];
    let comparison =
        compare_after(|tree| tree.tree = "other".into(), &changes, &["src/x", "src/never-there.rs"]);
    assert_eq!(kinds(&comparison.differences), [DifferenceKind::Removed, DifferenceKind::ScopeFileMissing]);
}

/// Returns an open drift.
pub(crate) fn found(expected: &str, actual: &str, by: &str) -> DriftEvent {
    let point = |tree: &str| TreePoint { tree: tree.into(), head: None };
    DriftEvent {
        expected: point(expected),
        actual: point(actual),
        expected_agent: "implementer".parse().unwrap(),
        snapshot: 1,
        detected_at: Timestamp::EPOCH,
        detected_by: by.into(),
        differences: Vec::new(),
        difference_count: 0,
        resolution: None,
        diff: None,
    }
}

#[test]
fn same_pair_of_trees_is_recorded_once_while_open() {
    let mut log = DriftLog::default();
    let now = Timestamp::EPOCH;
    assert!(log.record(found("a", "b", "x")));
    assert!(!log.record(found("a", "b", "y")));
    assert!(log.record(found("a", "c", "x")));
    assert_eq!(log.open_count(), 2);
    let resolution = Resolution {
        resolved_at: now,
        resolved_by: "x".into(),
        note: "n".into(),
        snapshot: 2,
        restored: Vec::new(),
        set_aside: Vec::new(),
    };
    assert_eq!(log.resolve(&resolution), 2);
    assert_eq!((log.open_count(), log.resolve(&resolution)), (0, 0));
    assert!(log.record(found("a", "b", "x")));
}
