//! The user's repository after captures: unchanged, including time stamps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_git::PermitAll;

use crate::sandbox::Sandbox;

/// Visible state of a file or folder.
#[derive(Debug, PartialEq)]
struct Seen {
    inode: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
}

/// Returns the state of everything below a folder.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let seen = Seen {
                inode: meta.ino(),
                mode: meta.mode(),
                modified: (meta.mtime(), meta.mtime_nsec()),
                changed: (meta.ctime(), meta.ctime_nsec()),
                content: if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() },
            };
            all.insert(path, seen);
        }
    }
    all
}

/// Runs every operation on a checkout.
fn look_at_everything(sandbox: &Sandbox) {
    let repository = sandbox.repository();
    let object_store = sandbox.object_store_for(&repository);
    repository.status(&[]).unwrap();
    let first = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    assert!(repository.verify(&object_store, &first, &mut PermitAll).unwrap().changes.is_empty());
    object_store.changes_since(first.head.commit(), &first, &mut PermitAll).unwrap();
    object_store.changes_between(&first, &first).unwrap();
}

#[test]
fn sparse_index_gains_no_object() {
    let sandbox =
        Sandbox::with_files(&[("in/a", "1\n"), ("out/deep/b", "1\n"), ("out/c", "1\n"), ("top", "1\n")]);
    sandbox.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    sandbox.write("in/a", "staged\n");
    sandbox.write("in/new", "staged\n");
    sandbox.git(&["add", "--all"]);
    sandbox.write("in/a", "unstaged\n");
    // Git updates the time stamps of objects that it would have written; nothing else may change.
    let contents = || everything(&sandbox.root()).into_iter().map(|(path, seen)| (path, seen.content));
    let before: BTreeMap<_, _> = contents().collect();
    look_at_everything(&sandbox);
    let after: BTreeMap<_, _> = contents().collect();
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(after == before);
}

fn busy_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("b", "1\n"), ("dir/c", "1\n"), ("hidden", "1\n")]);
    sandbox.write("a", "staged\n");
    sandbox.write("staged", "new\n");
    sandbox.git(&["add", "--all"]);
    sandbox.write("a", "unstaged\n");
    sandbox.write("untracked", "1\n");
    sandbox.write("dir/d", "1\n");
    // Stat information that git would refresh.
    sandbox.write("b", "1\n");
    sandbox.git(&["update-index", "--assume-unchanged", "hidden"]);
    sandbox.write("hidden", "2\n");
    sandbox
}

#[test]
fn captures_do_not_change_the_repository() {
    let sandbox = busy_sandbox();
    let before = everything(&sandbox.root());
    look_at_everything(&sandbox);
    assert_eq!(before, everything(&sandbox.root()));
}

#[test]
fn captures_do_not_change_a_repository_with_converted_files() {
    let sandbox = busy_sandbox();
    sandbox.git(&["config", "core.autocrlf", "true"]);
    sandbox.git(&["config", "core.safecrlf", "true"]);
    sandbox.write("crlf", "1\r\n2\r\n");
    sandbox.write("dir/c", "1\r\n");
    let before = everything(&sandbox.root());
    look_at_everything(&sandbox);
    assert_eq!(before, everything(&sandbox.root()));
}

#[test]
fn foreign_lock_is_kept_and_not_waited_for() {
    let sandbox = busy_sandbox();
    let locks = ["index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock"];
    for lock in locks {
        fs::write(sandbox.path(".git").join(lock), "held").unwrap();
    }
    let before = everything(&sandbox.root());
    look_at_everything(&sandbox);
    assert_eq!(before, everything(&sandbox.root()));
}

#[test]
fn hooks_and_monitors_are_not_run() {
    let sandbox = busy_sandbox();
    let trace = sandbox.folder().join("trace");
    let script = format!("#!/bin/sh\ntouch {}\n", trace.display());
    let hooks = sandbox.folder().join("hooks");
    fs::create_dir(&hooks).unwrap();
    for name in ["post-index-change", "fsmonitor", "reference-transaction"] {
        use std::os::unix::fs::PermissionsExt;
        fs::write(hooks.join(name), &script).unwrap();
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox.git(&["config", "core.fsmonitor", hooks.join("fsmonitor").to_str().unwrap()]);
    sandbox.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    sandbox.git(&["status"]);
    assert!(trace.exists(), "git itself runs them");
    fs::remove_file(&trace).unwrap();
    look_at_everything(&sandbox);
    assert!(!trace.exists(), "a program of the repository was executed");
}
