//! What observations look like, tool by tool, and what always holds.

mod properties;

use baton_core::observation::{CompressedObservation, ToolUse};
use serde_json::Value;

use super::Offline;
use crate::compressor::Compressor;

const CWD: &str = "/home/dev/app";

/// Observes the use of a tool in `/home/dev/app`.
fn observe(tool: &str, input: Value, response: Value) -> CompressedObservation {
    let tool_use =
        ToolUse { tool_name: tool.into(), tool_input: input, tool_response: response, cwd: Some(CWD.into()) };
    Offline.compress(&tool_use).unwrap().observation
}
