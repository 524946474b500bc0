//! Operations on the agents of the server's machine, one file per operation.

mod list;

pub use list::{AgentConnection, ListAgents, ListAgentsOutput, McpServerState};
