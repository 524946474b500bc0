//! A tool use, as a hook reports it.

use baton_core::observation::TurnText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Input and output of a tool, without secrets and private parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Tool name of the agent, for example `Bash`, `Edit` or `mcp__github__get_issue`.
    pub tool_name: String,
    #[serde(default)]
    pub tool_input: Value,
    /// Tool output: text, or an object with a tool-specific structure.
    #[serde(default)]
    pub tool_response: Value,
    /// Working directory of the agent, for example `/home/ada/webshop/src`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Turn of the tool use, which explains why the tool was used. Not part of the stored tool use.
    #[serde(skip)]
    pub turn: Option<TurnText>,
}
