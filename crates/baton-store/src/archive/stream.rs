//! An archive as one stream of JSON lines, plain or compressed.
//!
//! ```text
//! {"header":{"format":"baton archive","version":1,"schema":12,…}}
//! {"table":"checkpoints"}
//! {"data":"<base64>"}                        long bytes of the next record, in parts
//! {"record":{"id":"ckpt_…","frame":{"blob":{"bytes":…,"sha256":"…"}},…}}
//! {"end":{"records":{"checkpoints":1,…},"sha256":"<of all lines before>"}}
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;

use baton_core::{Sha256Hash, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::schema::Field;
use super::value::{RecordLine, Reference, Value, Written, decode, encode, long_bytes};
use super::{
    ArchiveError, ArchivePart, ArchiveReader, ArchiveTable, ArchiveWriter, Record, SEQUENCES, Schema, Table,
};
use crate::migration::LATEST_VERSION;

pub(crate) const FORMAT: &str = "baton archive";
pub(crate) const FORMAT_VERSION: i64 = 1;
/// Long bytes are written in parts of this size.
const PART_BYTES: usize = 768 * 1024;
/// Maximum length of a line; the largest text of a record is far shorter.
const MAX_LINE_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum length of the content of a record.
const MAX_CONTENT_BYTES: usize = 1024 * 1024 * 1024;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_LEVEL: i32 = 3;

/// The first line of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `baton archive`.
    pub format: String,
    /// Format version.
    pub version: i64,
    /// Schema version of the store.
    pub schema: i64,
    /// Database engine, `sqlite` or `postgres`.
    pub engine: String,
    /// When the archive was started.
    pub created_at: Timestamp,
}

impl Header {
    pub(crate) fn new(schema: i64, engine: &str, created_at: Timestamp) -> Self {
        Self { format: FORMAT.into(), version: FORMAT_VERSION, schema, engine: engine.into(), created_at }
    }

    /// Checks that this binary can read the archive.
    pub(crate) fn check(&self) -> Result<(), ArchiveError> {
        if self.format != FORMAT {
            return Err(ArchiveError::damaged(format!("unknown format {:?}", self.format)));
        }
        let newer = |what, found, known| Err(ArchiveError::Newer { what, found, known });
        if self.version > FORMAT_VERSION {
            return newer("format version", self.version, FORMAT_VERSION);
        }
        if self.schema > LATEST_VERSION {
            return newer("schema version", self.schema, LATEST_VERSION);
        }
        Ok(())
    }
}

/// Record counts and hash of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Number of records of each table.
    pub records: BTreeMap<String, u64>,
    /// Hash of all lines before the last one; `None` for a folder, which has a hash for each file.
    pub sha256: Option<Sha256Hash>,
}

impl Totals {
    /// Returns the number of records of all tables, not counting the state of the id sequences.
    pub fn all(&self) -> u64 {
        self.records.iter().filter(|(table, _)| *table != SEQUENCES).map(|(_, count)| count).sum()
    }

    pub(crate) fn count(&mut self, table: &str) {
        match self.records.get_mut(table) {
            Some(count) => *count += 1,
            None => {
                self.records.insert(table.to_owned(), 1);
            }
        }
    }
}

/// Output of lines, plain or compressed.
enum Lines<'a> {
    Plain(Box<dyn Write + 'a>),
    Compressed(zstd::stream::write::Encoder<'static, Box<dyn Write + 'a>>),
}

/// Writes an archive as a stream.
pub struct StreamWriter<'a> {
    lines: Option<Lines<'a>>,
    hasher: Sha256,
    table: Option<ArchiveTable>,
    totals: Totals,
    line: Vec<u8>,
}

impl fmt::Debug for StreamWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamWriter")
    }
}

impl<'a> StreamWriter<'a> {
    /// Writes plain JSON lines.
    pub fn plain(output: impl Write + 'a) -> Self {
        Self::to(Lines::Plain(Box::new(output)))
    }

    /// Writes compressed JSON lines.
    pub fn compressed(output: impl Write + 'a) -> Result<Self, ArchiveError> {
        let output: Box<dyn Write + 'a> = Box::new(output);
        let mut encoder =
            zstd::stream::write::Encoder::new(output, ZSTD_LEVEL).map_err(ArchiveError::Write)?;
        encoder.include_checksum(true).map_err(ArchiveError::Write)?;
        Ok(Self::to(Lines::Compressed(encoder)))
    }

