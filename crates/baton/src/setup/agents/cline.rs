//! Cline: one executable file per event, and an entry in the MCP settings of its VS Code extension.

use crate::setup::agent::Agent;
use crate::setup::agent_file::{AgentFile, Content};
use crate::setup::environment::{Scope, SetupEnvironment};

pub(crate) const AGENT: Agent = Agent {
    id: "cline",
    name: "Cline",
    is_installed: |environment| {
        environment.has_program("cline")
            || environment.home_has("Documents/Cline")
            || extension(environment).is_dir()
    },
    start: None,
    files,
    notes: |_| {
        vec!["Cline runs hooks on macOS and Linux only, and after you enable hooks in its settings.".into()]
    },
};

/// Event of Cline and event of Baton.
const EVENTS: [(&str, &str); 7] = [
    ("TaskStart", "session-start"),
    ("TaskResume", "session-start"),
    ("UserPromptSubmit", "user-prompt-submit"),
    ("PostToolUse", "post-tool-use"),
    ("PreCompact", "pre-compact"),
    ("TaskComplete", "stop"),
    ("TaskCancel", "interrupt"),
];

fn extension(environment: &SetupEnvironment) -> std::path::PathBuf {
    environment.vscode_folder().join("globalStorage/saoudrizwan.claude-dev")
}

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.in_scope(environment.home.join("Documents/Cline/Hooks"), ".clinerules/hooks");
    let mut files: Vec<AgentFile> = EVENTS
        .iter()
        .map(|(name, event)| {
            let script = format!("#!/bin/sh\nexec {}\n", environment.program.hook_line(event, AGENT.id));
            AgentFile { path: folder.join(name), content: Content::Script(script) }
        })
        .collect();
    if environment.scope == Scope::User {
        let settings = extension(environment).join("settings/cline_mcp_settings.json");
        files.push(AgentFile::mcp_servers(settings, environment.program.mcp_server()));
    }
    files
}
