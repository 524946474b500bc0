//! Antigravity CLI (`agy`): an entry in `hooks.json` and one in `mcp_config.json`. Both are strict JSON.

use serde_json::json;

use crate::setup::agent::Agent;
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::SetupEnvironment;
use crate::setup::json_file::JsonEntry;

pub(crate) const AGENT: Agent = Agent {
    id: "antigravity",
    name: "Antigravity CLI",
    is_installed: |environment| {
        environment.has_program("agy") || environment.home_has(".gemini/antigravity-cli")
    },
    start: None,
    files,
    notes: |_| {
        vec![
            "Antigravity CLI has no event for the end of a chat; its sessions become stale and are later marked as abandoned."
                .into(),
        ]
    },
};

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.in_scope(environment.home.join(".gemini/antigravity-cli"), ".agents");
    let handler = |event: &str| {
        let command = environment.program.hook_line(event, AGENT.id);
        json!({ "type": "command", "command": command, "timeout": 10 })
    };
    let hooks = json!({
        "SessionStart": [handler("session-start")],
        "PostToolUse": [{ "matcher": "*", "hooks": [handler("post-tool-use")] }],
        "Stop": [handler("stop")],
    });
    vec![
        AgentFile::json(folder.join("hooks.json"), vec![JsonEntry::Member(vec!["baton"], hooks)]),
        AgentFile::mcp_servers(folder.join("mcp_config.json"), environment.program.mcp_server()),
    ]
}