    fn to(lines: Lines<'a>) -> Self {
        Self {
            lines: Some(lines),
            hasher: Sha256::new(),
            table: None,
            totals: Totals::default(),
            line: Vec::with_capacity(4_096),
        }
    }

    fn put(&mut self) -> Result<(), ArchiveError> {
        self.line.push(b'\n');
        self.hasher.update(&self.line);
        let written = match &mut self.lines {
            Some(Lines::Plain(output)) => output.write_all(&self.line),
            Some(Lines::Compressed(output)) => output.write_all(&self.line),
            None => Err(std::io::Error::other("the archive is finished")),
        };
        self.line.clear();
        written.map_err(ArchiveError::Write)
    }

    fn put_value(&mut self, name: &str, value: &impl Serialize) -> Result<(), ArchiveError> {
        self.line.extend_from_slice(format!("{{\"{name}\":").as_bytes());
        serde_json::to_writer(&mut self.line, value).map_err(|error| ArchiveError::Write(error.into()))?;
        self.line.push(b'}');
        self.put()
    }
}

impl ArchiveWriter for StreamWriter<'_> {
    fn begin(&mut self, header: &Header) -> Result<(), ArchiveError> {
        self.put_value("header", header)
    }

    fn table(&mut self, table: &ArchiveTable) -> Result<(), ArchiveError> {
        self.table = Some(table.clone());
        self.totals.records.insert(table.name().to_owned(), 0);
        self.put_value("table", &table.name())
    }

    fn record(&mut self, record: &Record) -> Result<(), ArchiveError> {
        let Some(ArchiveTable(table)) = self.table.clone() else {
            return Err(ArchiveError::damaged("a record precedes its table"));
        };
        let mut reference = None;
        if let Some(bytes) = long_bytes(record) {
            reference = Some(Reference::of(bytes));
            for part in bytes.chunks(PART_BYTES) {
                self.put_value("data", &encode(part))?;
            }
        }
        self.put_value("record", &RecordLine { table: &table, record, reference })?;
        self.totals.count(&table.name);
        Ok(())
    }

    fn finish(&mut self) -> Result<Totals, ArchiveError> {
        self.totals.sha256 = Some(Sha256Hash::from_bytes(self.hasher.clone().finalize().into()));
        let totals = self.totals.clone();
        self.put_value("end", &totals)?;
        match self.lines.take() {
            Some(Lines::Plain(mut output)) => output.flush().map_err(ArchiveError::Write)?,
            Some(Lines::Compressed(output)) => {
                output.finish().and_then(|mut output| output.flush()).map_err(ArchiveError::Write)?;
            }
            None => {}
        }
        Ok(totals)
    }
}

/// Reads an archive from a stream, plain or compressed.
pub struct StreamReader<'a> {
    input: Box<dyn BufRead + 'a>,
    hasher: Sha256,
    header: Header,
    schema: Schema,
    table: Option<Arc<Table>>,
    totals: Totals,
    line: Vec<u8>,
    number: u64,
    is_over: bool,
}

impl fmt::Debug for StreamReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader").field("header", &self.header).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Header(Header),
    Table(String),
    Data(String),
    Record(HashMap<String, Written>),
    End(Totals),
}

