//! OpenCode: one plugin file, which reports events and adds the MCP server and the commands to the configuration.

use serde_json::json;

use crate::setup::agent::{Agent, StartCommand};
use crate::setup::agent_file::AgentFile;
use crate::setup::environment::SetupEnvironment;
use crate::setup::texts::SKILLS;

pub(crate) const AGENT: Agent = Agent {
    id: "opencode",
    name: "OpenCode",
    is_installed: |environment| {
        environment.has_program("opencode") || environment.config_folder().join("opencode").is_dir()
    },
    start: Some(StartCommand {
        program: "opencode",
        in_terminal: &["--prompt"],
        without_terminal: &["run"],
        package: "opencode-ai",
    }),
    files,
    notes: |_| Vec::new(),
};

/// The plugin without its first lines, which hold the program and the commands.
const PLUGIN: &str = include_str!("opencode_plugin.js");

fn files(environment: &SetupEnvironment) -> Vec<AgentFile> {
    let folder = environment.in_scope(environment.config_folder().join("opencode"), ".opencode");
    let hook = environment.program.hook_args("EVENT", AGENT.id);
    let commands: serde_json::Map<String, serde_json::Value> = SKILLS
        .iter()
        .map(|skill| {
            let command = json!({ "description": skill.description, "template": format!("{}\n\n$ARGUMENTS", skill.text) });
            (format!("baton-{}", skill.name), command)
        })
        .collect();
    let head = format!(
        "// Written by `baton setup opencode`. Remove it with `baton setup opencode --remove`.\n\
         const BATON = {}\nconst HOOK = {}\nconst MCP = {}\nconst COMMANDS = {}\n",
        json!(environment.program.binary_text()),
        json!(hook),
        json!(environment.program.mcp_args()),
        json!(commands),
    );
    vec![AgentFile::whole(folder.join("plugins/baton.js"), format!("{head}\n{PLUGIN}"))]
}
