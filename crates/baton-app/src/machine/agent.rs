//! How agents are connected to Baton on one machine.

use baton_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections of the agents on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListAgentsOutput {
    /// Host name of the server's machine.
    pub host: String,
    /// Agents that are set up on the machine.
    pub connections: Vec<AgentConnection>,
    /// State of the MCP server that agents start; null without `probe` or without an agent.
    pub mcp_server: Option<McpServerState>,
}

/// Connection of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AgentConnection {
    /// Name on the command line, for example `claude-code`.
    pub id: String,
    /// Name for people, for example `Claude Code`.
    pub name: String,
    /// `user` for all projects of the user, `project` for the project in the working folder of the server.
    pub scope: String,
    /// Time of the last event that a hook of the agent captured on this machine, or null.
    pub last_event_at: Option<Timestamp>,
    /// What is wrong: a missing binary, changed configuration files, hooks that are not trusted, or no event yet. Null if
    /// nothing is wrong.
    pub problem: Option<String>,
    /// What to do about the problem, or null.
    pub fix: Option<String>,
}

/// State of the MCP server that agents start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct McpServerState {
    /// Path of the binary.
    pub binary: String,
    /// Number of tools that it lists, or null if it did not respond.
    #[schemars(with = "Option<i64>")]
    pub tools: Option<usize>,
    /// Why it did not respond, or null.
    pub problem: Option<String>,
}
