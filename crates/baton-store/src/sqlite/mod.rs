//! The store in one SQLite file: WAL, every acknowledged write on disk, one writer with group commit.

mod engine;
mod inspect;
mod migrate;
mod open;
mod sql;
mod watch;
mod writer;

pub(crate) use engine::SqliteEngine;
pub(crate) use inspect::inspect;
pub(crate) use watch::watch;
