//! Errors of the store, one variant for each way in which a caller can react.

use std::error::Error;
use std::path::PathBuf;

/// A store error. The transaction was rolled back unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, opened, read or written.
    #[error("the database is unavailable: {message}")]
    Unavailable {
        /// The action that failed.
        message: String,
        /// Error of the engine.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The connection failed, or the server did not answer in time, during commit: the outcome is unknown.
    #[error("the database connection failed during commit; the outcome is unknown")]
    CommitUnknown {
        /// Error of the engine.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another writer held the lock for longer than the lock timeout.
    #[error("the database is locked by other writers")]
    Busy,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The database can be read but not written: its file, folder or file system is read-only.
    #[error("the database is read-only")]
    ReadOnly,
    /// A row refers to a blob whose file is missing. During a read, the row may have been deleted since the read began.
    #[error("blob {name} is missing")]
    BlobMissing {
        /// The name of the blob.
        name: String,
    },
    /// The data folder cannot be created or written.
    #[error("cannot write {path}: {source}")]
    Folder {
        /// Folder or file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The database was written by a newer version of Baton.
    #[error("the database has schema version {found}; this binary supports versions up to {known}")]
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
    ForeignDatabase { table: String },
    /// A stored row is invalid.
    #[error("corrupt row in {table}: {problem}")]
    Corrupt {
        /// Table of the row.
        table: String,
        /// Reason why the row is invalid.
        problem: String,
    },
    /// A new value cannot be encoded.
    #[error("cannot {action}")]
    Encode {
        /// The action that failed, for example `compress raw output`.
        action: &'static str,
        source: Box<dyn Error + Send + Sync>,
    },
    /// A statement failed for a reason that the caller cannot influence.
    #[error("a database statement failed")]
    Statement {
        /// Error of the engine.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The queue of waiting work is full.
    #[error("the database queue is full")]
    Overloaded,
    /// The work panicked, or returned success although one of its statements had failed. It was rolled back.
    #[error("the work failed and was rolled back")]
    WorkFailed,
    /// The store was closed while the work was waiting.
    #[error("the store was closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into(), source: None }
    }

    pub(crate) fn caused_by(message: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable { message: message.into(), source: Some(source.into()) }
    }

    /// Creates an error for an invalid stored row.
    pub fn corrupt(table: &str, problem: impl ToString) -> Self {
        Self::Corrupt { table: table.to_owned(), problem: problem.to_string() }
    }
}
