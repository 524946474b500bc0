//! The MCP interface.

mod briefing;
mod defaults;
mod group;
mod instructions;
mod listing;
mod live_session;
mod local;
mod message;
mod prompts;
mod resources;
mod result;
mod schema;
mod selection;
mod server;
mod stdio;
mod tools;

pub use local::{FindRepo, LocalCall, LocalCheckout, LocalTool};
pub(crate) use message::{MAX_MESSAGE_BYTES, RejectedMessage, read_message};
pub use prompts::{PromptBinding, prompts};
pub use resources::{ResourceBinding, resources};
pub use selection::{ToolSelection, UnknownToolSet};
pub(crate) use server::{Caller, McpServer};
pub use stdio::{McpError, serve_stdio};
