//! One file per agent: the files that the agent reads, and the content that setup writes to them. The formats are
//! described in `docs/agents.md`.

mod antigravity;
mod catalog;
mod claude_code;
mod cline;
pub(super) mod codex;
mod copilot_cli;
mod cursor;
mod gemini;
mod opencode;
mod vscode;
mod windsurf;

pub(crate) use catalog::{all, find};
