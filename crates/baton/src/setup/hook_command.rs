//! Command lines of Baton in the configuration of agents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// How agents start Baton.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Absolute path of the binary.
    pub(crate) binary: PathBuf,
    /// Data folder, unless it is the default one.
    pub(crate) data_dir: Option<PathBuf>,
}

impl Program {
    /// Returns the arguments that report an event.
    pub(crate) fn hook_args(&self, event: &str, client: &str) -> Vec<String> {
        let mut args = vec!["hook".to_owned(), event.to_owned(), "--client".to_owned(), client.to_owned()];
        args.extend(self.data_dir_args());
        args
    }

    /// Returns the command line that reports an event, for clients that use a shell.
    pub(crate) fn hook_line(&self, event: &str, client: &str) -> String {
        let words = std::iter::once(self.binary_text()).chain(self.hook_args(event, client));
        words.map(|word| shell_word(&word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the arguments that start the MCP server.
    pub(crate) fn mcp_args(&self) -> Vec<String> {
        std::iter::once("mcp".to_owned()).chain(self.data_dir_args()).collect()
    }

    /// Returns the entry of the MCP server, as most agents write it.
    pub(crate) fn mcp_server(&self) -> Value {
        json!({ "command": self.binary_text(), "args": self.mcp_args() })
    }

    pub(crate) fn binary_text(&self) -> String {
        self.binary.to_string_lossy().into_owned()
    }

    fn data_dir_args(&self) -> impl Iterator<Item = String> {
        let folder = self.data_dir.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        folder.into_iter().flat_map(|folder| ["--data-dir".to_owned(), folder])
    }
}

/// Quotes a word for a POSIX shell if necessary.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns true for a hook entry whose commands all run `baton hook`.
pub(super) fn is_own_entry(entry: &Value) -> bool {
    let mut commands = Vec::new();
    collect_commands(entry, &mut commands);
    !commands.is_empty() && commands.iter().all(|is_own| *is_own)
}

/// Collects for each command of a hook entry whether it runs `baton hook`.
fn collect_commands(entry: &Value, commands: &mut Vec<bool>) {
    match entry {
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            if let Some(command) = text("command").or_else(|| text("bash")) {
                let first_argument = members.get("args").and_then(|args| args[0].as_str());
                commands.push(is_own_command(command, first_argument));
            }
            members.values().for_each(|value| collect_commands(value, commands));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_commands(item, commands)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_own_command(command: &str, first_argument: Option<&str>) -> bool {
    if first_argument.is_some() {
        return first_argument == Some("hook") && is_baton(command);
    }
    command.split_once(" hook ").is_some_and(|(program, _)| is_baton(program.trim_matches(['\'', '"'])))
}

fn is_baton(program: &str) -> bool {
    Path::new(program).file_stem().is_some_and(|name| name == "baton")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_paths_for_the_shell() {
        let program = Program { binary: "/opt/my tools/baton".into(), data_dir: Some("/d".into()) };
        assert_eq!(
            program.hook_line("stop", "codex"),
            "'/opt/my tools/baton' hook stop --client codex --data-dir /d"
        );
        assert!(is_own_entry(&json!({ "command": program.hook_line("stop", "codex") })));
    }

    #[test]
    fn recognizes_entries_of_baton_only() {
        for own in [
            json!({ "command": "baton hook stop" }),
            json!({ "hooks": [{ "type": "command", "command": "/x/baton", "args": ["hook", "stop"] }] }),
            json!({ "type": "command", "bash": "/x/baton hook stop", "powershell": "baton hook stop" }),
        ] {
            assert!(is_own_entry(&own), "{own}");
        }
        for other in [
            json!({ "command": "notify" }),
            json!({ "command": "echo baton hook stop" }),
            json!({ "hooks": [{ "command": "baton hook stop" }, { "command": "notify" }] }),
            json!({ "command": "/x/baton", "args": ["mcp"] }),
            json!("baton hook stop"),
        ] {
            assert!(!is_own_entry(&other), "{other}");
        }
    }
}
