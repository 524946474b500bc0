//! Errors of archives.

use std::io;

use crate::error::StoreError;

/// Why an archive could not be written, read or copied into a database. The database is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive could not be written.
    #[error("cannot write the archive: {0}")]
    Write(#[source] io::Error),
    /// The archive could not be read.
    #[error("cannot read the archive: {0}")]
    Read(#[source] io::Error),
    /// The file is not an archive, or it is truncated or was changed.
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
    /// The archive has another schema version than the store.
    #[error("the archive has schema version {found}; only version {known} can be added to this store")]
    OtherSchema {
        /// The version that was found.
        found: i64,
        /// The version of the store.
        known: i64,
    },
    /// There is no database to export.
    #[error("there is no database at {place}")]
    NoDatabase {
        /// Where the database was expected.
        place: String,
    },
    /// The database that is to be replaced holds data.
    #[error("the store is not empty")]
    NotEmpty,
    /// The database that is to be replaced is damaged.
    #[error("the existing database is damaged: {problem}")]
    DamagedTarget {
        /// Error of the database.
        problem: String,
    },
    /// Another process uses the database that is to be replaced.
    #[error("another process uses the store: {who}")]
    InUse {
        /// Description of the other process.
        who: String,
    },
    /// A record cannot be stored.
    #[error("cannot store a record of {table}: {source}")]
    Record {
        /// Table of the record.
        table: String,
        /// Error of the database.
        source: StoreError,
    },
}

impl ArchiveError {
    pub(crate) fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged { problem: problem.into() }
    }

    /// Makes the error of a file in the folder of an archive.
    pub(crate) fn unreadable(name: &str, error: &io::Error) -> Self {
        Self::Read(io::Error::new(error.kind(), format!("{name}: {error}")))
    }
}
