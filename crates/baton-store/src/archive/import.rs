//! Copying the records of an archive into a database: into one that is in use (`import`), or in place of what is there
//! (`replace`). Either is one transaction.

use std::path::PathBuf;

use baton_core::Sha256Hash;
use serde::Serialize;

use super::{ArchiveError, ArchivePart, ArchiveReader, Record, SEQUENCES, Table, Value};
use crate::blobs::BlobFolder;
use crate::error::StoreError;
use crate::migration::LATEST_VERSION;
use crate::store::StoreConfig;

/// Records are stored in portions of so many, or of so many bytes.
const BATCH_RECORDS: usize = 200;
const BATCH_BYTES: usize = 1024 * 1024;
/// So many conflicts are named; the others are counted.
const NAMED_CONFLICTS: usize = 100;
/// Longer content is a blob, where there is a folder for them.
const MAX_ROW_BYTES: usize = 256 * 1024;

/// A record that is not stored because another one is in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The table.
    pub table: String,
    /// The values of its primary key.
    pub key: String,
    /// What stands against it.
    pub reason: &'static str,
}

/// What an import came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Records that were added.
    pub added: u64,
    /// Records that were there already, exactly so.
    pub unchanged: u64,
    /// Records that were not stored.
    pub conflicting: u64,
    /// The first of those.
    pub conflicts: Vec<Conflict>,
}

/// How an import ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// It was kept.
    Kept(ImportReport),
    /// Records conflicted, and nothing was changed.
    Refused(ImportReport),
}

/// How what is there is replaced.
#[derive(Debug)]
pub struct Replace<'a> {
    /// The folder of blobs, where the store has one.
    pub blobs: Option<&'a BlobFolder>,
    /// Replace a store that holds data.
    pub force: bool,
    /// The time in the name of what is kept: of a folder beside a SQLite file, of a schema on PostgreSQL.
    pub stamp: &'a str,
}

/// A database that records are written to in one transaction; it is undone when dropped before `commit`.
pub(crate) trait Target {
    /// Adds records, leaving out those that a unique key forbids. Returns how many were added.
    fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<u64, StoreError>;
    /// Finds the record with the same primary key.
    fn find(
        &mut self,
        table: &Table,
        record: &Record,
    ) -> Result<Option<(Record, Option<String>)>, StoreError>;
    /// Makes a sequence go on after a number.
    fn advance_sequence(&mut self, table: &Table, last: i64) -> Result<(), StoreError>;
    /// Brings the schema to the latest version and keeps everything.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// A record as a row: its fields, and the name of its blob.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) fields: Record,
    pub(crate) blob: Option<String>,
}

/// Adds the records of an archive to a store. Records that are there already are left out; when others conflict, nothing
/// is changed unless `skip_conflicts`. The archive must have the current schema version.
pub fn import(
    config: &StoreConfig,
    blobs: Option<&BlobFolder>,
    reader: &mut dyn ArchiveReader,
    skip_conflicts: bool,
) -> Result<Imported, ArchiveError> {
    let found = reader.header().schema;
    if found != LATEST_VERSION {
        return Err(ArchiveError::damaged(format!("it has schema version {found}, not {LATEST_VERSION}")));
    }
    let mut target: Box<dyn Target> = match config {
        StoreConfig::Sqlite { path, .. } => Box::new(crate::sqlite::open_target(path)?),
        StoreConfig::Postgres { url, timeouts, .. } => {
            Box::new(crate::postgres::open_target(url, *timeouts)?)
        }
    };
    let report = copy(reader, target.as_mut(), blobs)?;
    if report.conflicting > 0 && !skip_conflicts {
        return Ok(Imported::Refused(report));
    }
    target.commit()?;
    Ok(Imported::Kept(report))
}

/// Puts the records of an archive in place of what a store holds, which is kept under another name. Returns where, or none
/// when there was nothing to keep.
pub fn replace(
    config: &StoreConfig,
    reader: &mut dyn ArchiveReader,
    how: &Replace<'_>,
) -> Result<(ImportReport, Option<String>), ArchiveError> {
    let version = reader.header().schema;
    let (mut target, kept): (Box<dyn Target>, Option<String>) = match config {
        StoreConfig::Sqlite { path, .. } => {
            let (target, kept) = crate::sqlite::open_replacement(path, version, how)?;
            (Box::new(target), kept.map(|path: PathBuf| path.display().to_string()))
        }
        StoreConfig::Postgres { url, timeouts, .. } => {
            let (target, kept) = crate::postgres::open_replacement(url, *timeouts, version, how)?;
            (Box::new(target), kept)
        }
    };
    let report = copy(reader, target.as_mut(), how.blobs)?;
    if let Some(conflict) = report.conflicts.first() {
        let Conflict { table, key, reason } = conflict;
        return Err(ArchiveError::damaged(format!("{table} {key}: {reason}")));
    }
    target.commit()?;
    Ok((report, kept))
}

/// Writes every record of the archive, which is verified on the way.
fn copy(
    reader: &mut dyn ArchiveReader,
    target: &mut dyn Target,
    blobs: Option<&BlobFolder>,
) -> Result<ImportReport, ArchiveError> {
    let mut batch = Batch { target, blobs, records: Vec::new(), bytes: 0, report: ImportReport::default() };
    let mut table = None;
    while let Some(part) = reader.next()? {
        match part {
            ArchivePart::Table(next) => {
                if let Some(previous) = table.replace(next.0) {
                    batch.flush(&previous)?;
                }
            }
            ArchivePart::Record(record) => {
                if let Some(table) = &table {
                    batch.add(table, record)?;
                }
            }
        }
    }
    if let Some(last) = &table {
        batch.flush(last)?;
    }
    Ok(batch.report)
}

