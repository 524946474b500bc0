//! The checkout that contains the working folder: its root, the name of its repository, and git errors as faults.

use std::path::{Component, Path, PathBuf};

use baton_core::{ErrorCode, Fault, Repo};
use baton_git::{Git, GitError, Repository};

/// Finds the root of the checkout that contains a folder, without running git.
pub(crate) fn find_root(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// Resolves `.` and `..` in a path without reading the file system.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            part => normal.push(part),
        }
    }
    normal
}

/// Finds git on the `PATH` of this process.
pub(crate) fn git() -> Result<Git, Fault> {
    Git::find(std::env::vars_os()).map_err(fault)
}

/// Returns the name of the repository that contains the working folder; `None` outside of a checkout.
pub(crate) fn repository_here() -> Result<Option<Repo>, Fault> {
    let Some(root) = std::env::current_dir().ok().as_deref().and_then(find_root) else { return Ok(None) };
    repository_at(&root)
}

/// Returns the name of the repository with this checkout root.
pub(crate) fn repository_at(root: &Path) -> Result<Option<Repo>, Fault> {
    Repository::name_at(&git()?, root).map_err(fault)
}

/// Converts a git error to a fault with a hint.
pub(crate) fn fault(error: GitError) -> Fault {
    let message = match std::error::Error::source(&error) {
        // The message of this error includes its source.
        Some(_) if matches!(error, GitError::Folder { .. }) => error.to_string(),
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    match &error {
        GitError::NotARepository { .. } | GitError::BareRepository { .. } => {
            Fault::new(ErrorCode::NotFound, message).hint("go to the checkout of the task, then try again")
        }
        GitError::DubiousOwnership { path } => Fault::new(ErrorCode::Forbidden, message).hint(format!(
            "if you trust this checkout, run git config --global --add safe.directory '{}'",
            path.display()
        )),
        GitError::GitMissing { .. } | GitError::GitTooOld { .. } | GitError::NotRunnable { .. } => {
            Fault::new(ErrorCode::GitUnavailable, message)
                .hint("install git 2.31 or newer and put it on the PATH, then try again")
        }
        GitError::Changing { .. } | GitError::TimedOut { .. } => Fault::new(ErrorCode::Overloaded, message)
            .hint("wait until other programs stop writing to the checkout, then try again"),
        GitError::Unreadable { path, .. } => Fault::new(ErrorCode::Internal, message)
            .hint(format!("make {path} readable, ignore it or remove it, then try again")),
        GitError::Folder { .. } => Fault::new(ErrorCode::StoreUnavailable, message)
            .hint("check the permissions and the space of the disk, then try again"),
        GitError::DamagedIndex { .. } => Fault::new(ErrorCode::Internal, message).hint(
            "run git status to see the problem; git reset recreates the index and does not change files",
        ),
        GitError::OtherObjectFormat { path } => Fault::new(ErrorCode::TaskConflict, message)
            .hint(format!("remove {}; the next snapshot recreates it", path.display())),
        GitError::Withheld
        | GitError::CommandFailed { .. }
        | GitError::OutputTooLarge { .. }
        | GitError::UnexpectedOutput { .. } => Fault::new(ErrorCode::Internal, message)
            .hint("run git status in the checkout to check the repository"),
    }
}