impl<'a> StreamReader<'a> {
    /// Reads the header.
    pub fn new(input: impl Read + 'a) -> Result<Self, ArchiveError> {
        let mut input = BufReader::with_capacity(256 * 1024, input);
        let is_compressed = input.fill_buf().map_err(ArchiveError::Read)?.starts_with(&ZSTD_MAGIC);
        let input: Box<dyn BufRead + 'a> = if is_compressed {
            let decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(ArchiveError::Read)?;
            Box::new(BufReader::with_capacity(256 * 1024, decoder))
        } else {
            Box::new(input)
        };
        let mut reader = Self {
            input,
            hasher: Sha256::new(),
            header: Header::new(0, "", Timestamp::from_millis(0)),
            schema: Schema { tables: Vec::new() },
            table: None,
            totals: Totals::default(),
            line: Vec::new(),
            number: 0,
            is_over: false,
        };
        match reader.read_line() {
            Ok(Some(Line::Header(header))) => {
                header.check()?;
                reader.schema = Schema::at(header.schema)?;
                reader.header = header;
                Ok(reader)
            }
            Err(ArchiveError::Read(error)) => Err(ArchiveError::Read(error)),
            _ => Err(ArchiveError::damaged("it does not begin with the header of a Baton archive")),
        }
    }

    /// Creates the error for the line that was read last.
    fn damaged(&self, problem: impl fmt::Display) -> ArchiveError {
        ArchiveError::damaged(format!("line {}: {problem}", self.number))
    }

    /// Reads a line; `None` at the end of the stream.
    fn read_line(&mut self) -> Result<Option<Line>, ArchiveError> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.input).take(MAX_LINE_BYTES).read_until(b'\n', &mut self.line);
        read.map_err(|error| match error.kind() {
            // The zstd decoder returns these for a truncated or changed frame.
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::Other => self.damaged(error),
            _ => ArchiveError::Read(error),
        })?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if self.line.pop() != Some(b'\n') {
            return Err(self.damaged("it is cut off"));
        }
        let line = serde_json::from_slice(&self.line).map_err(|error| self.damaged(error))?;
        if !matches!(line, Line::End(_)) {
            self.line.push(b'\n');
            self.hasher.update(&self.line);
        }
        Ok(Some(line))
    }

    fn end(&mut self, recorded: &Totals) -> Result<(), ArchiveError> {
        self.totals.sha256 = Some(Sha256Hash::from_bytes(self.hasher.clone().finalize().into()));
        if self.totals != *recorded {
            return Err(self.damaged("the counts or the hash do not match the recorded ones"));
        }
        if self.read_line()?.is_some() {
            return Err(self.damaged("there is data after the end"));
        }
        self.is_over = true;
        Ok(())
    }
}

impl ArchiveReader for StreamReader<'_> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn next(&mut self) -> Result<Option<ArchivePart>, ArchiveError> {
        let mut content: Option<Vec<u8>> = None;
        while !self.is_over {
            let line = self.read_line()?.ok_or_else(|| self.damaged("the archive is cut off"))?;
            match line {
                Line::Data(text) => {
                    let part = decode(&text).map_err(|problem| self.damaged(problem))?;
                    let content = content.get_or_insert_default();
                    if content.len() + part.len() > MAX_CONTENT_BYTES {
                        return Err(self.damaged("the bytes of one record are too long"));
                    }
                    content.extend_from_slice(&part);
                }
                Line::Record(record) => {
                    let Some(table) = self.table.clone() else {
                        return Err(self.damaged("a record precedes its table"));
                    };
                    let record = resolve(&table, record, |reference| {
                        let bytes = content.take().ok_or("its bytes do not precede it")?;
                        check_bytes(bytes, reference)
                    });
                    let record = record.map_err(|problem| self.damaged(problem))?;
                    if content.is_some() {
                        return Err(self.damaged("the preceding bytes belong to no record"));
                    }
                    self.totals.count(&table.name);
                    return Ok(Some(ArchivePart::Record(record)));
                }
                _ if content.is_some() => return Err(self.damaged("the preceding bytes belong to no record")),
                Line::Table(name) => {
                    let table = self.schema.table(&name);
                    let table = table.ok_or_else(|| self.damaged(format!("there is no table {name}")))?;
                    self.table = Some(table.clone());
                    self.totals.records.entry(name).or_insert(0);
                    return Ok(Some(ArchivePart::Table(ArchiveTable(table))));
                }
                Line::End(recorded) => self.end(&recorded)?,
                Line::Header(_) => return Err(self.damaged("there is a second header")),
            }
        }
        Ok(None)
    }
}

/// Returns the values of a record in the order of its table, with the bytes that references in it refer to.
pub(super) fn resolve(
    table: &Table,
    mut written: HashMap<String, Written>,
    mut find: impl FnMut(&Reference) -> Result<Vec<u8>, String>,
) -> Result<Record, String> {
    let mut value = |field: &Field| match written.remove(&field.name) {
        None => Ok(Value::Null),
        Some(Written::Inline(value)) => Ok(value),
        Some(Written::Reference(reference)) => find(&reference).map(Value::Bytes),
    };
    let record = table.fields.iter().map(&mut value).collect::<Result<_, _>>()?;
    match written.into_keys().next() {
        Some(name) => Err(format!("{} has no column {name}", table.name)),
        None => Ok(record),
    }
}

/// Checks that bytes have the size and hash of a reference.
pub(super) fn check_bytes(bytes: Vec<u8>, reference: &Reference) -> Result<Vec<u8>, String> {
    if Reference::of(&bytes) == *reference {
        Ok(bytes)
    } else {
        Err("its bytes do not match the recorded hash".into())
    }
}