struct Batch<'a> {
    target: &'a mut dyn Target,
    blobs: Option<&'a BlobFolder>,
    records: Vec<Record>,
    bytes: usize,
    report: ImportReport,
}

impl Batch<'_> {
    fn add(&mut self, table: &Table, record: Record) -> Result<(), ArchiveError> {
        self.bytes += record.iter().map(size_of).sum::<usize>();
        self.records.push(record);
        if self.records.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES {
            self.flush(table)?;
        }
        Ok(())
    }

    fn flush(&mut self, table: &Table) -> Result<(), ArchiveError> {
        let records = std::mem::take(&mut self.records);
        self.bytes = 0;
        if records.is_empty() {
            return Ok(());
        }
        if table.name == SEQUENCES {
            return records.iter().try_for_each(|record| self.advance(record));
        }
        let count = records.len() as u64;
        let rows = records.into_iter().map(|record| place(table, record, self.blobs));
        let rows = rows.collect::<Result<Vec<Row>, _>>()?;
        let failed = |source| ArchiveError::Record { table: table.name.clone(), source };
        let added = self.target.insert(table, &rows).map_err(failed)?;
        self.report.added += added;
        if added == count {
            return Ok(());
        }
        if !table.is_data() {
            // Request records of two stores may have the same number. The store keeps its own.
            self.report.unchanged += count - added;
            return Ok(());
        }
        let before = self.report.conflicting;
        for row in &rows {
            self.compare(table, row)?;
        }
        self.report.unchanged += (count - added).saturating_sub(self.report.conflicting - before);
        Ok(())
    }

    /// Notes a record that is not in the store as it is in the archive.
    fn compare(&mut self, table: &Table, row: &Row) -> Result<(), ArchiveError> {
        let reason = match self.target.find(table, &row.fields)? {
            Some((fields, blob)) => {
                let mut found = Row { fields, blob };
                let same_blob = found.blob == row.blob;
                if same_blob && found.fields == row.fields {
                    return Ok(());
                }
                // The same bytes may be in a row here and in a file there.
                let mut expected = Row { fields: row.fields.clone(), blob: row.blob.clone() };
                unplace(table, &mut found, self.blobs)?;
                unplace(table, &mut expected, self.blobs)?;
                if found.fields == expected.fields {
                    return Ok(());
                }
                "the store has another record with this key"
            }
            None => "another record of the store has the same unique values",
        };
        self.report.conflicting += 1;
        if self.report.conflicts.len() < NAMED_CONFLICTS {
            let key = table.key().map(|index| display(&row.fields[index])).collect::<Vec<_>>().join(" ");
            self.report.conflicts.push(Conflict { table: table.name.clone(), key, reason });
        }
        Ok(())
    }

    fn advance(&mut self, record: &Record) -> Result<(), ArchiveError> {
        let [Value::Text(name), Value::Int(last)] = record.as_slice() else {
            return Err(ArchiveError::damaged("a sequence has a name and a number"));
        };
        let schema = super::Schema::at(LATEST_VERSION)?;
        match schema.table(name).filter(|table| table.has_sequence) {
            Some(table) => Ok(self.target.advance_sequence(&table, *last)?),
            None => Ok(()),
        }
    }
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Int(_) => 8,
        Value::Text(text) | Value::Missing(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

fn display(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Null | Value::Bytes(_) | Value::Missing(_) => "-".into(),
    }
}

/// Puts long content into a blob, durably, where there is a folder for them.
fn place(table: &Table, mut fields: Record, blobs: Option<&BlobFolder>) -> Result<Row, ArchiveError> {
    let Some(content) = &table.content else { return Ok(Row { fields, blob: None }) };
    let in_row = if content.is_required { Value::Bytes(Vec::new()) } else { Value::Null };
    let blob = match (&fields[content.field], blobs) {
        (Value::Missing(name), _) => Some(name.clone()),
        (Value::Bytes(bytes), Some(blobs)) if bytes.len() > MAX_ROW_BYTES => {
            // Named by its record and its content: no two records share a blob, and none is written over another.
            let key = table.key().map(|index| display(&fields[index])).collect::<Vec<_>>().join("\n");
            let named = format!("{}\n{key}\n{}", table.name, Sha256Hash::of(bytes));
            let hash = Sha256Hash::of(named.as_bytes()).to_string();
            let name = format!("{}.{}", hash.get(..32).unwrap_or_default(), table.fields[content.field].name);
            blobs.put(&name, bytes)?;
            Some(name)
        }
        _ => None,
    };
    if blob.is_some() {
        fields[content.field] = in_row;
    }
    Ok(Row { fields, blob })
}

/// Puts the bytes of a blob back into the record.
fn unplace(table: &Table, row: &mut Row, blobs: Option<&BlobFolder>) -> Result<(), ArchiveError> {
    if let (Some(content), Some(name)) = (&table.content, row.blob.take()) {
        let bytes = blobs.map_or(Ok(None), |blobs| blobs.get(&name))?;
        row.fields[content.field] = bytes.map_or(Value::Missing(name), Value::Bytes);
    }
    Ok(())
}
