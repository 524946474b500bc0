//! Test support for Baton: the store contract, fixtures, a PostgreSQL to test on, harnesses for real processes.
//!
//! Used by tests and benches alone; nothing that ships depends on it.

pub mod binary;
pub mod contract;
pub mod crash;
pub mod crash_jobs;
pub mod crash_saves;
pub mod model_server;
pub mod postgres;
pub mod power_cut;
pub mod processes;
pub mod small_disk;
