//! Changes per file and as a patch.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use baton_core::Sha256Hash;
use baton_core::task::{ChangeStatus, TreeDiff};
use baton_git::{PermitAll, Snapshot};

use crate::sandbox::{Sandbox, paths_of};

fn snapshot(sandbox: &Sandbox) -> Snapshot {
    sandbox.repository().capture(&sandbox.object_store(), &mut PermitAll).unwrap().snapshot
}

fn since_head(sandbox: &Sandbox) -> TreeDiff {
    let snapshot = snapshot(sandbox);
    sandbox.object_store().changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap()
}

const LONG: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn every_kind_of_change_is_reported_with_both_contents() {
    let sandbox = Sandbox::with_files(&[
        ("deleted", "gone\n"),
        ("edited", "1\n2\n"),
        ("mode", "same\n"),
        ("moved", LONG),
        ("type", "file\n"),
        ("unchanged", "x\n"),
    ]);
    sandbox.write("added", "new\nlines\n");
    sandbox.remove("deleted");
    sandbox.write("edited", "1\n3\n4\n");
    fs::set_permissions(sandbox.path("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(sandbox.path("moved"), sandbox.path("renamed")).unwrap();
    sandbox.write("renamed", LONG.replace("four", "FOUR"));
    sandbox.remove("type");
    symlink("elsewhere", sandbox.path("type")).unwrap();
    sandbox.write("binary", b"\0\x01\x02");

    let changes = since_head(&sandbox);
    let kinds: Vec<_> = changes.changes.iter().map(|file| (file.path.clone(), file.status)).collect();
    let expected = [
        ("added", ChangeStatus::Added),
        ("binary", ChangeStatus::Added),
        ("deleted", ChangeStatus::Deleted),
        ("edited", ChangeStatus::Modified),
        ("mode", ChangeStatus::ModeChanged),
        ("renamed", ChangeStatus::Renamed),
        ("type", ChangeStatus::TypeChanged),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind)));
    let file = |path: &str| changes.changes.iter().find(|file| file.path == path).unwrap();

    let sha = |bytes: &[u8]| Some(Sha256Hash::of(bytes).to_string());
    let edited = file("edited");
    assert_eq!(edited.previous_sha256, sha(b"1\n2\n"));
    assert_eq!((edited.sha256.clone(), edited.size_bytes), (sha(b"1\n3\n4\n"), Some(6)));
    assert_eq!((&file("added").previous_sha256, &file("added").previous_mode), (&None, &None));
    assert_eq!((&file("deleted").sha256, &file("deleted").mode), (&None, &None));
    assert_eq!(file("renamed").previous_path.as_deref(), Some("moved"));
    assert_eq!(file("mode").mode.as_deref(), Some("100755"));
    assert_eq!(file("type").sha256, sha(b"elsewhere"));
    assert_eq!((changes.stat.insertions, changes.stat.deletions), (2 + 2 + 1 + 1, 1 + 1 + 1 + 1));
    assert!(paths_of(&changes).contains(&"moved".to_owned()));
    let patch = String::from_utf8_lossy(changes.patch.as_slice()).into_owned();
    for part in ["rename from moved", "GIT binary patch", "new mode 100755", "+3\n"] {
        assert!(patch.contains(part), "{part} is missing in {patch}");
    }
    let index_line = patch.lines().find(|line| line.starts_with("index ")).unwrap();
    assert!(index_line.len() > 80, "{index_line}");
}

#[test]
fn patch_does_not_depend_on_configuration() {
    let sandbox = Sandbox::with_files(&[("a", LONG), (".gitattributes", "a diff=odd\nb -diff\n")]);
    sandbox.write("a", LONG.replace("four", "FOUR"));
    sandbox.write("b", "text\n");
    let before = since_head(&sandbox).patch;
    let trace = sandbox.folder().join("trace");
    let script = format!("touch {}; cat", trace.display());
    for (name, value) in [
        ("diff.external", script.as_str()),
        ("diff.odd.textconv", &script),
        ("diff.odd.command", &script),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.renames", "false"),
        ("diff.algorithm", "patience"),
        ("color.ui", "always"),
        ("core.pager", &script),
    ] {
        sandbox.git(&["config", name, value]);
    }
    let after = since_head(&sandbox).patch;
    assert_eq!(before, after);
    assert!(!trace.exists(), "a configured program was executed");
}

#[test]
fn changes_between_snapshots_contain_only_later_edits() {
    let sandbox = Sandbox::with_files(&[("a", LONG), ("b", "1\n")]);
    sandbox.write("a", LONG.replace("two", "TWO"));
    let first = snapshot(&sandbox);
    // The same line again, which a reversed patch could not distinguish.
    sandbox.write("a", LONG.replace("two", "zwei"));
    sandbox.write("c", "new\n");
    let second = snapshot(&sandbox);
    let object_store = sandbox.object_store();
    let changes = object_store.changes_between(&first, &second).unwrap();
    assert_eq!(changes.changes.len(), 2);
    let patch = String::from_utf8_lossy(changes.patch.as_slice()).into_owned();
    assert!(patch.contains("-TWO\n+zwei\n") && !patch.contains("-two"), "{patch}");
    let all = object_store.changes_since(second.head.commit(), &second, &mut PermitAll).unwrap();
    assert!(String::from_utf8_lossy(all.patch.as_slice()).contains("-two\n+zwei\n"));
    let none = object_store.changes_between(&second, &second).unwrap();
    assert!(none.changes.is_empty() && none.patch.is_empty());
}

#[test]
fn repository_without_commits_has_changes_since_the_empty_tree() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "1\n");
    sandbox.write("b", "1\n");
    sandbox.git(&["add", "a"]);
    let changes = since_head(&sandbox);
    let paths: Vec<String> = paths_of(&changes);
    assert_eq!(paths, ["a", "b"]);
    assert!(!snapshot(&sandbox).clean);
}
