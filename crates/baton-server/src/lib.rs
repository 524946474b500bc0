//! Baton's faces on the network: HTTP routes and MCP tools. Adapters only.
//!
//! A face turns a request into parameters, calls one operation through `App::call`, and sends the reply. Adding a
//! capability is one line in [`routes`](crate::routes()) and one in [`tools`](crate::tools()); what is worth reading by
//! address gets a line in [`resources`](crate::resources()) too.

mod api_page;
mod http;
mod mcp;
mod openapi;
mod params;
mod routes;

pub use http::{LocalServer, ServeError, Server, ServerConfig};
pub use mcp::{
    FindRepo, LocalCall, LocalCheckout, LocalHints, LocalTool, McpError, PromptBinding, ResourceBinding,
    ToolBinding, prompts, resources, serve_stdio, tools,
};
pub use openapi::openapi;
pub use routes::{Route, Verb, routes};
