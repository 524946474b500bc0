//! A simple working tree without git: reads every file, and stores a tree as a list of hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use baton_core::{ErrorCode, Fault, Sha256Hash};
use baton_task::rules::{ChangeStatus, Head, TreeChange, TreeDiff, TreeState, WorktreeSnapshot};
use baton_task::{Inspector, OUTPUT_FOLDER, Reading, UncommittedFile, WorkingTree};
use serde_json::{Value, json};

/// Folder of commits, trees and blobs.
const STORE: &str = ".walked";

type Files = BTreeMap<String, (String, String)>;

/// Working tree of a folder.
#[derive(Debug, Clone)]
pub(crate) struct WalkedTree {
    root: PathBuf,
}

impl WalkedTree {
    pub(crate) fn at(root: &Path) -> Self {
        for folder in ["trees", "blobs", "commits"] {
            fs::create_dir_all(root.join(STORE).join(folder)).unwrap();
        }
        Self { root: root.to_owned() }
    }

    fn store(&self, kind: &str, name: &str) -> PathBuf {
        self.root.join(STORE).join(kind).join(name)
    }

    /// Commits all files and moves HEAD to the commit.
    pub(crate) fn commit(&self) -> String {
        let tree = self.keep_tree();
        let id = Sha256Hash::of(format!("{tree} {:?}", self.head_commit()).as_bytes()).to_string();
        fs::write(self.store("commits", &id), tree).unwrap();
        fs::write(self.root.join(STORE).join("HEAD"), &id).unwrap();
        id
    }

    pub(crate) fn set_stash(&self, id: &str) {
        fs::write(self.root.join(STORE).join("stash"), id).unwrap();
    }

    fn head_commit(&self) -> Option<String> {
        fs::read_to_string(self.root.join(STORE).join("HEAD")).ok()
    }

    fn walk(&self) -> BTreeMap<String, (String, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(self.root.join(&folder)).unwrap().flatten() {
                let path = folder.join(entry.file_name());
                if path == Path::new(STORE) || path == Path::new(OUTPUT_FOLDER) {
                    continue;
                }
                let kind = entry.file_type().unwrap();
                let name = path.to_str().unwrap().to_owned();
                if kind.is_dir() {
                    open.push(path);
                } else if kind.is_symlink() {
                    let target = fs::read_link(entry.path()).unwrap().into_os_string();
                    files.insert(name, ("120000".into(), target.into_encoded_bytes()));
                } else {
                    let runs = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
                    let mode = if runs { "100755" } else { "100644" };
                    files.insert(name, (mode.into(), fs::read(entry.path()).unwrap()));
                }
            }
        }
        files
    }

    fn keep_tree(&self) -> String {
        let mut files = Files::new();
        for (path, (mode, bytes)) in self.walk() {
            let sha = Sha256Hash::of(&bytes).to_string();
            self.keep("blobs", &sha, &bytes);
            files.insert(path, (mode, sha));
        }
        let text = serde_json::to_string(&files).unwrap();
        let id = Sha256Hash::of(text.as_bytes()).to_string();
        self.keep("trees", &id, text.as_bytes());
        id
    }

    fn keep(&self, kind: &str, name: &str, bytes: &[u8]) {
        let path = self.store(kind, name);
        if !path.exists() {
            let mut file = tempfile::NamedTempFile::new_in(self.root.join(STORE)).unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            file.persist(path).unwrap();
        }
    }

    fn tree(&self, id: &str) -> Result<Files, Fault> {
        let text = fs::read_to_string(self.store("trees", id))
            .map_err(|_| Fault::new(ErrorCode::Internal, format!("the tree {id} is gone")))?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    fn head_tree(&self) -> Option<String> {
        fs::read_to_string(self.store("commits", &self.head_commit()?)).ok()
    }

    fn size(&self, sha: &str) -> u64 {
        fs::metadata(self.store("blobs", sha)).unwrap().len()
    }
}

fn empty_tree() -> String {
    Sha256Hash::of(b"{}").to_string()
}

impl WorkingTree for WalkedTree {
    fn head(&self) -> Result<Head, Fault> {
        Ok(Head { commit: self.head_commit(), branch: Some("main".into()) })
    }

    fn resolve_commit(&self, revision: &str) -> Result<String, Fault> {
        if self.store("commits", revision).is_file() {
            return Ok(revision.to_owned());
        }
        Err(Fault::invalid("base_commit", format!("there is no commit {revision}")))
    }

    fn uncommitted(&self) -> Result<Vec<UncommittedFile>, Fault> {
        let head = self.head_tree().map_or_else(|| Ok(Files::new()), |head| self.tree(&head))?;
        let present = self.walk();
        let paths: BTreeSet<&String> = head.keys().chain(present.keys()).collect();
        let file = |path: &&String| {
            let now = present.get(*path).map(|(mode, bytes)| (mode.clone(), Sha256Hash::of(bytes)));
            let committed = head.get(*path);
            let same = committed.zip(now.as_ref()).is_some_and(|((mode, sha), (new_mode, new_sha))| {
                mode == new_mode && *sha == new_sha.to_string()
            });
            (!same).then(|| UncommittedFile {
                path: (*path).clone(),
                modified: committed.is_some(),
                sha256: now.map(|(_, sha)| sha),
            })
        };
        Ok(paths.iter().filter_map(file).collect())
    }

