//! A discovered checkout: its location and its name.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use baton_core::Repo;
use tempfile::TempDir;

use crate::configuration::Configuration;
use crate::error::GitError;
use crate::head::Head;
use crate::object::{ObjectFormat, ObjectId};
use crate::path::quoted;
use crate::process::Ended;
use crate::program::{Git, Invocation, require_success};
use crate::remote::repository_name;

const MIN_GIT_VERSION: &str = "git version 2.31";

/// A checkout of a git repository. `HEAD` is as of its discovery.
#[derive(Debug, Clone)]
pub struct Repository {
    git: Git,
    paths: CheckoutPaths,
    head: Head,
    configuration: Configuration,
}

impl Repository {
    /// Finds the checkout that contains a folder.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`], [`GitError::BareRepository`], [`GitError::DubiousOwnership`],
    /// [`GitError::GitTooOld`], [`GitError::GitMissing`], and [`GitError::CommandFailed`] for other errors of git.
    pub fn discover(git: &Git, path: &Path) -> Result<Self, GitError> {
        if !path.is_dir() {
            return Err(GitError::NotARepository { path: path.to_owned() });
        }
        // The two calls are independent, so they run concurrently.
        let (paths, configuration) = std::thread::scope(|scope| {
            let configuration = scope.spawn(|| git.call(path, "config").arguments(["--list", "-z"]).output());
            let paths = CheckoutPaths::read(git, path);
            (paths, configuration.join())
        });
        let (paths, head) = paths?;
        let configuration =
            configuration.unwrap_or_else(|_| Err(GitError::unexpected("config", "the thread panicked")))?;
        let head = match head {
            Some(head) => head,
            None => unborn(git, path)?,
        };
        Ok(Self { git: git.clone(), paths, head, configuration: Configuration::read(&configuration) })
    }

    /// Returns the root of the checkout.
    pub fn root(&self) -> &Path {
        &self.paths.root
    }

    /// Returns the `.git` folder of this checkout; for a linked worktree, its own folder in the repository.
    pub fn git_dir(&self) -> &Path {
        &self.paths.git_dir
    }

