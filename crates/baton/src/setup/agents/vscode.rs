//! VS Code with Copilot: the hooks file of Copilot CLI, and an entry in `mcp.json`, whose outer name is `servers`.

use serde_json::json;

use super::copilot_cli::hooks_file;
use crate::setup::agent::Agent;
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::SetupEnvironment;
use crate::setup::json_file::JsonEntry;

pub(crate) const AGENT: Agent = Agent {
    id: "vscode",
    name: "VS Code",
    is_installed: |environment| environment.has_program("code") || environment.vscode_folder().is_dir(),
    start: None,
    files,
    notes: |_| {
        vec![
            "VS Code has no event for the end of a chat; its sessions become stale and are later marked as abandoned.".into(),
            "Hooks are a preview feature; a policy of your organization can disable them.".into(),
        ]
    },
};

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let path = environment.in_scope(environment.vscode_folder().join("mcp.json"), ".vscode/mcp.json");
    let server = json!({
        "type": "stdio", "command": environment.program.binary_text(), "args": environment.program.mcp_args(),
        "cwd": "${workspaceFolder}",
    });
    vec![
        hooks_file(environment),
        AgentFile::json(path, vec![JsonEntry::Member(vec!["servers", "baton"], server)]),
    ]
}
