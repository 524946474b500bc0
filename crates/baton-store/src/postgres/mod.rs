//! A store on a PostgreSQL server: one connection per thread, explicit locks, retries of transactions that the server
//! aborts.

mod archive;
mod availability;
mod client;
mod engine;
mod inspect;
mod migrate;
mod open;
mod sql;
mod watch;
mod writer;

pub(crate) use archive::{open_replacement, open_source, open_target};
pub(crate) use engine::PostgresEngine;
pub(crate) use inspect::inspect;
pub(crate) use watch::watch;
