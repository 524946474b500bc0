//! The HTTP face.

mod body;
mod exchange;
mod limit;
mod metrics;
mod respond;
mod server;
mod service;

pub use server::{ServeError, Server, ServerConfig};
