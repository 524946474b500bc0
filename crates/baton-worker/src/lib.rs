//! The worker: turns what was captured into observations, and what sessions did into summaries.
//!
//! Owns when something is worked on, how much at a time, what a failure means and when to pause. Does not own the queue
//! (`baton-app` has its transactions), the compressors (`baton-llm`), or the process around it: no signal, socket or file is
//! touched here.

mod breaker;
mod item;
mod worker;

pub use worker::{Drained, Worker, WorkerConfig, WorkerHandle};
