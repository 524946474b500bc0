//! The HTTP interface.

mod accept;
mod body;
mod budget;
mod connections;
mod dashboard;
mod exchange;
mod failures;
mod framing;
mod limit;
mod live;
mod local;
mod mcp;
mod metrics;
mod pages;
mod peer;
mod report;
mod respond;
mod server;
mod service;
mod wire;

pub use local::LocalServer;
pub use server::{Listener, ServeError, Server, ServerConfig};
