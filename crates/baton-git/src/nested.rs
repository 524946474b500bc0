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
    /// Path of the repository.
    pub path: RepoPath,
    /// Whether the outer repository tracks it (a submodule) or not (embedded).
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
    let Some(git_dir) = git_dir(folder) else { return Ok(NestedState::None) };
    let Ok(head) = fs::read_to_string(git_dir.join("HEAD")) else { return Ok(NestedState::None) };
    let reference = match head.trim_end().strip_prefix("ref:") {
        None => return Ok(commit(head.trim_end(), format)),
        Some(reference) => reference.trim(),
    };
    let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
        Ok(path) => git_dir.join(path.trim_end()),
        Err(_) => git_dir.clone(),
    };
    // With the reftable format, HEAD is a stub and only git can resolve it.
    if common_dir.join("reftable").is_dir() {
        let call = git.call(folder, "rev-parse").variable("GIT_DIR", &git_dir);
        let (output, ended) = call.arguments(["--verify", "--quiet", "HEAD"]).attempt()?;
        let found = ended.status.success().then(|| String::from_utf8_lossy(&output).trim_end().to_owned());
        return Ok(found.map_or(NestedState::Unborn, |id| commit(&id, format)));
    }
    for folder in [&git_dir, &common_dir] {
        if let Ok(id) = fs::read_to_string(folder.join(reference)) {
            return Ok(commit(id.trim_end(), format));
        }
    }
    let packed = fs::read_to_string(common_dir.join("packed-refs")).unwrap_or_default();
    let found = packed.lines().find_map(|line| line.split_once(' ').filter(|(_, name)| *name == reference));
    Ok(found.map_or(NestedState::Unborn, |(id, _)| commit(id, format)))
}

fn commit(digits: &str, format: ObjectFormat) -> NestedState {
    let id = digits.parse::<ObjectId>().ok().filter(|id| id.format() == format);
    id.map_or(NestedState::Unborn, NestedState::Commit)
}

/// Returns the git folder of a repository: `.git`, or the target of the file `.git`.
pub(crate) fn git_dir(folder: &Path) -> Option<PathBuf> {
    let place = folder.join(".git");
    let meta = fs::metadata(&place).ok()?;
    if meta.is_dir() {
        return Some(place);
    }
    let text = fs::read_to_string(&place).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}
