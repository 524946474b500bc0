//! One use of a tool, as a hook reports it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One use of a tool: what it was asked and what it said, without secrets and private parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool, as the agent names it: `Bash`, `Edit`, `mcp__github__get_issue`.
    pub tool_name: String,
    /// What it was asked.
    #[serde(default)]
    pub tool_input: Value,
    /// What it said: text, or an object whose shape the tool chose.
    #[serde(default)]
    pub tool_response: Value,
    /// The folder that the agent worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}
