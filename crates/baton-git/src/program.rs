//! Invocation of git. Every call of git starts here.
//!
//! - Nothing from the repository is executed: no hooks, no file-system monitor, no filters (their names are read from
//!   the configuration and cleared), no external diff, no text conversion, no pager, no editor, no prompt, no lazy
//!   fetch, no access to submodules beyond their checked-out commit.
//! - Nothing is written: no optional locks; new objects are written to the object store.
//! - Results are predictable: the caller's `GIT_*` variables are removed, except those that locate configuration or
//!   limit repository discovery; messages are in English; paths are NUL-terminated; replacement objects are not
//!   applied.
//! - Settings that the caller gives in the environment (`GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_n`,
//!   `GIT_CONFIG_VALUE_n`) apply as they do for git, unless this list overrides them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::error::GitError;
use crate::process::{self, Ended, Limits, ProcessError};

/// The git program and its environment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// Settings from `GIT_CONFIG_COUNT` and its variables.
    settings: Vec<(OsString, OsString)>,
    limits: Limits,
}

/// Git variables that users set on purpose and that do not change what is examined.
const KEPT_VARIABLES: &[&str] = &[
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
];

/// Variables of every call.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_EDITOR", "false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LANGUAGE", "C"),
    ("LC_ALL", "C"),
];

/// Settings that every call overrides.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.untrackedCache", "false"),
    ("core.askPass", ""),
    ("core.quotePath", "true"),
];

impl Git {
    /// Finds `git` on the `PATH` of the given environment, which its child processes will see.
    ///
    /// # Errors
    ///
    /// [`GitError::GitMissing`].
    pub fn find(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, GitError> {
        let environment: Vec<_> = environment.into_iter().collect();
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let program = std::env::split_paths(&path.unwrap_or_default())
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| GitError::GitMissing { program: "git".into() })?;
        Ok(Self::at(program, environment))
    }

    /// Uses a specific program as git.
    pub fn at(
        program: impl Into<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let kept = |name: &OsStr| {
            !name.as_bytes().starts_with(b"GIT_")
                || KEPT_VARIABLES.iter().any(|kept| name == OsStr::new(kept))
        };
        let environment: Vec<_> = environment.into_iter().collect();
        let settings = settings_of(&environment);
        let environment = environment.into_iter().filter(|(name, _)| kept(name)).collect();
        let (program, limits) = (program.into(), Limits::default());
        Self { inner: Arc::new(Inner { program, environment, settings, limits }) }
    }

    /// Returns the same git with other limits.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { inner: Arc::new(Inner { limits, ..Inner::clone(&self.inner) }) }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.inner.limits
    }

    pub(crate) fn variable(&self, wanted: &str) -> Option<&OsStr> {
        let found = self.inner.environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_os_str())
    }

    /// Starts a call of a subcommand in a folder.
    pub(crate) fn call(&self, folder: &Path, subcommand: &'static str) -> Invocation<'_> {
        let mut command = Command::new(&self.inner.program);
        command.current_dir(folder).env_clear();
        command.envs(self.inner.environment.iter().map(|(name, value)| (name, value)));
        command.envs(VARIABLES.iter().copied());
        // The last value of a setting takes effect.
        let own = SETTINGS.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let settings = self.inner.settings.iter().cloned().chain(own).collect();
        Invocation { git: self, command, subcommand, arguments: Vec::new(), settings, input: Vec::new() }
    }
}

/// Reads the settings of `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_n` and `GIT_CONFIG_VALUE_n`. If one is missing, git
/// refuses to run; here the list ends before it.
fn settings_of(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let variable = |wanted: &str| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let count =
        variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0_usize);
    let setting = |number: usize| {
        let key = variable(&format!("GIT_CONFIG_KEY_{number}"))?;
        Some((key.clone(), variable(&format!("GIT_CONFIG_VALUE_{number}"))?.clone()))
    };
    // Like `GIT_DIR`, these settings would change where the checkout is.
    let misleading =
        |key: &OsString| ["core.bare", "core.worktree"].iter().any(|name| key.eq_ignore_ascii_case(name));
    (0..count).map_while(setting).filter(|(key, _)| !misleading(key)).collect()
}

/// A git call that has not been made yet.
pub(crate) struct Invocation<'a> {
    git: &'a Git,
    command: Command,
    subcommand: &'static str,
    arguments: Vec<OsString>,
    settings: Vec<(OsString, OsString)>,
    input: Vec<u8>,
}

impl Invocation<'_> {
    pub(crate) fn limits(&self) -> Limits {
        self.git.limits()
    }

    pub(crate) fn arguments<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn setting(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Removes the settings that the caller gave in the environment.
    pub(crate) fn without_user_settings(mut self) -> Self {
        self.settings.drain(..self.git.inner.settings.len());
        self
    }

    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Makes the call and returns its output for any exit code.
    pub(crate) fn attempt(self) -> Result<(Vec<u8>, Ended), GitError> {
        let mut output = Vec::new();
        let limits = self.git.inner.limits;
        let ended = self.run(limits, &mut |piece| output.extend_from_slice(piece))?;
        Ok((output, ended))
    }

    /// Makes the call and returns its output. A non-zero exit code is an error.
    pub(crate) fn output(self) -> Result<Vec<u8>, GitError> {
        let subcommand = self.subcommand;
        let (output, ended) = self.attempt()?;
        require_success(subcommand, &ended).map(|()| output)
    }

    /// Makes the call and passes its output to `sink` in pieces, for any exit code. The output is not held in
    /// memory and may have any length.
    pub(crate) fn stream(self, sink: &mut dyn FnMut(&[u8])) -> Result<Ended, GitError> {
        let limits = Limits { output_bytes: u64::MAX, ..self.git.inner.limits };
        self.run(limits, sink)
    }

    fn run(mut self, limits: Limits, sink: &mut dyn FnMut(&[u8])) -> Result<Ended, GitError> {
        self.command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (number, (name, value)) in self.settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), name);
            self.command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self.command.arg("--no-pager").arg(self.subcommand).args(&self.arguments);
        let command = self.subcommand;
        process::run(&mut self.command, &self.input, limits, sink).map_err(|error| match error {
            ProcessError::Missing => {
                GitError::GitMissing { program: self.git.inner.program.display().to_string() }
            }
            ProcessError::TimedOut => GitError::TimedOut { command, limit: limits.time },
            ProcessError::TooLarge => GitError::OutputTooLarge { command, limit: limits.output_bytes },
            ProcessError::Io(source) => GitError::NotRunnable { command, source },
        })
    }
}

pub(crate) fn require_success(command: &'static str, ended: &Ended) -> Result<(), GitError> {
    if ended.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Err(GitError::CommandFailed { command, code: ended.status.code(), stderr })
}
