//! The MCP interface.

mod briefing;
mod local;
mod message;
mod prompts;
mod resources;
mod result;
mod server;
mod stdio;
mod tools;

pub use local::{FindRepo, LocalCall, LocalCheckout, LocalHints, LocalTool};
pub(crate) use message::{MAX_MESSAGE_BYTES, Refusal, read_message};
pub use prompts::{PromptBinding, prompts};
pub use resources::{ResourceBinding, resources};
pub(crate) use server::{Caller, McpServer};
pub use stdio::{McpError, serve_stdio};
pub use tools::{ToolBinding, tools};
