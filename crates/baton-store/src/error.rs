//! What can go wrong with a database, as far as a caller can act on it.

use std::error::Error;
use std::path::PathBuf;

/// A failure of the store. Nothing of the transaction it belongs to was kept, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, opened, read or written.
    #[error("the database is unavailable: {message}")]
    Unavailable {
        /// What was tried.
        message: String,
        /// What the engine said.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The connection failed, or the server did not answer in time, during commit: the outcome is unknown.
    #[error("the database connection failed during commit; the outcome is unknown")]
    CommitUnknown {
        /// What the engine said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Other writers held the database for longer than is bearable.
    #[error("the database stayed busy with other writers")]
    Busy,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The database can be read but not written: its file, folder or file system is read-only.
    #[error("the database is read-only")]
    ReadOnly,
    /// A row names a blob whose file is missing. Inside a read, the row may have been deleted since the read began.
    #[error("blob {name} is missing")]
    BlobMissing {
        /// The name of the blob.
        name: String,
    },
    /// The data folder cannot be made or written.
    #[error("{path}: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database was written by a newer version of Baton.
    #[error("the database has schema version {found}, this binary knows up to {known}")]
    NewerSchema {
        /// The version that was found.
        found: i64,
        /// The newest version that this binary knows.
        known: i64,
    },
    /// The database was written by an older version of Baton, and this process does not migrate.
    #[error("the database has schema version {found} and must be upgraded to {known}")]
    OlderSchema {
        /// The version that was found.
        found: i64,
        /// The version that this binary needs.
        known: i64,
    },
    /// The SQLite file has tables, but Baton did not create them.
    #[error("the SQLite file belongs to another program: it has a table `{table}` and no Baton schema")]
    ForeignDatabase {
        /// One of its tables.
        table: String,
    },
    /// A stored row does not make sense.
    #[error("corrupt row in {table}: {problem}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A statement failed in a way that is not the caller's doing.
    #[error("a database statement failed")]
    Statement {
        /// What the engine said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// More work waits than can be taken on.
    #[error("too much work is waiting for the database")]
    Overloaded,
    /// The work itself broke off; it was rolled back.
    #[error("the work broke off and was rolled back")]
    Broken,
    /// The store was closed while the work was waiting.
    #[error("the store was closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into(), source: None }
    }

    /// Says that a stored row does not make sense.
    pub fn corrupt(table: &'static str, problem: impl ToString) -> Self {
        Self::Corrupt { table, problem: problem.to_string() }
    }
}
