//! A database whose records are copied to or from an archive. Each engine implements both traits.

use super::{ArchiveError, Record, Table};
use crate::blobs::BlobFolder;
use crate::error::StoreError;

/// Makes the worker index the imported items.
pub(crate) const REBUILD_INDEX: &str = "DELETE FROM recall_state";

/// A record with the name of its blob, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) fields: Record,
    pub(crate) blob: Option<String>,
}

/// A database that is read in one transaction.
pub(crate) trait Source {
    /// Calls `each` for every row.
    fn rows(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError>;
    /// Returns the last number that the sequence of a table assigned.
    fn sequence(&mut self, table: &Table) -> Result<i64, ArchiveError>;
}

/// A database that is written in one transaction. Dropping it before `commit` rolls back.
pub(crate) trait Target {
    /// Adds records, skipping those that violate a unique key. Returns the number of added records.
    fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<u64, StoreError>;
    /// Finds the record with the same primary key.
    fn find(&mut self, table: &Table, record: &Record) -> Result<Option<Row>, StoreError>;
    /// Makes a sequence continue after a number.
    fn advance_sequence(&mut self, table: &Table, last: i64) -> Result<(), StoreError>;
    /// Migrates the schema to the latest version and commits.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// How to replace a store.
#[derive(Debug)]
pub struct Replace<'a> {
    /// Blob folder of the store, if it has one.
    pub blobs: Option<&'a BlobFolder>,
    /// Replace the store even if it holds data.
    pub force: bool,
    /// Time stamp in the name that the old content is kept under: a folder beside a SQLite file, or a schema on
    /// PostgreSQL.
    pub stamp: &'a str,
}
