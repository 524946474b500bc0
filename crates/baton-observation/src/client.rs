//! The client programs that run agents: their names, which hooks and MCP report in different spellings, and how much
//! context they accept at once.

use baton_core::Agent;

/// A program that runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    ClaudeCode,
    Codex,
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// Antigravity CLI.
    Antigravity,
    /// OpenCode, by Baton's plugin.
    OpenCode,
    /// VS Code with Copilot.
    VsCode,
    CopilotCli,
    Windsurf,
    Cline,
    /// Any other program, which gets responses in the form of Claude Code.
    Other,
}

/// A client program that Baton knows.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Baton's name of the client.
    pub name: &'static str,
    /// Form of the reports of its hooks.
    pub kind: ClientKind,
    /// Texts that its reported names contain, in lower case.
    spellings: &'static [&'static str],
    /// Environment variables that it sets for the commands it runs.
    pub variables: &'static [&'static str],
    /// Maximum size of the context that a hook adds.
    pub context_limit: Option<ContextLimit>,
}

/// Maximum size of the context that a hook adds. Longer text is cut off or moved to a file, which the model must open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextLimit {
    /// Number of characters.
    Chars(usize),
    /// Number of tokens.
    Tokens(usize),
}

impl Client {
    const fn new(kind: ClientKind, spellings: &'static [&'static str]) -> Self {
        Self { name: spellings[0], kind, spellings, variables: &[], context_limit: None }
    }

    /// Finds a client by Baton's name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }
}

/// All clients. A name that contains the spellings of two clients belongs to the first one.
pub const CLIENTS: [Client; 10] = [
    Client {
        variables: &["CLAUDECODE"],
        context_limit: Some(ContextLimit::Chars(10_000)),
        ..Client::new(ClientKind::ClaudeCode, &["claude-code", "claude code"])
    },
    Client {
        variables: &["CODEX_SANDBOX", "CODEX_THREAD_ID"],
        context_limit: Some(ContextLimit::Tokens(2_500)),
        ..Client::new(ClientKind::Codex, &["codex"])
    },
    Client::new(ClientKind::Antigravity, &["antigravity"]),
    Client { variables: &["GEMINI_CLI"], ..Client::new(ClientKind::Gemini, &["gemini"]) },
    Client { variables: &["OPENCODE"], ..Client::new(ClientKind::OpenCode, &["opencode"]) },
    Client { variables: &["CURSOR_AGENT"], ..Client::new(ClientKind::Cursor, &["cursor"]) },
    Client::new(ClientKind::CopilotCli, &["copilot-cli"]),
    Client::new(ClientKind::VsCode, &["vscode", "visual studio code"]),
    Client::new(ClientKind::Windsurf, &["windsurf"]),
    Client::new(ClientKind::Cline, &["cline"]),
];

/// Returns Baton's name of a client, for example `codex` for `codex-mcp-client`. Other names are returned unchanged.
pub fn client_name(reported: &str) -> &str {
    let lower = reported.to_ascii_lowercase();
    let is_reported = |client: &&Client| client.spellings.iter().any(|part| lower.contains(part));
    CLIENTS.iter().find(is_reported).map_or(reported, |client| client.name)
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
