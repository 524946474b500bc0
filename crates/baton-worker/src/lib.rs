//! The worker: creates observations from captured tool uses, and summaries of sessions.
//!
//! Owns scheduling, concurrency, error handling and pauses. Does not own the queue (`baton-app` has its transactions),
//! the compressors (`baton-llm`), or the process around it: it uses no signals, sockets or files.

mod breaker;
mod item;
mod worker;

pub use worker::{Drained, Worker, WorkerConfig, WorkerHandle};
