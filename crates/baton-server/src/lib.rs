//! Baton's network interfaces: HTTP routes and MCP tools. Adapters only.
//!
//! An interface converts a request to parameters, calls one operation through `App::call`, and sends the reply. A new
//! capability is one line in [`routes`](crate::routes()) and one in [`tools`](crate::tools()), and one in
//! [`resources`](crate::resources()) if it should be readable by URI.

mod api_page;
mod http;
mod mcp;
mod openapi;
mod params;
#[cfg(test)]
mod reference_tests;
mod routes;

pub use http::{LocalServer, ServeError, Server, ServerConfig};
pub use mcp::{
    Area, Filled, FindRepo, LocalCall, LocalCheckout, LocalTool, McpError, PromptBinding, ResourceBinding,
    ToolBinding, ToolSelection, UnknownToolSet, prompts, resources, serve_stdio, tools,
};
pub use openapi::openapi;
pub use routes::{Route, Verb, routes};
