//! All agents that can be set up.

use super::{
    antigravity, claude_code, cline, codex, copilot_cli, cursor, gemini, opencode, vscode, windsurf,
};
use crate::setup::agent::Agent;

pub(crate) const fn all() -> &'static [Agent] {
    &[
        claude_code::AGENT,
        codex::AGENT,
        gemini::AGENT,
        opencode::AGENT,
        cursor::AGENT,
        antigravity::AGENT,
        vscode::AGENT,
        copilot_cli::AGENT,
        windsurf::AGENT,
        cline::AGENT,
    ]
}

pub(crate) fn find(id: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.id == id)
}
