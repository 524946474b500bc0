//! A test repository with its own home and configuration, isolated from those of the machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use baton_core::task::{ChangeStatus, TreeChange, TreeDiff};
use baton_git::{Git, ObjectStore, PermitAll, RepoPath, Repository, Snapshot, Verification};
use tempfile::TempDir;

pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// Creates a repository without a commit.
    pub(crate) fn new() -> Self {
        Self::with_arguments(&[])
    }

    pub(crate) fn with_arguments(arguments: &[&str]) -> Self {
        // In memory if possible: thousands of histories need no disk.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        std::fs::create_dir(folder.path().join("checkout")).unwrap();
        let sandbox = Self { folder };
        let configuration = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n\
                             [core]\n\tfsync = none\n[gc]\n\tauto = 0\n[advice]\n\taddEmbeddedRepo = false\n";
        std::fs::write(sandbox.home().join(".gitconfig"), configuration).unwrap();
        sandbox.git(&[&["init", "--quiet"], arguments].concat());
        sandbox
    }

    /// Creates a repository with one commit of these files.
    pub(crate) fn with_files(files: &[(&str, &str)]) -> Self {
        let sandbox = Self::new();
        for (path, content) in files {
            sandbox.write(path, content);
        }
        sandbox.commit();
        sandbox
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("checkout")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        let home = self.home().into_os_string();
        [("PATH", path), ("HOME", home), ("GIT_CONFIG_NOSYSTEM", "1".into())]
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    pub(crate) fn program(&self) -> Git {
        Git::find(self.environment()).unwrap()
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.root()).env_clear().envs(self.environment());
        command
    }

    pub(crate) fn try_git<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs git like a user; it must succeed.
    pub(crate) fn git<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Vec<u8> {
        let output = self.try_git(arguments);
        let shown: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_owned()).collect();
        assert!(output.status.success(), "git {shown:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub(crate) fn git_text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git(arguments)).unwrap().trim().to_owned()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
    }

    pub(crate) fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(path.as_ref()))
    }

    pub(crate) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::discover(&self.program(), &self.root()).unwrap()
    }

    pub(crate) fn object_store(&self) -> ObjectStore {
        self.object_store_for(&self.repository())
    }

    pub(crate) fn object_store_for(&self, repository: &Repository) -> ObjectStore {
        let excluded = [RepoPath::new(".agent-output/")];
        ObjectStore::open(self.folder.path().join("object store"), repository, excluded).unwrap()
    }

    /// Takes a snapshot, runs `between`, and verifies.
    pub(crate) fn verified(&self, between: impl FnOnce(&Self)) -> (Snapshot, Verification) {
        let object_store = self.object_store();
        let expected = self.repository().capture(&object_store, &mut PermitAll).unwrap().snapshot;
        between(self);
        let verification = self.repository().verify(&object_store, &expected, &mut PermitAll).unwrap();
        (expected, verification)
    }

    /// Takes a snapshot, runs `between`, and returns the changes.
    pub(crate) fn differences(&self, between: impl FnOnce(&Self)) -> Vec<TreeChange> {
        self.verified(between).1.changes
    }
}

/// Returns the paths of changed files, each with the letter of its change.
pub(crate) fn file_letters(changes: &[TreeChange]) -> Vec<String> {
    let letter = |status| match status {
        ChangeStatus::Added => 'A',
        ChangeStatus::Deleted => 'D',
        ChangeStatus::Modified => 'M',
        ChangeStatus::ModeChanged => 'X',
        ChangeStatus::Renamed => 'R',
        ChangeStatus::TypeChanged => 'T',
    };
    changes.iter().map(|change| format!("{} {}", letter(change.status), change.path)).collect()
}

/// Returns all affected paths, sorted, including the previous paths of renames.
pub(crate) fn paths_of(diff: &TreeDiff) -> Vec<String> {
    let paths = diff.changes.iter().flat_map(|change| [Some(&change.path), change.previous_path.as_ref()]);
    paths.flatten().cloned().collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}
