//! The store from outside: the contract on every database, and what each engine promises beyond it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod migrations;
mod postgres;
mod postgres_restart;
mod sqlite_file;
