//! Observations of each tool, and properties of all observations.

mod edits;
mod failures;
mod properties;
mod reads;
mod rest;
mod session;
mod session_files;
mod shell;
mod written;

use baton_core::observation::{CompressedObservation, FunctionAction};
use baton_observation::ToolUse;
use serde_json::Value;

use super::Offline;
use crate::compressor::Compressor;

/// Observes a tool use in `/home/dev/app`.
fn observe(tool: &str, tool_input: Value, tool_response: Value) -> CompressedObservation {
    let cwd = Some("/home/dev/app".into());
    let tool_use = ToolUse { tool_name: tool.into(), tool_input, tool_response, cwd, turn: None };
    Offline.compress(&tool_use).unwrap().observation
}

/// Returns the detail, or an empty text.
fn detail(observation: &CompressedObservation) -> &str {
    observation.detail.as_deref().unwrap_or_default()
}

/// Formats the changed functions as `new parse_header`.
fn functions(observation: &CompressedObservation) -> Vec<String> {
    let word = |action| match action {
        FunctionAction::New => "new",
        FunctionAction::Modified => "modified",
        FunctionAction::Deleted => "deleted",
    };
    observation
        .functions_changed
        .iter()
        .map(|change| format!("{} {}", word(change.action), change.name))
        .collect()
}
