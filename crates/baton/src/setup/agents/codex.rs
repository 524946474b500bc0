//! Codex: hooks in `hooks.json`, where a mistake cannot prevent Codex from starting, the MCP server in `config.toml`, and
//! skills.

use serde_json::json;
use toml_edit::Value;

use crate::setup::agent::{Agent, StartCommand};
use crate::setup::agent_file::{AgentFile, Content};
use crate::setup::environment::{Scope, SetupEnvironment};
use crate::setup::json_file::JsonEntry;
use crate::setup::texts::SKILLS;
use crate::setup::toml_file::TomlTable;

pub(crate) const AGENT: Agent = Agent {
    id: "codex",
    name: "Codex",
    is_installed: |environment| environment.has_program("codex") || environment.home_has(".codex"),
    start: Some(StartCommand {
        program: "codex",
        in_terminal: &[],
        without_terminal: &["exec"],
        package: "@openai/codex",
    }),
    files,
    notes: |environment| {
        let mut notes = vec![
            "Codex ignores hooks until you trust them: start codex, enter /hooks and trust the hooks of Baton.".into(),
        ];
        if environment.scope == Scope::Project {
            notes.push("Codex reads the configuration of a project only if the project is trusted.".into());
        }
        notes
    },
};

/// Event of Codex, event of Baton, and time limit in seconds. Codex allows 3 seconds at an interrupt and at the end.
const EVENTS: [(&str, &str, u32); 9] = [
    ("SessionStart", "session-start", 10),
    ("UserPromptSubmit", "user-prompt-submit", 10),
    ("PostToolUse", "post-tool-use", 10),
    ("PreCompact", "pre-compact", 10),
    ("PostCompact", "post-compact", 10),
    ("Stop", "stop", 10),
    ("Interrupt", "interrupt", 3),
    ("SubagentStop", "subagent-stop", 10),
    ("SessionEnd", "session-end", 3),
];

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.in_scope(environment.folder("CODEX_HOME", ".codex"), ".codex");
    let handler = |event: &str, timeout: u32| {
        let command = environment.program.hook_line(event, AGENT.id);
        json!({ "type": "command", "command": command, "timeout": timeout })
    };
    let entry = |(name, event, timeout): &(&'static str, &str, u32)| {
        JsonEntry::Element(vec!["hooks", name], json!({ "hooks": [handler(event, *timeout)] }))
    };
    let mut entries: Vec<JsonEntry> = EVENTS.iter().map(entry).collect();
    if environment.recalls_before_edit {
        let hooks = json!({ "matcher": "apply_patch", "hooks": [handler("pre-tool-use", 5)] });
        entries.push(JsonEntry::Element(vec!["hooks", "PreToolUse"], hooks));
    }
    let server = TomlTable {
        path: vec!["mcp_servers", "baton"],
        members: vec![
            ("command", environment.program.binary_text().into()),
            ("args", Value::Array(environment.program.mcp_args().into_iter().collect())),
        ],
    };
    let mut files = vec![
        AgentFile::json(folder.join("hooks.json"), entries),
        AgentFile { path: folder.join("config.toml"), content: Content::Toml(server) },
    ];
    // Skills of a project are read from `.agents/skills`.
    let skills = environment.in_scope(folder.join("skills"), ".agents/skills");
    for skill in SKILLS {
        let name = format!("baton-{}", skill.name);
        files.push(AgentFile::whole(skills.join(&name).join("SKILL.md"), skill.file(&name)));
    }
    files
}
