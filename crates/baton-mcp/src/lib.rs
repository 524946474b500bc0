//! MCP: tools, resources and prompts, on standard input and output and over HTTP. Adapter only.
//!
//! Tools come from the table of operations ([`baton_app::registrations`]); what should be readable by URI is one line in
//! [`resources`](crate::resources()). Connections, authentication and limits of HTTP are in `baton-server`.

mod caller;
mod defaults;
mod group;
mod http_service;
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

pub use caller::Caller;
pub use defaults::FindRepo;
pub use http_service::{HttpService, ResponseBody};
pub use local::{LocalCall, LocalCheckout, LocalTool};
pub use message::{MAX_MESSAGE_BYTES, RejectedMessage};
pub use prompts::{PromptBinding, prompts};
pub use resources::{ResourceBinding, resources};
pub use selection::{ToolSelection, UnknownToolSet};
pub use stdio::{McpError, serve_stdio};
