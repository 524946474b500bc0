//! An archive as a folder: `manifest.json`, one `<table>.jsonl` per table, long bytes in `blobs/<sha256>`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::Sha256Hash;
use baton_files::{make_folder, open_or_create, sync_folder, write_durably};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::stream::{check_bytes, resolve};
use super::value::{RecordLine, Reference, long_bytes};
use super::{
    ArchiveError, ArchivePart, ArchiveReader, ArchiveTable, ArchiveWriter, Header, Record, Schema, Table,
    Totals,
};

const MANIFEST: &str = "manifest.json";
const BLOBS: &str = "blobs";
const MAX_MANIFEST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    header: Header,
    tables: Vec<TableFile>,
}

/// Manifest entry of a table's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    table: String,
    records: u64,
    sha256: Sha256Hash,
}

impl TableFile {
    fn path(folder: &Path, table: &str) -> PathBuf {
        folder.join(format!("{table}.jsonl"))
    }
}

/// Writes an archive into a folder and creates the folder. The manifest is written last: a folder without one is
/// incomplete.
#[derive(Debug)]
pub struct FolderWriter {
    folder: PathBuf,
    header: Option<Header>,
    tables: Vec<TableFile>,
    open: Option<OpenTable>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct OpenTable {
    table: Arc<Table>,
    file: BufWriter<File>,
    hasher: Sha256,
    records: u64,
}

impl FolderWriter {
    /// Uses a folder that is empty or missing.
    pub fn new(folder: &Path) -> Result<Self, ArchiveError> {
        make_folder(folder).map_err(ArchiveError::Write)?;
        let folder = folder.to_owned();
        Ok(Self { folder, header: None, tables: Vec::new(), open: None, line: Vec::new() })
    }

    fn close_table(&mut self) -> Result<(), ArchiveError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let file = open.file.into_inner().map_err(|error| ArchiveError::Write(error.into_error()))?;
        file.sync_all().map_err(ArchiveError::Write)?;
        let sha256 = Sha256Hash::from_bytes(open.hasher.finalize().into());
        self.tables.push(TableFile { table: open.table.name.clone(), records: open.records, sha256 });
        Ok(())
    }

    fn put_blob(&self, reference: &Reference, bytes: &[u8]) -> Result<(), ArchiveError> {
        let blobs = self.folder.join(BLOBS);
        make_folder(&blobs).map_err(ArchiveError::Write)?;
        let path = blobs.join(reference.sha256.to_string());
        if path.exists() { Ok(()) } else { write_durably(&path, bytes).map_err(ArchiveError::Write) }
    }
}

impl ArchiveWriter for FolderWriter {
    fn begin(&mut self, header: &Header) -> Result<(), ArchiveError> {
        self.header = Some(header.clone());
        Ok(())
    }

    fn table(&mut self, table: &ArchiveTable) -> Result<(), ArchiveError> {
        self.close_table()?;
        let file = open_or_create(&TableFile::path(&self.folder, table.name()));
        let file = file.and_then(|file| file.set_len(0).map(|()| file)).map_err(ArchiveError::Write)?;
        let file = BufWriter::with_capacity(256 * 1024, file);
        self.open = Some(OpenTable { table: table.0.clone(), file, hasher: Sha256::new(), records: 0 });
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), ArchiveError> {
        let mut reference = None;
        if let Some(bytes) = long_bytes(record) {
            let found = Reference::of(bytes);
            self.put_blob(&found, bytes)?;
            reference = Some(found);
        }
        let Some(open) = &mut self.open else {
            return Err(ArchiveError::damaged("a record precedes its table"));
        };
        let line = RecordLine { table: &open.table, record, reference };
        serde_json::to_writer(&mut self.line, &line).map_err(|error| ArchiveError::Write(error.into()))?;
        self.line.push(b'\n');
        open.hasher.update(&self.line);
        open.records += 1;
        let written = open.file.write_all(&self.line).map_err(ArchiveError::Write);
        self.line.clear();
        written
    }

    fn finish(&mut self) -> Result<Totals, ArchiveError> {
        self.close_table()?;
        let Some(header) = self.header.clone() else {
            return Err(ArchiveError::damaged("there is no header"));
        };
        let manifest = Manifest { header, tables: self.tables.clone() };
        let text = serde_json::to_vec_pretty(&manifest).map_err(|error| ArchiveError::Write(error.into()))?;
        write_durably(&self.folder.join(MANIFEST), &text).map_err(ArchiveError::Write)?;
        sync_folder(&self.folder).map_err(ArchiveError::Write)?;
        let records = self.tables.iter().map(|file| (file.table.clone(), file.records)).collect();
        Ok(Totals { records, sha256: None })
    }
}

