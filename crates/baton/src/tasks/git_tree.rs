//! Working tree backend of `baton-task`, implemented with `baton-git`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

use baton_core::{ErrorCode, Fault, Repo};
use baton_git::{Capture, GitError, ObjectStore, RepoPath, Repository, Snapshot};
use baton_task::rules::{Head, Submodule, TreeChange, TreeDiff, TreeState, WorktreeSnapshot};
use baton_task::{Inspector, OBJECTS_FOLDER, OUTPUT_FOLDER, Reading, UncommittedFile, WorkingTree};
use serde_json::Value;

use crate::checkout::{fault, git, repository_at};

/// Working tree of a checkout. Git is called on first use, so verbs that do not need it run without git.
pub(super) struct GitTree {
    root: PathBuf,
    found: OnceLock<Repository>,
    /// Discovery of the repository in the background.
    pending: Mutex<Option<Discovery>>,
    /// Kept open while this tree is used, so that new objects are not swept before a context refers to them.
    object_store: OnceLock<ObjectStore>,
}

type Discovery = JoinHandle<Result<Repository, Fault>>;

impl GitTree {
    pub(super) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            found: OnceLock::new(),
            pending: Mutex::new(None),
            object_store: OnceLock::new(),
        }
    }

    fn pending(&self) -> Option<Discovery> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn repository(&self) -> Result<&Repository, Fault> {
        if let Some(repository) = self.found.get() {
            return Ok(repository);
        }
        let repository = match self.pending().map(JoinHandle::join) {
            Some(Ok(discovered)) => discovered?,
            Some(Err(_)) | None => discover(&self.root)?,
        };
        let same = |one: &Path, other: &Path| one.canonicalize().ok() == other.canonicalize().ok();
        if !same(repository.root(), &self.root) {
            let message =
                format!("the working tree of {} is {}", self.root.display(), repository.root().display());
            return Err(Fault::new(ErrorCode::NotFound, message).hint("run the command there"));
        }
        Ok(self.found.get_or_init(|| repository))
    }

    /// Returns the private object folder. Baton's own files are excluded from snapshots.
    fn object_store(&self, repository: &Repository) -> Result<ObjectStore, Fault> {
        if let Some(object_store) = self.object_store.get() {
            return Ok(object_store.clone());
        }
        let folder = self.root.join(OUTPUT_FOLDER).join(OBJECTS_FOLDER);
        let object_store = ObjectStore::open(folder, repository, excluded()).map_err(fault)?;
        Ok(self.object_store.get_or_init(|| object_store).clone())
    }
}

fn discover(root: &Path) -> Result<Repository, Fault> {
    Repository::discover(&git()?, root).map_err(fault)
}

fn excluded() -> [RepoPath; 1] {
    [RepoPath::new(OUTPUT_FOLDER)]
}

impl WorkingTree for GitTree {
    fn prepare(&self) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.is_none() && self.found.get().is_none() {
            let root = self.root.clone();
            // Without a thread the first call that needs the repository discovers it.
            *pending = Builder::new().name("baton-discover".into()).spawn(move || discover(&root)).ok();
        }
    }

    fn repository_name(&self) -> Option<Repo> {
        match self.found.get() {
            Some(repository) => repository.name(),
            None => repository_at(&self.root).ok().flatten(),
        }
    }

    fn head(&self) -> Result<Head, Fault> {
        Ok(head(self.repository()?.head()))
    }

    fn resolve_commit(&self, revision: &str) -> Result<String, Fault> {
        let found = self.repository()?.resolve_commit(revision).map_err(fault)?;
        found.map(|id| id.to_string()).ok_or_else(|| {
            Fault::invalid("base_commit", format!("there is no commit {revision}"))
                .hint("run git log --oneline to list the commits")
        })
    }

    fn uncommitted(&self) -> Result<Vec<UncommittedFile>, Fault> {
        self.repository()?.uncommitted(&excluded()).map_err(fault)
    }

    fn files(&self) -> Result<Vec<String>, Fault> {
        let files = self.repository()?.files(&excluded()).map_err(fault)?;
        Ok(files.iter().map(RepoPath::to_string).collect())
    }

    fn snapshot(&self, inspector: &mut dyn Inspector) -> Result<TreeState, Fault> {
        let repository = self.repository()?;
        let object_store = self.object_store(repository)?;
        match repository.capture(&object_store, inspector) {
            Ok(capture) => state(capture),
            Err(error) => Err(inspector.check().err().unwrap_or_else(|| fault(error))),
        }
    }

    fn changes_since(
        &self,
        commit: Option<&str>,
        to: &TreeState,
        inspector: &mut dyn Inspector,
    ) -> Result<TreeDiff, Fault> {
        let object_store = self.object_store(self.repository()?)?;
        let commit = commit.map(|id| id.parse().map_err(|_| invalid_object_id(id))).transpose()?;
        object_store.changes_since(commit, &snapshot_of(&to.record)?, inspector).map_err(fault)
    }

    fn changes_between(&self, from: &Value, to: &TreeState) -> Result<TreeDiff, Fault> {
        let object_store = self.object_store(self.repository()?)?;
        let (from, to) = (snapshot_of(from)?, snapshot_of(&to.record)?);
        object_store.changes_between(&from, &to).map_err(fault)
    }

    fn verify(
        &self,
        expected: &WorktreeSnapshot,
        reading: Reading,
        inspector: &mut dyn Inspector,
    ) -> Result<(TreeState, Vec<TreeChange>), Fault> {
        let repository = self.repository()?;
        let object_store = match reading {
            Reading::Changed => self.object_store(repository)?,
            Reading::All => self.object_store(repository)?.rereading(),
        };
        match repository.verify(&object_store, &snapshot_of(&expected.record)?, inspector) {
            Ok(verification) => Ok((state(verification.current)?, verification.changes)),
            // The objects of the earlier tree were removed; the difference is still known from the ids.
            Err(GitError::CommandFailed { .. } | GitError::UnexpectedOutput { .. }) => {
                Ok((state(repository.capture_without_storing(&object_store).map_err(fault)?)?, Vec::new()))
            }
            Err(error) => Err(fault(error)),
        }
    }

    fn snapshot_file(&self, record: &Value, path: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        let object_store = self.object_store(self.repository()?)?;
        let name = path.parse::<RepoPath>().map_err(|error| Fault::invalid("path", error))?;
        object_store.file(&snapshot_of(record)?, &name, sink).map_err(fault)
    }

    fn keep_only(&self, snapshots: &[WorktreeSnapshot], trees: &[String]) -> Result<(), Fault> {
        let object_store = self.object_store(self.repository()?)?;
        let mut kept = Vec::new();
        for snapshot in snapshots {
            kept.extend(snapshot_of(&snapshot.record)?.objects());
        }
        for tree in trees {
            kept.push(tree.parse().map_err(|_| invalid_object_id(tree))?);
        }
        let freed = object_store.sweep(&kept).map_err(fault)?;
        tracing::debug!(freed_bytes = freed, "deleted unused snapshot objects");
        Ok(())
    }
}

