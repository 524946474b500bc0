//! The store on a PostgreSQL server: one connection a thread, explicit locks, retries of what the server undoes.

mod engine;
mod inspect;
mod migrate;
mod open;
mod sql;
mod writer;

pub(crate) use engine::PostgresEngine;
pub(crate) use inspect::inspect;
