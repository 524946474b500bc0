//! The HTTP face.

mod body;
mod exchange;
mod limit;
mod local;
mod mcp;
mod metrics;
mod report;
mod respond;
mod server;
mod service;

pub use local::LocalServer;
pub use server::{ServeError, Server, ServerConfig};
