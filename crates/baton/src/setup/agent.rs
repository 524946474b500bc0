//! An agent that setup knows, and how it is started.

use super::agent_file::AgentFile;
use super::environment::SetupEnvironment;

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
