//! Names of the client programs that run agents. Hooks and MCP report them in different spellings.

use crate::name::Agent;

/// Part of a reported name in lower case, and the name that Baton uses.
const KNOWN: [(&str, &str); 12] = [
    ("claude-code", "claude-code"),
    ("claude code", "claude-code"),
    ("codex", "codex"),
    ("antigravity", "antigravity"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
    ("cursor", "cursor"),
    ("copilot-cli", "copilot-cli"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("windsurf", "windsurf"),
    ("cline", "cline"),
];

/// Returns Baton's name of a client, for example `codex` for `codex-mcp-client`. Other names are returned unchanged.
pub fn client_name(reported: &str) -> &str {
    let lower = reported.to_ascii_lowercase();
    KNOWN.iter().find(|(part, _)| lower.contains(part)).map_or(reported, |(_, name)| name)
}

/// Returns the default agent name of a client: its name, with characters that an agent name cannot have replaced.
pub fn agent_of_client(client: &str) -> Option<Agent> {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let kept: String =
        client_name(client).chars().map(|c| if is_kept(c) { c } else { '-' }).take(128).collect();
    kept.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_known_clients_in_the_spellings_of_hooks_and_mcp() {
        for (reported, expected) in [
            ("claude-code", "claude-code"),
            ("codex-mcp-client", "codex"),
            ("gemini-cli-mcp-client-baton", "gemini"),
            ("cursor-vscode", "cursor"),
            ("Visual Studio Code", "vscode"),
            ("Cline", "cline"),
            ("my-agent", "my-agent"),
        ] {
            assert_eq!(client_name(reported), expected);
        }
    }

    #[test]
    fn derives_a_valid_agent_name() {
        let agent = |client| agent_of_client(client).map(|agent| agent.to_string());
        assert_eq!(agent("codex-mcp-client"), Some("codex".to_owned()));
        assert_eq!(agent("My Agent (beta)"), Some("My-Agent--beta-".to_owned()));
        assert_eq!(agent("日本"), None);
    }
}
