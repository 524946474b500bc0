//! Integration tests of the store: the contract on every database, and guarantees of each engine beyond it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod migrations;
mod postgres;
mod postgres_restart;
mod sqlite_file;
