//! Copilot CLI: a hooks file of its own, which VS Code reads as well, and an entry in the MCP configuration.

use serde_json::{Map, Value, json};

use crate::setup::agent::Agent;
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::SetupEnvironment;
use crate::setup::texts::pretty;

pub(crate) const AGENT: Agent = Agent {
    id: "copilot-cli",
    name: "Copilot CLI",
    is_installed: |environment| environment.has_program("copilot") || environment.home_has(".copilot"),
    start: None,
    files: |environment| vec![hooks_file(environment), servers_file(environment)],
    notes: |_| {
        vec![
            "Copilot CLI accepts no context from hooks: its agent reads the records with the MCP tools."
                .into(),
        ]
    },
};

/// Event of Copilot CLI and event of Baton. VS Code maps the names to its own.
const EVENTS: [(&str, &str); 8] = [
    ("sessionStart", "session-start"),
    ("userPromptSubmitted", "user-prompt-submit"),
    ("postToolUse", "post-tool-use"),
    ("postToolUseFailure", "post-tool-use-failure"),
    ("preCompact", "pre-compact"),
    ("agentStop", "stop"),
    ("subagentStop", "subagent-stop"),
    ("sessionEnd", "session-end"),
];

/// Returns the hooks file, which is the same for VS Code and Copilot CLI.
pub(super) fn hooks_file(environment: &SetupEnvironment) -> AgentFile {
    let folder = environment.in_scope(environment.home.join(".copilot"), ".github");
    let handler = |event: &str| {
        let command = environment.program.hook_line(event, AGENT.id);
        json!([{ "type": "command", "bash": command, "powershell": command, "timeoutSec": 10 }])
    };
    let hooks: Map<String, Value> =
        EVENTS.iter().map(|(name, event)| ((*name).to_owned(), handler(event))).collect();
    AgentFile::whole(folder.join("hooks/baton.json"), pretty(&json!({ "version": 1, "hooks": hooks })))
}

fn servers_file(environment: &SetupEnvironment) -> AgentFile {
    let server = json!({
        "type": "local", "command": environment.program.binary_text(), "args": environment.program.mcp_args(),
        "tools": ["*"],
    });
    AgentFile::mcp_servers(
        environment.in_scope(environment.home.join(".copilot/mcp-config.json"), ".mcp.json"),
        server,
    )
}
