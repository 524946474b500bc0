//! Baton's HTTP interface: routes, the dashboard, MCP over HTTP, OpenAPI. Adapter only.
//!
//! A request is converted to parameters, one operation is called through `App::call`, and the reply is sent. Routes come
//! from the table of operations ([`baton_app::registrations`]).

mod api_page;
mod http;
mod openapi;
#[cfg(test)]
mod reference_tests;

pub use http::{Listener, LocalServer, ServeError, Server, ServerConfig};
pub use openapi::openapi;
