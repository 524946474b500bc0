//! The MCP face.

mod server;
mod tools;

pub use server::{McpError, serve_stdio};
pub use tools::{ToolBinding, tools};
