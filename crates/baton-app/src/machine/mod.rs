//! Data of the server's machine that is not in the store: files of checkouts and the configuration of agents.

mod access;
mod agent;
mod task;

pub use access::Machine;
pub use agent::{AgentConnection, ListAgentsOutput, McpServerState};
pub use task::{TaskDiff, TaskFiles};
