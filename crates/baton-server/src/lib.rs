//! Baton's network interfaces: HTTP routes and MCP tools. Adapters only.
//!
//! An interface converts a request to parameters, calls one operation through `App::call`, and sends the reply. Routes
//! and tools come from the table of operations ([`baton_app::registrations`]); what should be readable by URI is one
//! line in [`resources`](crate::resources()).

mod api_page;
mod http;
mod mcp;
mod openapi;
mod params;
#[cfg(test)]
mod reference_tests;

use std::future::Future;
use std::pin::Pin;

pub use http::{LocalServer, ServeError, Server, ServerConfig};
pub use mcp::{
    FindRepo, LocalCall, LocalCheckout, LocalTool, McpError, PromptBinding, ResourceBinding, ToolSelection,
    UnknownToolSet, prompts, resources, serve_stdio,
};
pub use openapi::openapi;

/// A future whose code is compiled in this crate, and not again in the crate that awaits it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
