//! A model that is none: a real HTTP server on this machine that speaks the Anthropic Messages API (`/v1/messages`) and
//! OpenAI's chat completions (`/v1/chat/completions`), well or as badly as a test asks it to.
//!
//! `Behaviour` says how it answers, `ModelServer` starts it, switches it and tells what was sent to it.

mod answer;
mod behaviour;
mod http;
mod server;

pub use behaviour::Behaviour;
pub use http::Request;
pub use server::ModelServer;

/// URL at which no server listens: port 1 is reserved, so unlike a port that was just closed it is never assigned to
/// another test.
pub const UNREACHABLE_URL: &str = "http://127.0.0.1:1";
