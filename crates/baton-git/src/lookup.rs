//! Queries about a checkout that do not read its files: commits by name, paths, the repository's name.

use std::fs;
use std::path::Path;

use baton_core::Repo;

use crate::configuration::Configuration;
use crate::error::GitError;
use crate::nested::GitFolder;
use crate::object::ObjectId;
use crate::path::RepoPath;
use crate::program::{Git, require_success};
use crate::remote::repository_name;
use crate::repository::Repository;

impl Repository {
    /// Resolves a revision to a commit; `None` if there is no such commit or the name is ambiguous.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run.
    pub fn resolve_commit(&self, revision: &str) -> Result<Option<ObjectId>, GitError> {
        if revision.is_empty() || revision.contains('\0') {
            return Ok(None);
        }
        let wanted = format!("{revision}^{{commit}}");
        let call = self.call("rev-parse").arguments(["--verify", "--quiet", "--end-of-options"]);
        let (output, ended) = call.arguments([wanted]).attempt()?;
        let id = ended.status.success().then(|| output.trim_ascii_end());
        Ok(id.and_then(ObjectId::from_hex))
    }

    /// Lists the existing files that are tracked, or untracked and not ignored, sorted by path. Paths within `excluded`
    /// are omitted.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub fn files(&self, excluded: &[RepoPath]) -> Result<Vec<RepoPath>, GitError> {
        let arguments = ["-z", "--cached", "--others", "--exclude-standard"];
        let (call, _objects) = self.index_call("ls-files")?;
        let output = call.arguments(arguments).output()?;
        let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new);
        let mut paths: Vec<RepoPath> = paths
            .filter(|path| !excluded.iter().any(|folder| path.is_within(folder)))
            .filter(|path| self.root().join(path.as_path()).symlink_metadata().is_ok())
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the name of the repository whose checkout has its root here, like [`name`](Self::name), with one git
    /// call.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`], or an error of git.
    pub fn name_at(git: &Git, root: &Path) -> Result<Option<Repo>, GitError> {
        let git_folder =
            GitFolder::of(root).ok_or_else(|| GitError::NotARepository { path: root.to_owned() })?;
        let output = git.call(root, "config").arguments(["--list", "-z"]).output()?;
        Ok(name_of(&git_folder, &Configuration::read(&output), root))
    }

    /// Lists the local branches that are not merged into a main branch: `main`, `master` or the default branch of the
    /// remote. Returns `None` if there is no main branch.
    pub fn unmerged_branches(git: &Git, root: &Path) -> Result<Option<Vec<String>>, GitError> {
        let mut unmerged: Option<Vec<String>> = None;
        for main in ["refs/heads/main", "refs/heads/master", "refs/remotes/origin/HEAD"] {
            let condition = format!("--no-merged={main}");
            let call = git.call(root, "for-each-ref");
            let arguments = [condition.as_str(), "--format=%(refname)", "refs/heads"];
            let (output, ended) = call.arguments(arguments).attempt()?;
            if require_success("for-each-ref", &ended).is_err() {
                // There is no such branch.
                continue;
            }
            let output = String::from_utf8_lossy(&output);
            let names = output.lines().filter_map(|name| name.strip_prefix("refs/heads/"));
            let found: Vec<String> = names.map(str::to_owned).collect();
            unmerged = Some(match unmerged {
                Some(before) => before.into_iter().filter(|branch| found.contains(branch)).collect(),
                None => found,
            });
        }
        Ok(unmerged)
    }

    /// Reads name and head of a checkout without running git, for processes that must be fast. What only git can
    /// determine is `None`.
    pub fn read_head_info(root: &Path) -> Option<HeadInfo> {
        let git_folder = GitFolder::of(root)?;
        let text = fs::read_to_string(git_folder.common_dir.join("config")).unwrap_or_default();
        let name = Configuration::read_file(&text).and_then(|read| name_of(&git_folder, &read, root));
        let commit = match git_folder.branch() {
            Some(branch) => git_folder.commit_of(&format!("refs/heads/{branch}")),
            None => git_folder.head.as_ref().and_then(|head| ObjectId::from_hex(head.as_bytes())),
        };
        let branch = git_folder.branch().map(str::to_owned);
        Some(HeadInfo { name, branch, commit: commit.map(|id| id.to_string()) })
    }
}

fn name_of(git_folder: &GitFolder, configuration: &Configuration, root: &Path) -> Option<Repo> {
    let common_dir = git_folder.common_dir.canonicalize().unwrap_or_else(|_| git_folder.common_dir.clone());
    repository_name(configuration, git_folder.branch(), &common_dir, root)
}

/// Name, branch and commit of a checkout, read without running git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadInfo {
    /// Name of the repository.
    pub name: Option<Repo>,
    /// Checked-out branch; `None` if the head is detached or only git can read it.
    pub branch: Option<String>,
    /// Checked-out commit; `None` before the first commit or if only git can read it.
    pub commit: Option<String>,
}