    /// Returns the folder that all checkouts of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.paths.common_dir
    }

    /// Returns the hash function of object ids.
    pub const fn object_format(&self) -> ObjectFormat {
        self.paths.object_format
    }

    /// Returns `HEAD` as of the discovery of the checkout.
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Returns `owner/name` from the remote, or `local/<folder>`. All worktrees of a repository have the same name.
    pub fn name(&self) -> Option<Repo> {
        repository_name(&self.configuration, self.head.branch(), &self.paths.common_dir, &self.paths.root)
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub(crate) const fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) const fn has_ref_files(&self) -> bool {
        self.paths.has_ref_files
    }

    /// Starts a git call in this checkout, with all configured filter programs disabled.
    pub(crate) fn call(&self, subcommand: &'static str) -> Invocation<'_> {
        let mut call = self.git.call(&self.paths.root, subcommand);
        call = call.variable("GIT_DIR", &self.paths.git_dir).variable("GIT_WORK_TREE", &self.paths.root);
        for filter in self.configuration.subsections("filter") {
            for (name, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                call = call.setting(format!("filter.{filter}.{name}"), value);
            }
        }
        if self.configuration.flag("core.ignorecase") == Some(true) && !self.folds_case() {
            // A setting copied from another machine would hide files whose names differ only in case.
            call = call.setting("core.ignoreCase", "false");
        }
        call
    }

    /// Starts a call that reads the index. In a sparse checkout git writes trees when it expands or collapses the
    /// index: they go to a temporary folder, which exists as long as the returned guard.
    pub(crate) fn index_call(
        &self,
        subcommand: &'static str,
    ) -> Result<(Invocation<'_>, Option<TempDir>), GitError> {
        let call = self.call(subcommand);
        if self.configuration.flag("core.sparsecheckout") != Some(true) {
            return Ok((call, None));
        }
        let folder = tempfile::tempdir().map_err(GitError::folder(std::env::temp_dir()))?;
        let borrowed = quoted(self.paths.common_dir.join("objects").as_os_str().as_bytes());
        let call = call.variable("GIT_OBJECT_DIRECTORY", folder.path());
        Ok((call.variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", borrowed), Some(folder)))
    }

    /// Returns true if the file system ignores case in names.
    fn folds_case(&self) -> bool {
        self.paths.root.join(".GIT").symlink_metadata().is_ok()
    }
}

/// Output of `git rev-parse` for a folder.
#[derive(Debug, Clone)]
struct CheckoutPaths {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_format: ObjectFormat,
    has_ref_files: bool,
}

impl CheckoutPaths {
    /// Also returns `HEAD`; `None` on a branch without commits.
    fn read(git: &Git, path: &Path) -> Result<(Self, Option<Head>), GitError> {
        let arguments = [
            "--path-format=absolute",
            "--show-object-format",
            "--show-ref-format",
            "--is-bare-repository",
            "--git-dir",
            "--git-common-dir",
            "--show-toplevel",
            "HEAD",
            "--symbolic-full-name",
            "HEAD",
        ];
        let (output, ended) = git.call(path, "rev-parse").arguments(arguments).attempt()?;
        let lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
        // Git repeats arguments that it does not know.
        if lines
            .iter()
            .any(|line| line.starts_with(b"--path-format") || line.starts_with(b"--show-object-format"))
        {
            let version = git.call(path, "version").output()?;
            let found = String::from_utf8_lossy(&version).trim().to_owned();
            return Err(GitError::GitTooOld { found, needed: MIN_GIT_VERSION });
        }
        let object_format = match lines.first().copied() {
            Some(b"sha1") => ObjectFormat::Sha1,
            Some(b"sha256") => ObjectFormat::Sha256,
            _ => return Err(refusal(path, &ended)),
        };
        let has_ref_files = lines.get(1).is_none_or(|format| *format != b"reftable");
        let (root, git_dir, common_dir, head) = match &lines[..] {
            [_, _, _, git_dir, common_dir, root, commit, name, []] if ended.status.success() => {
                let head = head(commit, name)
                    .ok_or_else(|| GitError::unexpected("rev-parse", "HEAD is not a commit"))?;
                (folder(root), folder(git_dir), folder(common_dir), Some(head))
            }
            [_, _, _, git_dir, common_dir, root, b"HEAD", []] => {
                (folder(root), folder(git_dir), folder(common_dir), None)
            }
            // A value is missing.
            _ if !ended.status.success() && lines.len() < 8 => return Err(refusal(path, &ended)),
            // A name contains a line break: ask for each value separately.
            _ => (
                one_folder(git, path, "--show-toplevel")?,
                one_folder(git, path, "--git-dir")?,
                one_folder(git, path, "--git-common-dir")?,
                if ended.status.success() {
                    let mut last = lines.iter().rev().skip(1);
                    let (name, commit) = (last.next(), last.next());
                    commit.zip(name).and_then(|(commit, name)| head(commit, name))
                } else {
                    None
                },
            ),
        };
        Ok((Self { root, git_dir, common_dir, object_format, has_ref_files }, head))
    }
}

fn folder(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn one_folder(git: &Git, path: &Path, which: &str) -> Result<PathBuf, GitError> {
    let output = git.call(path, "rev-parse").arguments(["--path-format=absolute", which]).output()?;
    Ok(folder(output.strip_suffix(b"\n").unwrap_or(&output)))
}

fn head(commit: &[u8], name: &[u8]) -> Option<Head> {
    let commit = ObjectId::from_hex(commit)?;
    let name = String::from_utf8_lossy(name);
    Some(match name.as_ref() {
        "HEAD" => Head::Detached { commit },
        name => Head::Branch { name: name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(), commit },
    })
}

fn unborn(git: &Git, path: &Path) -> Result<Head, GitError> {
    let output = git.call(path, "symbolic-ref").arguments(["--short", "HEAD"]).output()?;
    Ok(Head::Unborn { name: String::from_utf8_lossy(&output).trim_end_matches('\n').to_owned() })
}

/// Converts git's message about an unusable folder to an error.
fn refusal(path: &Path, ended: &Ended) -> GitError {
    let complaint = String::from_utf8_lossy(&ended.stderr);
    let path = path.to_owned();
    if complaint.contains("dubious ownership") || complaint.contains("safe.directory") {
        GitError::DubiousOwnership { path }
    } else if complaint.contains("must be run in a work tree") {
        GitError::BareRepository { path }
    } else if complaint.contains("not a git repository") {
        GitError::NotARepository { path }
    } else {
        require_success("rev-parse", ended)
            .err()
            .unwrap_or_else(|| GitError::unexpected("rev-parse", "the answer is incomplete"))
    }
}
