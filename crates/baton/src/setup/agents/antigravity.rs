//! Antigravity CLI (`agy`): an entry in `hooks.json` and one in `mcp_config.json`. Both are strict JSON.

use serde_json::json;

use crate::setup::agent::{Agent, SetupEnvironment};
use crate::setup::json_file::JsonEntry;
use crate::setup::target::Target;

pub(crate) const AGENT: Agent = Agent {
    id: "antigravity",
    name: "Antigravity CLI",
    is_installed: |place| place.has_program("agy") || place.has(".gemini/antigravity-cli"),
    start: None,
    targets,
    notes: |_| {
        vec![
            "Antigravity CLI has no event for the end of a chat; its sessions become stale and are later marked as abandoned."
                .into(),
        ]
    },
};

fn targets(place: &SetupEnvironment) -> Vec<Target> {
    let folder = place.in_scope(place.home.join(".gemini/antigravity-cli"), ".agents");
    let handler = |event: &str| json!({ "type": "command", "command": place.program.hook_line(event, AGENT.id), "timeout": 10 });
    let hooks = json!({
        "SessionStart": [handler("session-start")],
        "PostToolUse": [{ "matcher": "*", "hooks": [handler("post-tool-use")] }],
        "Stop": [handler("stop")],
    });
    vec![
        Target::json(folder.join("hooks.json"), vec![JsonEntry::Member(vec!["baton"], hooks)]),
        Target::mcp_servers(folder.join("mcp_config.json"), place.program.mcp_server()),
    ]
}
