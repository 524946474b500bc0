//! Folders, variables and program with which agents are set up.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use super::hook_command::Program;
use crate::checkout::find_root;
use crate::config::{Config, Sources};
use crate::exit::Exit;
use crate::output::Failure;

/// Environment variables that set the folders of agents.
const VARIABLES: [&str; 4] = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"];

/// Whose files are written: those of the user or of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Scope {
    /// For all projects of the user
    #[default]
    User,
    /// For the current project
    Project,
}

/// Folders, variables and program that setup uses.
#[derive(Debug, Clone)]
pub(crate) struct SetupEnvironment {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) program: Program,
    /// Whether hooks add a line about a file before it is edited: `recall.before_edit`.
    pub(crate) recalls_before_edit: bool,
    /// Environment variables that set the folders of agents.
    pub(crate) variables: Vec<(String, String)>,
    /// Folders of `PATH`.
    pub(crate) path: Vec<PathBuf>,
}

impl SetupEnvironment {
    /// Returns the folders, variables and program with which agents are set up.
    pub(crate) fn of_process(scope: Scope, config: &Config) -> Result<Self, Failure> {
        let cannot = |message: String| {
            Failure::new(Exit::Failure, "setup_failed", format!("cannot set up agents: {message}"))
        };
        let places = Sources::from_process(Vec::new()).places;
        let places = places
            .ok_or_else(|| cannot("the home folder is unknown".into()).hint("set HOME, then try again"))?;
        let folder = std::env::current_dir()
            .map_err(|error| cannot(format!("the working folder cannot be determined: {error}")))?;
        let path: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
        let binary = program_path(&path)
            .map_err(|error| cannot(format!("the path of this program cannot be determined: {error}")))?;
        let variables =
            VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        Ok(Self {
            home: places.home,
            project: find_root(&folder).unwrap_or(folder),
            scope,
            // The default folder is found by every process of the user.
            program: Program {
                binary,
                data_dir: Some(config.data_dir.clone()).filter(|folder| *folder != places.data),
            },
            recalls_before_edit: config.recall_before_edit,
            variables: variables.collect(),
            path,
        })
    }

    /// Returns the folder that a variable names, or a folder below the home.
    pub(crate) fn folder(&self, variable: &str, default: &str) -> PathBuf {
        let named = self.variables.iter().find(|(name, value)| name == variable && !value.is_empty());
        named.map_or_else(|| self.home.join(default), |(_, value)| PathBuf::from(value))
    }

    /// Returns the path for the scope: that of the user, or the other one below the project.
    pub(crate) fn in_scope(&self, of_user: PathBuf, in_project: &str) -> PathBuf {
        match self.scope {
            Scope::User => of_user,
            Scope::Project => self.project.join(in_project),
        }
    }

    /// Returns the folder for configuration of programs.
    pub(crate) fn config_folder(&self) -> PathBuf {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    /// Returns the folder of VS Code's user settings.
    pub(crate) fn vscode_folder(&self) -> PathBuf {
        let mac = self.home.join("Library/Application Support");
        let base = if mac.is_dir() { mac } else { self.config_folder() };
        base.join("Code/User")
    }

    /// Returns true if a program is on the `PATH`.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.path.iter().any(|folder| folder.join(name).is_file())
    }

    /// Returns true if a file or folder exists below the home.
    pub(crate) fn home_has(&self, path: &str) -> bool {
        self.home.join(path).exists()
    }
}

/// Returns the path of the running program as the user calls it, so that an update that replaces a link keeps working.
fn program_path(path: &[PathBuf]) -> std::io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let is_running =
        |candidate: &PathBuf| candidate.canonicalize().is_ok_and(|found| is_same(&found, &running));
    let on_path =
        path.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join("baton")).find(is_running);
    Ok(on_path.unwrap_or(running))
}

fn is_same(one: &Path, other: &Path) -> bool {
    other.canonicalize().is_ok_and(|other| one == other)
}