/// Reads an archive from a folder.
#[derive(Debug)]
pub struct FolderReader {
    folder: PathBuf,
    manifest: Manifest,
    schema: Schema,
    /// Number of tables started.
    begun: usize,
    open: Option<ReadTable>,
    totals: Totals,
    line: Vec<u8>,
}

#[derive(Debug)]
struct ReadTable {
    table: Arc<Table>,
    file: BufReader<File>,
    hasher: Sha256,
    records: u64,
}

impl FolderReader {
    /// Reads the manifest.
    pub fn new(folder: &Path) -> Result<Self, ArchiveError> {
        let path = folder.join(MANIFEST);
        let mut text = Vec::new();
        File::open(&path).and_then(|file| file.take(MAX_MANIFEST_BYTES).read_to_end(&mut text)).map_err(
            |error| match error.kind() {
                io::ErrorKind::NotFound => ArchiveError::damaged(format!("{} is missing", path.display())),
                _ => ArchiveError::unreadable(MANIFEST, &error),
            },
        )?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|error| ArchiveError::damaged(format!("{MANIFEST}: {error}")))?;
        manifest.header.check()?;
        let schema = Schema::at(manifest.header.schema)?;
        let folder = folder.to_owned();
        let totals = Totals::default();
        Ok(Self { folder, manifest, schema, begun: 0, open: None, totals, line: Vec::new() })
    }

    fn begin_table(&mut self) -> Result<Option<ArchivePart>, ArchiveError> {
        let Some(described) = self.manifest.tables.get(self.begun) else { return Ok(None) };
        self.begun += 1;
        let name = &described.table;
        let table = self.schema.table(name);
        let table = table.ok_or_else(|| ArchiveError::damaged(format!("there is no table {name}")))?;
        let file = File::open(TableFile::path(&self.folder, name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ArchiveError::damaged(format!("{name}.jsonl is missing")),
            _ => ArchiveError::unreadable(&format!("{name}.jsonl"), &error),
        })?;
        let file = BufReader::with_capacity(256 * 1024, file);
        self.totals.records.insert(name.clone(), 0);
        self.open = Some(ReadTable { table: table.clone(), file, hasher: Sha256::new(), records: 0 });
        Ok(Some(ArchivePart::Table(ArchiveTable(table))))
    }

    fn end_table(&self, read: ReadTable) -> Result<(), ArchiveError> {
        let described = self.manifest.tables.iter().find(|described| described.table == read.table.name);
        let sha256 = Sha256Hash::from_bytes(read.hasher.finalize().into());
        match described {
            Some(described) if described.sha256 == sha256 && described.records == read.records => Ok(()),
            _ => Err(ArchiveError::damaged(format!(
                "{}.jsonl does not have the recorded hash or number of records",
                read.table.name
            ))),
        }
    }
}

impl ArchiveReader for FolderReader {
    fn header(&self) -> &Header {
        &self.manifest.header
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn next(&mut self) -> Result<Option<ArchivePart>, ArchiveError> {
        let Some(mut read) = self.open.take() else { return self.begin_table() };
        self.line.clear();
        read.file
            .read_until(b'\n', &mut self.line)
            .map_err(|error| ArchiveError::unreadable(&format!("{}.jsonl", read.table.name), &error))?;
        if self.line.is_empty() {
            self.end_table(read)?;
            return self.begin_table();
        }
        read.hasher.update(&self.line);
        read.records += 1;
        let damaged = |problem: String| {
            ArchiveError::damaged(format!("{}.jsonl line {}: {problem}", read.table.name, read.records))
        };
        let written = serde_json::from_slice(&self.line).map_err(|error| damaged(error.to_string()))?;
        let blobs = self.folder.join(BLOBS);
        let record = resolve(&read.table, written, |reference| {
            let name = reference.sha256.to_string();
            let bytes = std::fs::read(blobs.join(&name)).map_err(|error| format!("blobs/{name}: {error}"))?;
            check_bytes(bytes, reference)
        });
        let record = record.map_err(damaged)?;
        self.totals.count(&read.table.name);
        self.open = Some(read);
        Ok(Some(ArchivePart::Record(record)))
    }
}
