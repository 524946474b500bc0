//! The checkout that a verb is called in: where it is, what its repository is called, and what git's failures mean.

use std::path::{Path, PathBuf};

use baton_core::{ErrorCode, Fault, Repo};
use baton_git::{Git, GitError, Repository};

/// Finds the root of the checkout around a folder, without asking git.
pub(crate) fn find_root(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// Finds git on the path of this process.
pub(crate) fn git() -> Result<Git, Fault> {
    Git::find(std::env::vars_os()).map_err(fault)
}

/// Names the repository around the working folder; `None` where there is none.
pub(crate) fn repository_here() -> Result<Option<Repo>, Fault> {
    let Some(root) = std::env::current_dir().ok().as_deref().and_then(find_root) else { return Ok(None) };
    repository_at(&root)
}

/// Names the repository whose checkout has its root here.
pub(crate) fn repository_at(root: &Path) -> Result<Option<Repo>, Fault> {
    Repository::name_at(&git()?, root).map_err(fault)
}

/// Says what a failure of git means, and what to do about it.
pub(crate) fn fault(error: GitError) -> Fault {
    let message = match std::error::Error::source(&error) {
        // These say it themselves.
        Some(_) if matches!(error, GitError::Folder { .. }) => error.to_string(),
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    match &error {
        GitError::NotARepository { .. } | GitError::BareRepository { .. } => {
            Fault::new(ErrorCode::NotFound, message).hint("go to the checkout of the task, then try again")
        }
        GitError::DubiousOwnership { path } => Fault::new(ErrorCode::Forbidden, message)
            .hint(format!("if you trust it: git config --global --add safe.directory '{}'", path.display())),
        GitError::GitMissing { .. } | GitError::GitTooOld { .. } | GitError::NotRunnable { .. } => {
            Fault::new(ErrorCode::GitUnavailable, message)
                .hint("install git 2.31 or newer and put it on the PATH, then try again")
        }
        GitError::Changing { .. } | GitError::TimedOut { .. } => Fault::new(ErrorCode::Overloaded, message)
            .hint("let whatever writes in the checkout finish, then try again"),
        GitError::Unreadable { path, .. } => Fault::new(ErrorCode::Internal, message)
            .hint(format!("make {path} readable, ignore it or remove it, then try again")),
        GitError::Folder { .. } => Fault::new(ErrorCode::StoreUnavailable, message)
            .hint("check the permissions and the space of the disk, then try again"),
        GitError::DamagedIndex { .. } => Fault::new(ErrorCode::Internal, message)
            .hint("git status says what is wrong; git reset makes the index anew and leaves files alone"),
        GitError::OtherObjectFormat { path } => Fault::new(ErrorCode::TaskConflict, message)
            .hint(format!("remove {}; snapshots begin anew", path.display())),
        GitError::Withheld
        | GitError::CommandFailed { .. }
        | GitError::OutputTooLarge { .. }
        | GitError::UnexpectedOutput { .. } => Fault::new(ErrorCode::Internal, message)
            .hint("git status in the checkout says whether the repository is whole"),
    }
}
