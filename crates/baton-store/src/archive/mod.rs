//! Archives: every record of a store in one database-independent form, written by `baton backup` and `baton export` and
//! read by `baton restore` and `baton import all`.
//!
//! Owns the format (`stream` is one stream of JSON lines, `folder` the same lines as one file per table), and copying
//! between an archive and a database (`export`, `import`). Which tables and columns there are comes from the migrations
//! (`schema`), so a new table is part of every archive without a line here. Does not own the names of archive files or
//! what is printed about them.

mod error;
mod export;
mod folder;
mod import;
mod schema;
mod stream;
mod value;

pub use error::ArchiveError;
pub use export::{Exported, export};
pub use folder::{FolderReader, FolderWriter};
pub use import::{Conflict, ImportReport, Imported, Replace, import, replace};
pub use stream::{Header, StreamReader, StreamWriter, Totals};
pub use value::Value;

pub(crate) use export::Source;
pub(crate) use import::{Row, Target};
pub(crate) use schema::{SEQUENCES, Schema, Table};

/// A record: the values of a table's fields, in the order of `Table::fields`.
pub type Record = Vec<Value>;

/// Takes the records of a store, table by table.
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

/// Gives the records of an archive, table by table, and checks every hash on the way.
pub trait ArchiveReader {
    /// The header.
    fn header(&self) -> &Header;
    /// The next part; none after the end, once every count and hash was found right.
    fn next(&mut self) -> Result<Option<ArchivePart>, ArchiveError>;
    /// The counts of what was read.
    fn totals(&self) -> &Totals;
}

/// A table of an archive, for writers and readers outside this crate to pass on.
#[derive(Debug, Clone)]
pub struct ArchiveTable(pub(crate) std::sync::Arc<Table>);

impl ArchiveTable {
    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

/// A part of an archive.
#[derive(Debug)]
pub enum ArchivePart {
    /// A table begins.
    Table(ArchiveTable),
    /// A record of that table.
    Record(Record),
}

/// Reads a whole archive and checks every count and hash.
pub fn verify(reader: &mut dyn ArchiveReader) -> Result<Totals, ArchiveError> {
    while reader.next()?.is_some() {}
    Ok(reader.totals().clone())
}

#[cfg(test)]
mod tests;
