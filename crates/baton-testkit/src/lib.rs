//! Test support for Baton: the store contract, fixtures, PostgreSQL test databases, harnesses for real processes.
//!
//! Used only by tests and benches; no released code depends on it.

pub mod binary;
pub mod browser;
pub mod contract;
pub mod crash;
pub mod crash_jobs;
pub mod crash_saves;
pub mod model_server;
pub mod postgres;
pub mod power_cut;
pub mod processes;
mod rounds;
pub mod small_disk;

pub use rounds::rounds;
