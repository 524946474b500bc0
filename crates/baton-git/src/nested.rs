//! Repositories inside the checkout: submodules and others.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::object::{ObjectFormat, ObjectId};
use crate::path::RepoPath;
use crate::program::Git;

/// A repository inside the checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedRepository {
    pub path: RepoPath,
    /// True for a submodule, which the outer repository tracks; false for an embedded repository.
    pub tracked: bool,
    /// Checked-out commit; `None` if it has no commit yet, in which case the tree cannot contain it.
    pub commit: Option<ObjectId>,
}

/// State of a folder that may hold a repository.
pub(crate) enum NestedState {
    /// No repository: a submodule that was not fetched, or plain files.
    None,
    /// A repository without a commit.
    Unborn,
    /// A repository at this commit.
    Commit(ObjectId),
}

/// Returns the commit that the repository in a folder has checked out.
pub(crate) fn nested_state(git: &Git, folder: &Path, format: ObjectFormat) -> Result<NestedState, GitError> {
    let Some(git_folder) = GitFolder::of(folder) else { return Ok(NestedState::None) };
    let Some(head) = &git_folder.head else { return Ok(NestedState::None) };
    let id = match head.strip_prefix("ref:") {
        None => ObjectId::from_hex(head.as_bytes()),
        // With the reftable format, HEAD is a stub and only git can resolve it.
        Some(_) if git_folder.common_dir.join("reftable").is_dir() => {
            let call = git.call(folder, "rev-parse").variable("GIT_DIR", &git_folder.git_dir);
            let (output, ended) = call.arguments(["--verify", "--quiet", "HEAD"]).attempt()?;
            ended.status.success().then(|| ObjectId::from_hex(output.trim_ascii_end())).flatten()
        }
        Some(reference) => git_folder.commit_of(reference.trim()),
    };
    let id = id.filter(|id| id.format() == format);
    Ok(id.map_or(NestedState::Unborn, NestedState::Commit))
}

/// The git folder of a checkout, read without git.
pub(crate) struct GitFolder {
    git_dir: PathBuf,
    /// Folder that all checkouts of the repository share.
    pub(crate) common_dir: PathBuf,
    /// Content of `HEAD`, without the line end; `None` if it cannot be read.
    pub(crate) head: Option<String>,
}

impl GitFolder {
    /// Finds the git folder of a checkout: `.git`, or the target of the file `.git`.
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let path = root.join(".git");
        let git_dir = if fs::metadata(&path).ok()?.is_dir() {
            path
        } else {
            root.join(fs::read_to_string(&path).ok()?.strip_prefix("gitdir:")?.trim())
        };
        let head = fs::read_to_string(git_dir.join("HEAD")).ok().map(|head| head.trim_end().to_owned());
        let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
            Ok(path) => git_dir.join(path.trim_end()),
            Err(_) => git_dir.clone(),
        };
        Some(Self { git_dir, common_dir, head })
    }

    /// Returns the checked-out branch; `None` for a detached head, and for the reftable format, in which `HEAD` is a stub.
    pub(crate) fn branch(&self) -> Option<&str> {
        let branch = self.head.as_ref()?.strip_prefix("ref: refs/heads/")?;
        // Git accepts no branch with this name.
        (branch != ".invalid").then_some(branch)
    }

    /// Returns the commit of a reference; `None` if it has none.
    pub(crate) fn commit_of(&self, reference: &str) -> Option<ObjectId> {
        let loose = |folder: &PathBuf| fs::read_to_string(folder.join(reference)).ok();
        let id = |digits: &str| ObjectId::from_hex(digits.as_bytes());
        let loose = loose(&self.git_dir).or_else(|| loose(&self.common_dir));
        loose.and_then(|digits| id(digits.trim_end())).or_else(|| {
            let packed = fs::read_to_string(self.common_dir.join("packed-refs")).ok()?;
            packed.lines().find_map(|line| id(line.strip_suffix(reference)?.strip_suffix(' ')?))
        })
    }
}
