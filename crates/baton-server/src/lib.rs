//! Baton's network interfaces: HTTP routes and MCP tools. Adapters only.
//!
//! An interface converts a request to parameters, calls one operation through `App::call`, and sends the reply. Routes
//! and tools come from the table of operations ([`baton_app::registrations`]); what should be readable by URI is one
//! line in [`resources`](crate::resources()).

mod api_page;
mod future;
mod http;
mod mcp;
mod openapi;
mod params;
#[cfg(test)]
mod reference_tests;

pub use future::BoxFuture;
pub use http::{LocalServer, ServeError, Server, ServerConfig};
pub use mcp::{
    FindRepo, LocalCall, LocalCheckout, LocalTool, McpError, PromptBinding, ResourceBinding, ToolSelection,
    UnknownToolSet, prompts, resources, serve_stdio,
};
pub use openapi::openapi;
