//! Cursor: entries in `hooks.json` and `mcp.json`. Cursor rejects the whole file if an entry has an unknown key.

use serde_json::json;

use crate::setup::agent::Agent;
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::{Scope, SetupEnvironment};
use crate::setup::json_file::JsonEntry;
use crate::setup::texts::RULES;

pub(crate) const AGENT: Agent = Agent {
    id: "cursor",
    name: "Cursor",
    is_installed: |environment| environment.has_program("cursor") || environment.home_has(".cursor"),
    start: None,
    files,
    notes: |_| vec!["Cursor asks you to enable the MCP server in its settings.".into()],
};

/// Event of Cursor and event of Baton. The generic tool events are used, because the specific ones fire in addition.
const EVENTS: [(&str, &str); 9] = [
    ("sessionStart", "session-start"),
    ("beforeSubmitPrompt", "user-prompt-submit"),
    ("postToolUse", "post-tool-use"),
    ("postToolUseFailure", "post-tool-use-failure"),
    ("preCompact", "pre-compact"),
    ("afterAgentResponse", "afterAgentResponse"),
    ("stop", "stop"),
    ("subagentStop", "subagent-stop"),
    ("sessionEnd", "session-end"),
];

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.in_scope(environment.home.join(".cursor"), ".cursor");
    let hook = |(name, event): &(&'static str, &str)| {
        let value = json!({ "command": environment.program.hook_line(event, AGENT.id), "timeout": 10 });
        JsonEntry::Element(vec!["hooks", name], value)
    };
    let hooks = std::iter::once(JsonEntry::Member(vec!["version"], json!(1))).chain(EVENTS.iter().map(hook));
    let mut files = vec![
        AgentFile::json(folder.join("hooks.json"), hooks.collect()),
        AgentFile::mcp_servers(folder.join("mcp.json"), environment.program.mcp_server()),
    ];
    if environment.scope == Scope::Project {
        let rule = format!("---\ndescription: When to use Baton\nalwaysApply: true\n---\n\n{RULES}");
        files.push(AgentFile::whole(folder.join("rules/baton.mdc"), rule));
    }
    files
}
