//! A fake model: a real HTTP server on this machine that implements the Anthropic Messages API (`/v1/messages`) and
//! OpenAI's chat completions and embeddings (`/v1/chat/completions`, `/v1/embeddings`), correctly or with the faults
//! that a test asks for. It also plays the model of coding agents, over the APIs that they use.
//!
//! `Behaviour` defines how it answers. `ModelServer` starts it, changes its behaviour and returns the received
//! requests.

mod agent;
mod answer;
mod behaviour;
mod http;
mod server;

pub use agent::{AgentCall, AgentScript};
pub use behaviour::Behaviour;
pub use http::Request;
pub use server::ModelServer;

/// URL at which no server listens: port 1 is reserved, so unlike a port that was just closed it is never assigned to
/// another test.
pub const UNREACHABLE_URL: &str = "http://127.0.0.1:1";
