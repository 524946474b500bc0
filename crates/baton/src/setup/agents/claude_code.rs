//! Claude Code: a plugin in the skills folder, which is loaded without a marketplace and removed by deleting it.

use serde_json::{Map, Value, json};

use crate::setup::agent::{Agent, StartCommand};
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::{Scope, SetupEnvironment};
use crate::setup::texts::{SKILLS, pretty};

pub(crate) const AGENT: Agent = Agent {
    id: "claude-code",
    name: "Claude Code",
    is_installed: |environment| environment.has_program("claude") || environment.home_has(".claude"),
    start: Some(StartCommand {
        program: "claude",
        in_terminal: &[],
        without_terminal: &["-p"],
        package: "@anthropic-ai/claude-code",
    }),
    files,
    notes: |environment| match environment.scope {
        Scope::User => Vec::new(),
        Scope::Project => {
            vec!["Claude Code loads the plugin of a project after you trust the folder.".into()]
        }
    },
};

/// Event of Claude Code, event of Baton, and time limit in seconds.
const EVENTS: [(&str, &str, u32); 10] = [
    ("SessionStart", "session-start", 10),
    ("UserPromptSubmit", "user-prompt-submit", 10),
    ("PostToolUse", "post-tool-use", 10),
    ("PostToolUseFailure", "post-tool-use-failure", 10),
    ("PreCompact", "pre-compact", 10),
    ("PostCompact", "post-compact", 10),
    ("Stop", "stop", 10),
    ("StopFailure", "stop-failure", 10),
    ("SubagentStop", "subagent-stop", 10),
    ("SessionEnd", "session-end", 5),
];

/// Tools that change files.
const EDIT_MATCHER: &str = "Edit|Write|MultiEdit|NotebookEdit";

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let base = environment.in_scope(environment.folder("CLAUDE_CONFIG_DIR", ".claude"), ".claude");
    let plugin = base.join("skills/baton");
    let manifest = json!({
        "name": "baton",
        "description": "Keeps the context of coding agents across chats, agents, crashes and machines.",
        "version": env!("CARGO_PKG_VERSION"),
    });
    let servers = json!({ "mcpServers": { "baton": environment.program.mcp_server() } });
    let mut files = vec![
        AgentFile::whole(plugin.join(".claude-plugin/plugin.json"), pretty(&manifest)),
        AgentFile::whole(plugin.join("hooks/hooks.json"), pretty(&json!({ "hooks": hooks(environment) }))),
        AgentFile::whole(plugin.join(".mcp.json"), pretty(&servers)),
    ];
    for skill in SKILLS {
        files.push(AgentFile::whole(
            plugin.join("skills").join(skill.name).join("SKILL.md"),
            skill.file(skill.name),
        ));
    }
    files
}

/// The exec form (`args`) starts the program without a shell.
fn hooks(environment: &SetupEnvironment) -> Map<String, Value> {
    let group = |event: &str, timeout: u32| {
        json!([{ "hooks": [{
            "type": "command", "command": environment.program.binary_text(),
            "args": environment.program.hook_args(event, AGENT.id), "timeout": timeout,
        }] }])
    };
    let mut hooks: Map<String, Value> =
        EVENTS.iter().map(|(name, event, timeout)| ((*name).to_owned(), group(event, *timeout))).collect();
    if environment.recalls_before_edit {
        let mut edits = group("pre-tool-use", 5);
        edits[0]["matcher"] = EDIT_MATCHER.into();
        hooks.insert("PreToolUse".to_owned(), edits);
    }
    hooks
}
