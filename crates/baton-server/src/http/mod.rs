//! The HTTP face.

mod body;
mod exchange;
mod limit;
mod mcp;
mod metrics;
mod respond;
mod server;
mod service;

pub use server::{ServeError, Server, ServerConfig};
