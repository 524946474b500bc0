//! A tool use, as a hook reports it.

use baton_core::observation::TurnText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::render::has_content;
use super::superseded::is_todo_update;

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

impl ToolUse {
    /// Returns true if a model could add nothing: for updates of to-dos, and for tools that returned nothing and changed
    /// nothing.
    pub fn is_trivial(&self) -> bool {
        is_todo_update(&self.tool_name) || !has_content(self)
    }
}
