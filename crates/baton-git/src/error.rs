//! What can go wrong with a checkout, as far as a caller can act on it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::path::RepoPath;

/// A failure to look into a checkout. The user's repository is as it was.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git to run.
    #[error("the program `{program}` was not found")]
    GitMissing {
        /// What was looked for.
        program: String,
    },
    /// Git is older than what Baton needs.
    #[error("{found} is too old, {needed} or newer is needed")]
    GitTooOld {
        /// What `git version` says.
        found: String,
        /// The oldest version that will do.
        needed: &'static str,
    },
    /// The folder is in no repository.
    #[error("{path} is not in a git repository")]
    NotARepository {
        /// The folder that was given.
        path: PathBuf,
    },
    /// The folder is in a repository without a working tree, or inside a `.git` folder.
    #[error("{path} is in a repository without a working tree")]
    BareRepository {
        /// The folder that was given.
        path: PathBuf,
    },
    /// Git refuses a repository that belongs to another user (`safe.directory`).
    #[error("git does not trust {path}: it belongs to another user")]
    DubiousOwnership {
        /// The folder that was given.
        path: PathBuf,
    },
    /// A git command failed.
    #[error("`git {command}` failed{}: {stderr}", .code.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    CommandFailed {
        /// The subcommand.
        command: &'static str,
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
        /// What it said.
        stderr: String,
    },
    /// A git command took longer than allowed and was ended.
    #[error("`git {command}` did not finish within {limit:?}")]
    TimedOut {
        /// The subcommand.
        command: &'static str,
        /// How long it was given.
        limit: Duration,
    },
    /// A git command wrote more than allowed and was ended.
    #[error("`git {command}` wrote more than {limit} bytes")]
    OutputTooLarge {
        /// The subcommand.
        command: &'static str,
        /// How many bytes it was allowed.
        limit: u64,
    },
    /// Git could not be started or spoken to.
    #[error("`git {command}` could not be run")]
    NotRunnable {
        /// The subcommand.
        command: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Git answered in a way that is not understood.
    #[error("`git {command}` answered something unexpected: {problem}")]
    UnexpectedOutput {
        /// The subcommand.
        command: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The repository's index cannot be understood.
    #[error("the index of the repository is damaged: {problem}")]
    DamagedIndex {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file of the checkout cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file, relative to the checkout.
        path: RepoPath,
        /// What the system said.
        source: io::Error,
    },
    /// The checkout kept changing while it was being read.
    #[error("{path} kept changing while it was being read")]
    Changing {
        /// What changed last, relative to the checkout.
        path: RepoPath,
    },
    /// A folder or file outside the working tree cannot be read or written.
    #[error("{path}: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever looked at the working tree does not permit that it is stored.
    #[error("what is in the working tree may not be stored")]
    Withheld,
    /// The vault belongs to a repository with another object format.
    #[error("{path} holds objects of another format")]
    OtherObjectFormat {
        /// The vault's folder.
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
