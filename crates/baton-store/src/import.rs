//! Copies the records of an archive into a database, adding to its content (`import`) or replacing it (`replace`). Both
//! use one transaction.

use std::path::PathBuf;

use baton_core::Sha256Hash;
use serde::Serialize;

use crate::archive::{
    ArchiveError, ArchivePart, ArchiveReader, Record, Replace, Row, SEQUENCES, Schema, Table, Target, Value,
};
use crate::blobs::{BlobFolder, MAX_ROW_BYTES};
use crate::engine::StoreConfig;
use crate::error::StoreError;
use crate::migration::LATEST_VERSION;

/// A batch of records is inserted when it has this many records or this many bytes.
const BATCH_RECORDS: usize = 200;
const BATCH_BYTES: usize = 1024 * 1024;
/// Maximum number of conflicts listed in a report; all are counted.
const NAMED_CONFLICTS: usize = 100;

/// A record that is not imported because it conflicts with an existing one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Table of the record.
    pub table: String,
    /// Primary key values of the record.
    pub key: String,
    /// Why the record conflicts.
    pub reason: &'static str,
}

/// Result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Records that were added.
    pub added: u64,
    /// Records that already existed with the same content.
    pub unchanged: u64,
    /// Records that were not imported because they conflict.
    pub conflicting: u64,
    /// The first conflicts, up to a limit.
    pub conflicts: Vec<Conflict>,
}

/// Outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The import was committed.
    Kept(ImportReport),
    /// Records conflicted and nothing was changed.
    Refused(ImportReport),
}

/// Adds the records of an archive to a store and skips records that already exist. If records conflict, nothing is
/// changed unless `skip_conflicts` is set. The archive must have the current schema version.
pub fn import(
    config: &StoreConfig,
    blobs: Option<&BlobFolder>,
    reader: &mut dyn ArchiveReader,
    skip_conflicts: bool,
) -> Result<Imported, ArchiveError> {
    let found = reader.header().schema;
    if found != LATEST_VERSION {
        return Err(ArchiveError::OtherSchema { found, known: LATEST_VERSION });
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

/// Replaces the content of a store with the records of an archive. The old content is kept under another name, which is
/// returned; `None` if there was no content.
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

/// Copies every record of the archive, which is verified while it is read.
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
        let rows = records.into_iter().map(|record| move_content_to_blob(table, record, self.blobs));
        let rows = rows.collect::<Result<Vec<Row>, _>>()?;
        let failed = |source| ArchiveError::Record { table: table.name.clone(), source };
        let added = self.target.insert(table, &rows).map_err(failed)?;
        self.report.added += added;
        if added == count {
            return Ok(());
        }
        if !table.is_data() {
            // Request records of two stores may have the same id. The existing record is kept.
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

    /// Reports a conflict if the store's record differs from the archive's.
    fn compare(&mut self, table: &Table, row: &Row) -> Result<(), ArchiveError> {
        let reason = match self.target.find(table, &row.fields)? {
            Some(found) => {
                // The same bytes may be in the row of one record and in the blob of the other.
                if found == *row
                    || with_blob_content(table, found, self.blobs)?
                        == with_blob_content(table, row.clone(), self.blobs)?
                {
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
        let schema = Schema::at(LATEST_VERSION)?;
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

/// Stores long content as a blob if there is a blob folder.
fn move_content_to_blob(
    table: &Table,
    mut fields: Record,
    blobs: Option<&BlobFolder>,
) -> Result<Row, ArchiveError> {
    let Some(content) = &table.content else { return Ok(Row { fields, blob: None }) };
    let in_row = if content.is_required { Value::Bytes(Vec::new()) } else { Value::Null };
    let blob = match (&fields[content.field], blobs) {
        (Value::Missing(name), _) => Some(name.clone()),
        (Value::Bytes(bytes), Some(blobs)) if bytes.len() > MAX_ROW_BYTES => {
            // The name is derived from the record and its content: no two records share a blob, and no blob is
            // overwritten with other content.
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

/// Returns a record with the bytes of its blob in it.
pub(crate) fn with_blob_content(
    table: &Table,
    row: Row,
    blobs: Option<&BlobFolder>,
) -> Result<Record, StoreError> {
    let Row { mut fields, blob } = row;
    if let (Some(content), Some(name)) = (&table.content, blob) {
        let bytes = blobs.map_or(Ok(None), |blobs| blobs.get(&name))?;
        fields[content.field] = bytes.map_or(Value::Missing(name), Value::Bytes);
    }
    Ok(fields)
}
