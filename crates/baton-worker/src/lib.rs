//! The worker: creates observations from captured tool uses, summaries of sessions, and vectors for search.
//!
//! Owns scheduling, concurrency, error handling and pauses. Does not own the queue (`baton-app` has its transactions),
//! the compressors (`baton-llm`), or the process around it: it uses no signals, sockets or files.

mod breaker;
mod embedding;
mod item;
mod worker;

pub use worker::{Drained, Worker, WorkerConfig, WorkerHandle};
