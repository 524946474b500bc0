//! Gemini CLI: an extension for the user; hooks and MCP server in `settings.json` for a project.

use serde_json::{Map, Value, json};

use crate::setup::agent::{Agent, StartCommand};
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::{Scope, SetupEnvironment};
use crate::setup::json_file::JsonEntry;
use crate::setup::texts::{RULES, SKILLS, pretty};

pub(crate) const AGENT: Agent = Agent {
    id: "gemini",
    name: "Gemini CLI",
    is_installed: |environment| {
        environment.has_program("gemini") || environment.home_has(".gemini/settings.json")
    },
    start: Some(StartCommand {
        program: "gemini",
        in_terminal: &["-i"],
        without_terminal: &["-p"],
        package: "@google/gemini-cli",
    }),
    files,
    notes: |environment| match environment.scope {
        Scope::User => Vec::new(),
        Scope::Project => vec!["Gemini CLI warns once about new hooks of a project.".into()],
    },
};

/// Event of Gemini CLI and event of Baton.
const EVENTS: [(&str, &str); 6] = [
    ("SessionStart", "session-start"),
    ("BeforeAgent", "user-prompt-submit"),
    ("AfterTool", "post-tool-use"),
    ("AfterAgent", "stop"),
    ("PreCompress", "pre-compact"),
    ("SessionEnd", "session-end"),
];

/// Gemini CLI counts in milliseconds.
const TIMEOUT_MS: u32 = 10_000;

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    match environment.scope {
        Scope::User => extension(environment),
        Scope::Project => {
            let hooks = EVENTS
                .map(|(name, event)| JsonEntry::Element(vec!["hooks", name], group(environment, event)));
            let server = JsonEntry::Member(vec!["mcpServers", "baton"], environment.program.mcp_server());
            let entries = hooks.into_iter().chain([server]).collect();
            vec![AgentFile::json(environment.project.join(".gemini/settings.json"), entries)]
        }
    }
}

fn extension(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.folder("GEMINI_CLI_HOME", "").join(".gemini/extensions/baton");
    let manifest = json!({
        "name": "baton", "version": env!("CARGO_PKG_VERSION"), "contextFileName": "GEMINI.md",
        "mcpServers": { "baton": environment.program.mcp_server() },
    });
    let hooks: Map<String, Value> =
        EVENTS.iter().map(|(name, event)| ((*name).to_owned(), json!([group(environment, event)]))).collect();
    let mut files = vec![
        AgentFile::whole(folder.join("gemini-extension.json"), pretty(&manifest)),
        AgentFile::whole(folder.join("hooks/hooks.json"), pretty(&json!({ "hooks": hooks }))),
        AgentFile::whole(folder.join("GEMINI.md"), RULES),
    ];
    for skill in SKILLS {
        let path = folder.join("commands/baton").join(format!("{}.toml", skill.name));
        files.push(AgentFile::whole(path, skill.gemini_command()));
    }
    files
}

fn group(environment: &SetupEnvironment, event: &str) -> Value {
    let command = environment.program.hook_line(event, AGENT.id);
    json!({ "matcher": "*", "hooks": [
        { "name": format!("baton-{event}"), "type": "command", "command": command, "timeout": TIMEOUT_MS },
    ] })
}
