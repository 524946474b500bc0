//! Operations on the agents of the server's machine, one file per operation.

mod list;

pub use crate::machine::{AgentConnection, ListAgentsOutput, McpServerState};
pub use list::ListAgents;
