//! The agents that setup knows, and where they keep their configuration.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use super::agent_file::AgentFile;
use super::agents;
use super::hook_command::Program;

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

/// Command that starts an agent with a prompt, which is its last argument.
pub(crate) struct StartCommand {
    /// Program on the `PATH`.
    pub(crate) program: &'static str,
    /// Arguments before the prompt in a terminal, where the user continues the chat.
    pub(crate) in_terminal: &'static [&'static str],
    /// Arguments before the prompt without a terminal. The agent ends after its answer.
    pub(crate) without_terminal: &'static [&'static str],
    /// The npm package of the agent.
    pub(crate) package: &'static str,
}

/// An agent that can be set up. Each has a source file in `agents/`.
pub(crate) struct Agent {
    /// Name on the command line, and name of the client in sessions.
    pub(crate) id: &'static str,
    /// Name for people.
    pub(crate) name: &'static str,
    pub(crate) is_installed: fn(&SetupEnvironment) -> bool,
    /// How the agent is started with a prompt; `None` if it is not a command.
    pub(crate) start: Option<StartCommand>,
    /// Returns the files to write.
    pub(crate) files: fn(&SetupEnvironment) -> Vec<AgentFile>,
    /// What the user must do or know after setup.
    pub(crate) notes: fn(&SetupEnvironment) -> Vec<String>,
}

pub(crate) const fn all() -> &'static [Agent] {
    &[
        agents::claude_code::AGENT,
        agents::codex::AGENT,
        agents::gemini::AGENT,
        agents::opencode::AGENT,
        agents::cursor::AGENT,
        agents::antigravity::AGENT,
        agents::vscode::AGENT,
        agents::copilot_cli::AGENT,
        agents::windsurf::AGENT,
        agents::cline::AGENT,
    ]
}

pub(crate) fn find(id: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.id == id)
}

/// Returns the path of the running program as the user calls it, so that an update that replaces a link keeps working.
pub(crate) fn program_path(path: &[PathBuf]) -> std::io::Result<PathBuf> {
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
