//! Archives: every record of a store in one database-independent form, written by `baton backup` and `baton export` and
//! read by `baton restore` and `baton import all`.
//!
//! Owns the format (`stream` is one stream of JSON lines, `folder` has the same lines in one file per table), and
//! what a database does for them (`database`). The tables and columns are read from the migrations
//! (`schema`), so a new table is archived without changes here. Does not own copying between an archive
//! and a database (`export` and `import` of the crate), the names of archive files or the output of the commands.

mod database;
mod error;
mod folder;
mod schema;
mod stream;
mod value;

pub use database::Replace;
pub use error::ArchiveError;
pub use folder::{FolderReader, FolderWriter};
pub use stream::{Header, StreamReader, StreamWriter, Totals};
pub use value::Value;

pub(crate) use database::{REBUILD_INDEX, Row, Source, Target};
pub(crate) use schema::{INDEX_TABLES, SEQUENCES, Schema, Table};

/// A record: the values of a table's fields, in the order of `Table::fields`.
pub type Record = Vec<Value>;

/// Receives the records of a store, table by table.
pub trait ArchiveWriter {
    /// Writes the header; called once, first.
    fn begin(&mut self, header: &Header) -> Result<(), ArchiveError>;
    /// Starts a table.
    fn table(&mut self, table: &ArchiveTable) -> Result<(), ArchiveError>;
    /// Writes a record of the table that was started last.
    fn record(&mut self, record: &Record) -> Result<(), ArchiveError>;
    /// Writes the counts and hashes; called once, last.
    fn finish(&mut self) -> Result<Totals, ArchiveError>;
}

/// Returns the records of an archive, table by table, and checks every hash.
pub trait ArchiveReader {
    fn header(&self) -> &Header;
    /// Returns the next part; `None` at the end, after every count and hash was verified.
    fn next(&mut self) -> Result<Option<ArchivePart>, ArchiveError>;
    /// Returns the counts of the records read so far.
    fn totals(&self) -> &Totals;
}

/// A table of an archive, opaque outside this crate.
#[derive(Debug, Clone)]
pub struct ArchiveTable(pub(crate) std::sync::Arc<Table>);

impl ArchiveTable {
    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

#[derive(Debug)]
pub enum ArchivePart {
    /// Start of a table.
    Table(ArchiveTable),
    /// A record of the current table.
    Record(Record),
}

/// Reads a whole archive and checks every count and hash.
pub fn verify(reader: &mut dyn ArchiveReader) -> Result<Totals, ArchiveError> {
    while reader.next()?.is_some() {}
    Ok(reader.totals().clone())
}

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod tests;
