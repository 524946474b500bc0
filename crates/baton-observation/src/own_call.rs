//! Detects tool uses that call Baton itself.
//!
//! Baton's responses contain stored data. If they were captured as observations, the same data would be stored again.

use serde_json::Value;

/// Prefixes that agents give to tools of an MCP server named `baton`, alone or in a plugin.
const TOOL_PREFIXES: [&str; 6] =
    ["mcp__baton__", "mcp__plugin_baton_", "mcp_baton_", "baton__", "baton_", "baton."];

/// Characters that make a command more than a single call.
const SHELL_SYNTAX: [char; 7] = ['|', '&', ';', '<', '>', '`', '\n'];

/// Returns true for a tool of Baton's MCP server, and for a shell command that does nothing but run `baton`.
pub fn is_own_call(tool_name: &str, tool_input: &Value) -> bool {
    TOOL_PREFIXES.iter().any(|prefix| tool_name.starts_with(prefix))
        || tool_input.get("command").and_then(Value::as_str).is_some_and(is_own_command)
}

fn is_own_command(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let is_baton = program == "baton" || program.ends_with("/baton");
    is_baton && !command.contains(SHELL_SYNTAX) && !command.contains("$(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recognises_the_tools_of_its_own_server() {
        for name in [
            "mcp__baton__session_start",
            "mcp__plugin_baton_baton__handoff_latest",
            "mcp_baton_session_start",
            "baton_workflow_checkpoint_load",
        ] {
            assert!(is_own_call(name, &json!({})), "{name}");
        }
        for name in ["Bash", "mcp__batonist__play", "mcp__github__get_issue", "batons", ""] {
            assert!(!is_own_call(name, &json!({})), "{name}");
        }
    }

    #[test]
    fn recognises_commands_that_only_run_baton() {
        let is_own = |command: &str| is_own_call("Bash", &json!({ "command": command }));
        assert!(is_own("baton search cache") && is_own("  /usr/local/bin/baton handoff latest"));
        for other in
            ["cargo test", "baton status && cargo test", "echo baton", "baton search x | head", "batond"]
        {
            assert!(!is_own(other), "{other}");
        }
        assert!(!is_own_call("Bash", &json!({ "command": ["baton"] })) && !is_own_call("Bash", &json!(null)));
    }
}