    fn files(&self) -> Result<Vec<String>, Fault> {
        Ok(self.walk().into_keys().collect())
    }

    fn snapshot(&self, inspector: &mut dyn Inspector) -> Result<TreeState, Fault> {
        let head = self.head_tree().unwrap_or_else(|| self.commit_tree(None));
        self.inspect(&head, inspector)?;
        inspector.check()?;
        self.state()
    }

    fn changes_since(
        &self,
        commit: Option<&str>,
        to: &TreeState,
        _: &mut dyn Inspector,
    ) -> Result<TreeDiff, Fault> {
        self.diff(&self.commit_tree(commit), &to.tree)
    }

    fn changes_between(&self, from: &Value, to: &TreeState) -> Result<TreeDiff, Fault> {
        self.diff(from["tree"].as_str().unwrap(), &to.tree)
    }

    fn snapshot_file(&self, record: &Value, path: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        let files = self.tree(record["tree"].as_str().unwrap())?;
        sink(&fs::read(self.store("blobs", &files[path].1)).unwrap());
        Ok(())
    }

    fn verify(
        &self,
        expected: &WorktreeSnapshot,
        _: Reading,
        inspector: &mut dyn Inspector,
    ) -> Result<(TreeState, Vec<TreeChange>), Fault> {
        let state = self.state()?;
        if state.tree == expected.tree {
            return Ok((state, Vec::new()));
        }
        self.inspect(&expected.tree, inspector)?;
        let changes = self.diff(&expected.tree, &state.tree)?.changes;
        Ok((state, changes))
    }
}

impl WalkedTree {
    fn state(&self) -> Result<TreeState, Fault> {
        let tree = self.keep_tree();
        let head_tree = self.head_tree().unwrap_or_else(|| self.commit_tree(None));
        let changes = self.diff(&head_tree, &tree)?.changes;
        let staged = fs::read_to_string(self.root.join(STORE).join("staged")).unwrap_or_default();
        let report: String = changes
            .iter()
            .map(|change| format!("1 .M N... 100644 100644 100644 a a {}\0", change.path))
            .collect();
        Ok(TreeState {
            paths: self.walk().into_keys().collect(),
            head: self.head()?,
            record: json!({ "tree": tree }),
            tree,
            stash: fs::read_to_string(self.root.join(STORE).join("stash")).ok(),
            status_report: format!("{report}{staged}"),
            clean: changes.is_empty(),
            submodules: Vec::new(),
        })
    }

    /// Passes every file that differs from a tree to the inspector.
    fn inspect(&self, tree: &str, inspector: &mut dyn Inspector) -> Result<(), Fault> {
        inspector.restart();
        let before = self.tree(tree)?;
        for (path, (mode, bytes)) in self.walk() {
            if before.get(&path) != Some(&(mode, Sha256Hash::of(&bytes).to_string())) {
                inspector.inspect(&path, &[]);
                inspector.inspect(&path, &bytes);
            }
        }
        Ok(())
    }

    fn commit_tree(&self, commit: Option<&str>) -> String {
        match commit {
            Some(commit) => fs::read_to_string(self.store("commits", commit)).unwrap(),
            None => {
                self.keep("trees", &empty_tree(), b"{}");
                empty_tree()
            }
        }
    }

    fn diff(&self, from: &str, to: &str) -> Result<TreeDiff, Fault> {
        let (before, after) = (self.tree(from)?, self.tree(to)?);
        let mut diff = TreeDiff::default();
        let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let (old, new) = (before.get(path), after.get(path));
            if old == new {
                continue;
            }
            let status = match (old, new) {
                (None, _) => ChangeStatus::Added,
                (_, None) => ChangeStatus::Deleted,
                (Some((_, old)), Some((_, new))) if old == new => ChangeStatus::ModeChanged,
                _ => ChangeStatus::Modified,
            };
            diff.stat.files += 1;
            diff.patch.extend(format!("diff {path}\n").bytes());
            for (sign, side, count) in
                [('-', old, &mut diff.stat.deletions), ('+', new, &mut diff.stat.insertions)]
            {
                let Some((_, sha)) = side else { continue };
                let bytes = fs::read(self.store("blobs", sha)).unwrap();
                for line in String::from_utf8_lossy(&bytes).lines() {
                    *count += 1;
                    diff.patch.extend(format!("{sign}{line}\n").bytes());
                }
            }
            diff.changes.push(TreeChange {
                path: path.clone(),
                previous_path: None,
                status,
                sha256: new.map(|(_, sha)| sha.clone()),
                previous_sha256: old.map(|(_, sha)| sha.clone()),
                mode: new.map(|(mode, _)| mode.clone()),
                previous_mode: old.map(|(mode, _)| mode.clone()),
                size_bytes: new.map(|(_, sha)| self.size(sha)),
            });
        }
        Ok(diff)
    }
}
