//! Operations on the agents of the server's machine, one file per operation.

mod connection;
mod list;

pub use connection::{AgentConnection, ListAgentsOutput, McpServerState};
pub use list::ListAgents;
