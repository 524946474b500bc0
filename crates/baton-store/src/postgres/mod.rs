//! The store on a PostgreSQL server: one connection a thread, explicit locks, retries of what the server undoes.

mod availability;
mod client;
mod engine;
mod inspect;
mod migrate;
mod open;
mod sql;
mod watch;
mod writer;

pub(crate) use engine::PostgresEngine;
pub(crate) use inspect::inspect;
pub(crate) use watch::watch;
