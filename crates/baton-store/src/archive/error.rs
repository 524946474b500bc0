//! What can go wrong with an archive.

use std::io;

use crate::error::StoreError;

/// Why an archive could not be written, read or copied into a database. The database is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive could not be written.
    #[error("writing failed: {0}")]
    Write(#[source] io::Error),
    /// The archive could not be read.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
    /// The archive is not one, is cut off, or was changed.
    #[error("the archive is damaged: {problem}")]
    Damaged {
        /// What is wrong, and where.
        problem: String,
    },
    /// The archive was written by a newer version of Baton.
    #[error("the archive has {what} {found}; this binary reads up to {known}")]
    Newer {
        /// `format version` or `schema version`.
        what: &'static str,
        /// The version that was found.
        found: i64,
        /// The newest version that this binary reads.
        known: i64,
    },
    /// There is nothing to export.
    #[error("there is no database at {place}")]
    NoDatabase {
        /// Where it was expected.
        place: String,
    },
    /// The database that is to be replaced holds data.
    #[error("the store is not empty")]
    NotEmpty,
    /// The database that is to be replaced is damaged.
    #[error("the existing database is damaged: {problem}")]
    DamagedTarget {
        /// What the database said.
        problem: String,
    },
    /// Another process uses the database that is to be replaced.
    #[error("another process uses the store: {who}")]
    InUse {
        /// What is known of it.
        who: String,
    },
    /// A record cannot be stored.
    #[error("cannot store a record of {table}: {source}")]
    Record {
        /// Its table.
        table: String,
        /// What the database said.
        source: StoreError,
    },
}

impl ArchiveError {
    pub(crate) fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged { problem: problem.into() }
    }
}
