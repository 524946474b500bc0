//! A store in one SQLite file: WAL mode, every acknowledged write synced to disk, one writer with group commit.

mod archive;
mod engine;
mod foreign;
mod inspect;
mod migrate;
mod open;
mod sql;
mod watch;
mod writer;

pub(crate) use archive::{open_replacement, open_source, open_target};
pub(crate) use engine::SqliteEngine;
pub use foreign::{ForeignDatabase, ForeignError};
pub(crate) use inspect::inspect;
pub(crate) use open::is_read_only;
pub(crate) use watch::watch;
