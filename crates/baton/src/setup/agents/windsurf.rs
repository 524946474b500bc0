//! Windsurf: entries in `hooks.json` and `mcp_config.json`. Its hooks accept no context, so a rules file tells the agent
//! to ask Baton.

use serde_json::json;

use crate::setup::agent::Agent;
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::{Scope, SetupEnvironment};
use crate::setup::json_file::JsonEntry;
use crate::setup::texts::RULES;

pub(crate) const AGENT: Agent = Agent {
    id: "windsurf",
    name: "Windsurf",
    is_installed: |environment| {
        environment.has_program("windsurf") || environment.home_has(".codeium/windsurf")
    },
    start: None,
    files,
    notes: |_| {
        vec!["Windsurf accepts no context from hooks: its agent reads the records with the MCP tools.".into()]
    },
};

/// Event of Windsurf and event of Baton.
const EVENTS: [(&str, &str); 6] = [
    ("pre_user_prompt", "user-prompt-submit"),
    ("post_read_code", "post-tool-use"),
    ("post_write_code", "post-tool-use"),
    ("post_run_command", "post-tool-use"),
    ("post_mcp_tool_use", "post-tool-use"),
    ("post_cascade_response", "stop"),
];

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let hook = |(name, event): &(&'static str, &str)| {
        let value =
            json!({ "command": environment.program.hook_line(event, AGENT.id), "show_output": false });
        JsonEntry::Element(vec!["hooks", name], value)
    };
    let hooks = EVENTS.iter().map(hook).collect();
    let folder = environment.in_scope(environment.home.join(".codeium/windsurf"), ".windsurf");
    let second = match environment.scope {
        Scope::User => {
            AgentFile::mcp_servers(folder.join("mcp_config.json"), environment.program.mcp_server())
        }
        // Windsurf has no MCP configuration for a project.
        Scope::Project => {
            let rule = format!("---\ntrigger: always_on\n---\n\n{RULES}");
            AgentFile::whole(folder.join("rules/baton.md"), rule)
        }
    };
    vec![AgentFile::json(folder.join("hooks.json"), hooks), second]
}
