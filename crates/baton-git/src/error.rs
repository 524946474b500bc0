//! Errors of reading a checkout, one variant for each way in which a caller can react.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::path::RepoPath;

/// An error while reading a checkout. The user's repository is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git is not installed.
    #[error("the program `{program}` was not found")]
    GitMissing { program: String },
    /// Git is older than the required version.
    #[error("{found} is too old; {needed} or newer is required")]
    GitTooOld {
        /// Output of `git version`.
        found: String,
        /// Oldest supported version.
        needed: &'static str,
    },
    /// The folder is not in a repository.
    #[error("{path} is not in a git repository")]
    NotARepository {
        /// The given folder.
        path: PathBuf,
    },
    /// The folder is in a repository without a working tree, or inside a `.git` folder.
    #[error("{path} is in a repository without a working tree")]
    BareRepository {
        /// The given folder.
        path: PathBuf,
    },
    /// Git rejects a repository that belongs to another user (`safe.directory`).
    #[error("git does not trust {path}: it belongs to another user")]
    DubiousOwnership {
        /// The given folder.
        path: PathBuf,
    },
    /// A git command failed.
    #[error("`git {command}` failed{}: {stderr}", .code.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    CommandFailed {
        /// The subcommand.
        command: &'static str,
        /// Exit code; `None` if a signal ended the command.
        code: Option<i32>,
        /// Standard error of the command.
        stderr: String,
    },
    /// A git command made no progress within its time limit and was killed.
    #[error("`git {command}` made no progress within {limit:?}")]
    TimedOut {
        /// The subcommand.
        command: &'static str,
        /// Time limit.
        limit: Duration,
    },
    /// A git command exceeded its output limit and was killed.
    #[error("`git {command}` wrote more than {limit} bytes")]
    OutputTooLarge {
        /// The subcommand.
        command: &'static str,
        /// Output limit in bytes.
        limit: u64,
    },
    /// Git could not be started, or communication with it failed.
    #[error("cannot run `git {command}`")]
    NotRunnable {
        /// The subcommand.
        command: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The output of git could not be parsed.
    #[error("cannot parse the output of `git {command}`: {problem}")]
    UnexpectedOutput {
        /// The subcommand.
        command: &'static str,
        /// What is wrong with the output.
        problem: String,
    },
    /// The index of the repository could not be parsed.
    #[error("the index of the repository is damaged: {problem}")]
    DamagedIndex {
        /// What is wrong with the index.
        problem: &'static str,
    },
    /// A file of the checkout cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// File, relative to the checkout.
        path: RepoPath,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The checkout kept changing while it was read.
    #[error("{path} kept changing while it was being read")]
    Changing {
        /// Last changed path, relative to the checkout.
        path: RepoPath,
    },
    /// A folder or file outside the working tree cannot be read or written.
    #[error("{path}: {source}")]
    Folder {
        /// Folder or file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The inspector does not permit storing the working tree.
    #[error("the working tree must not be stored")]
    Withheld,
    /// The object store belongs to a repository with another object format.
    #[error("{path} contains objects of another format")]
    OtherObjectFormat {
        /// Folder of the object store.
        path: PathBuf,
    },
}

impl GitError {
    pub(crate) fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Folder { path, source }
    }

    pub(crate) fn unexpected(command: &'static str, problem: impl Into<String>) -> Self {
        Self::UnexpectedOutput { command, problem: problem.into() }
    }
}
