//! An independent reader of working trees: walks the tree and reads every byte.
//!
//! Shares no code with the crate: no index, no stat information, no object ids.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sandbox::Sandbox;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Executable,
    Link,
}

pub(crate) type Tree = BTreeMap<Vec<u8>, (Kind, Vec<u8>)>;

/// Folder that is never part of a snapshot.
const EXCLUDED: &[u8] = b".agent-output";

/// The ignore rules for git that [`ignores`] implements.
pub(crate) const IGNORE_RULES: &str = "*.ignored\nignored/\n";

/// Returns true if the rules ignore a path: by its extension, or by a parent folder.
pub(crate) fn ignores(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/').rev();
    let name = parts.next().unwrap();
    name.ends_with(b".ignored") || parts.any(|part| part == b"ignored" || part.ends_with(b".ignored"))
}

/// Returns every file that is tracked or not ignored. If `executable` is false, the executable bit does not count.
pub(crate) fn tree(sandbox: &Sandbox, executable: bool) -> Tree {
    let mut all = Tree::new();
    walk(&sandbox.root(), &mut Vec::new(), &mut all);
    if all.keys().any(|path| ignores(path)) {
        let listed = sandbox.git(&["ls-files", "-z"]);
        let tracked: BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).collect();
        all.retain(|path, _| !ignores(path) || tracked.contains(path.as_slice()));
    }
    if !executable {
        for (kind, _) in all.values_mut().filter(|(kind, _)| *kind == Kind::Executable) {
            *kind = Kind::File;
        }
    }
    all
}

fn walk(folder: &Path, prefix: &mut Vec<u8>, all: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if prefix.is_empty() && (name == ".git" || name.as_bytes() == EXCLUDED) {
            continue;
        }
        let start = prefix.len();
        prefix.extend_from_slice(name.as_bytes());
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        if meta.is_dir() {
            prefix.push(b'/');
            walk(&folder.join(OsStr::from_bytes(name.as_bytes())), prefix, all);
        } else if meta.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap().into_os_string().as_bytes().to_vec();
            all.insert(prefix.clone(), (Kind::Link, target));
        } else {
            let executable = meta.permissions().mode() & 0o100 != 0;
            let kind = if executable { Kind::Executable } else { Kind::File };
            all.insert(prefix.clone(), (kind, fs::read(entry.path()).unwrap()));
        }
        prefix.truncate(start);
    }
}

/// Returns the paths at which two trees differ.
pub(crate) fn differing(before: &Tree, after: &Tree) -> BTreeSet<Vec<u8>> {
    let paths = before.keys().chain(after.keys());
    paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}
