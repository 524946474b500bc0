//! Copies every record of a database into an archive, from one consistent snapshot and without blocking writers.

use std::sync::Arc;

use baton_core::{Sha256Hash, Timestamp};

use crate::archive::{
    ArchiveError, ArchiveTable, ArchiveWriter, Header, Record, SEQUENCES, Schema, Source, Table, Totals,
    Value,
};
use crate::blobs::BlobFolder;
use crate::engine::StoreConfig;
use crate::import::with_blob_content;

/// Result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Number of exported records.
    pub totals: Totals,
    /// The schema version of the store.
    pub schema: i64,
    /// Names of blobs that records refer to but whose files are missing.
    pub missing_blobs: Vec<String>,
    /// Ids of checkpoints whose bytes do not have the recorded hash. They are exported as they are.
    pub damaged_checkpoints: Vec<String>,
}

/// Writes every record of a store into an archive. Blocks, but neither waits for writers nor blocks them.
pub fn export(
    config: &StoreConfig,
    blobs: Option<&BlobFolder>,
    writer: &mut dyn ArchiveWriter,
    at: Timestamp,
) -> Result<Exported, ArchiveError> {
    // Taken before the snapshot, so that blobs of rows that are deleted later are kept until the export is
    // finished.
    let _lock = blobs.map(BlobFolder::lock_removal).transpose()?;
    let (mut source, version, engine): (Box<dyn Source>, i64, &str) = match config {
        StoreConfig::Sqlite { path, .. } => {
            let (source, version) = crate::sqlite::open_source(path)?;
            (Box::new(source), version, "sqlite")
        }
        StoreConfig::Postgres { url, timeouts, .. } => {
            let (source, version) = crate::postgres::open_source(url, *timeouts)?;
            (Box::new(source), version, "postgres")
        }
    };
    let schema = Schema::at(version)?;
    writer.begin(&Header::new(version, engine, at))?;
    let (mut missing_blobs, mut damaged_checkpoints) = (Vec::new(), Vec::new());
    for table in &schema.tables {
        writer.table(&ArchiveTable(Arc::clone(table)))?;
        source.rows(table, &mut |row| {
            let record = with_blob_content(table, row, blobs)?;
            missing_blobs.extend(record.iter().filter_map(|value| match value {
                Value::Missing(name) => Some(name.clone()),
                _ => None,
            }));
            damaged_checkpoints.extend(damaged_checkpoint(table, &record));
            writer.record(&record)
        })?;
    }
    if let Some(sequences) = schema.table(SEQUENCES) {
        writer.table(&ArchiveTable(sequences))?;
        for table in schema.tables.iter().filter(|table| table.has_sequence) {
            let last = source.sequence(table)?;
            writer.record(&vec![Value::Text(table.name.clone()), Value::Int(last)])?;
        }
    }
    Ok(Exported { totals: writer.finish()?, schema: version, missing_blobs, damaged_checkpoints })
}

/// Returns the id of a checkpoint whose bytes do not have the recorded hash.
fn damaged_checkpoint(table: &Table, record: &Record) -> Option<String> {
    if table.name != "checkpoints" {
        return None;
    }
    let value = |name: &str| record.get(table.fields.iter().position(|field| field.name == name)?);
    match (value("id")?, value("frame_hash")?, value("frame")?) {
        (Value::Text(id), Value::Text(hash), Value::Bytes(frame))
            if Sha256Hash::of(frame).to_string() != *hash =>
        {
            Some(id.clone())
        }
        _ => None,
    }
}