fn invalid_object_id(id: &str) -> Fault {
    Fault::new(ErrorCode::TaskCorrupt, format!("`{id}` is not an object id"))
}

fn snapshot_of(record: &Value) -> Result<Snapshot, Fault> {
    serde_json::from_value(record.clone()).map_err(|error| {
        Fault::new(ErrorCode::TaskCorrupt, "cannot read the record of a snapshot").caused_by(error)
    })
}

fn head(head: &baton_git::Head) -> Head {
    Head { commit: head.commit().map(|id| id.to_string()), branch: head.branch().map(str::to_owned) }
}

fn state(capture: Capture) -> Result<TreeState, Fault> {
    let snapshot = capture.snapshot;
    let record = serde_json::to_value(&snapshot)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot write the snapshot").caused_by(error))?;
    let submodules = snapshot.nested.iter().map(|nested| Submodule {
        path: nested.path.to_string(),
        commit: nested.commit.map(|id| id.to_string()),
        registered: nested.tracked,
    });
    Ok(TreeState {
        head: head(&snapshot.head),
        tree: snapshot.tree.to_string(),
        clean: snapshot.clean,
        stash: snapshot.stash.as_ref().map(|stash| stash.tip.to_string()),
        status_report: report(&capture.status.report),
        submodules: submodules.collect(),
        record,
        paths: capture.files.into_iter().map(|file| file.path.into()).collect(),
    })
}

/// Formats a report as text. In a report that is not UTF-8, paths are written like in all other fields, and there is no
/// final NUL, unlike in all other reports.
fn report(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut is_previous_path = false;
    let formatted = |record: &[u8]| {
        // Number of fields before the path, which are ASCII.
        let fields = match record.first() {
            _ if is_previous_path => 0,
            Some(b'?' | b'!') => 1,
            Some(b'1') => 8,
            Some(b'2') => 9,
            Some(b'u') => 10,
            _ => 0,
        };
        is_previous_path = fields == 9;
        let start: usize = record.split_inclusive(|byte| *byte == b' ').take(fields).map(<[u8]>::len).sum();
        let (fields, path) = record.split_at(start);
        format!("{}{}", String::from_utf8_lossy(fields), RepoPath::new(path))
    };
    let records = bytes.strip_suffix(b"\0").unwrap_or(bytes).split(|byte| *byte == 0);
    records.map(formatted).collect::<Vec<_>>().join("\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_utf8_are_quoted_one_by_one() {
        let changed = "1 .M N... 100644 100644 100644 aaa bbb a b";
        let renamed = "2 R. N... 100644 100644 100644 aaa bbb R100";
        let rest = b" new \xe9\0old \xe9\0? \"\0? caf\xc3\xa9\0";
        let bytes = [changed.as_bytes(), b"\0", renamed.as_bytes(), rest].concat();
        let rest = "\"new \\351\"\0\"old \\351\"\0? \"\\\"\"\0? caf\u{e9}";
        assert_eq!(report(&bytes), format!("{changed}\0{renamed} {rest}"));
    }

    #[test]
    fn non_utf8_reports_are_distinct_from_their_escaped_text() {
        assert_eq!(report(b"? caf\xc3\xa9\0"), "? caf\u{e9}\0");
        assert_eq!(report(b"? caf\xe9\0"), r#"? "caf\351""#);
        assert_ne!(report(b"? caf\xe9\0"), report(b"? \"caf\\351\"\0"));
    }
}
