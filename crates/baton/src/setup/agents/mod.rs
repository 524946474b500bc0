//! One file per agent: the files that the agent reads, and the content that setup writes to them. The formats are
//! described in `docs/agents.md`.

pub(super) mod antigravity;
pub(super) mod claude_code;
pub(super) mod cline;
pub(super) mod codex;
pub(super) mod copilot_cli;
pub(super) mod cursor;
pub(super) mod gemini;
pub(super) mod opencode;
pub(super) mod vscode;
pub(super) mod windsurf;
