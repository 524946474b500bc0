//! Records of a recorded chat, one after another: the lines of a file, or values that were loaded at once.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use baton_store::ForeignError;
use serde_json::Value;

use super::lines::{Lines, MAX_LINE_BYTES};

const BUFFER_BYTES: usize = 256 * 1024;

/// Records of one chat.
pub(super) enum Records {
    Lines { lines: Lines<BufReader<File>>, size: u64 },
    Loaded(Loaded),
}

pub(super) struct Record {
    /// Number in the chat, starting with 1.
    pub(super) number: u64,
    /// Position of its first byte.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Value, or the reason why it is invalid. `None` for an empty or skipped line, and for an incomplete last line,
    /// which the client may still be writing.
    pub(super) content: Option<Result<Value, String>>,
}

impl Records {
    /// Opens a file with one record per line.
    pub(super) fn of_lines(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self::Lines { lines: Lines::new(BufReader::with_capacity(BUFFER_BYTES, file)), size })
    }

    /// Returns the size of all records in bytes.
    pub(super) const fn size(&self) -> u64 {
        match self {
            Self::Lines { size, .. } => *size,
            Self::Loaded(loaded) => loaded.bytes,
        }
    }

    /// Returns true if records are only ever added at the end, so that a later import can continue there.
    pub(super) const fn is_append_only(&self) -> bool {
        matches!(self, Self::Lines { .. })
    }

    /// Continues with the first record.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        match self {
            Self::Lines { lines, .. } => return lines.rewind(),
            Self::Loaded(loaded) => (loaded.next, loaded.position) = (0, 0),
        }
        Ok(())
    }

    /// Returns the position after the last record that was read.
    pub(super) const fn position(&self) -> u64 {
        match self {
            Self::Lines { lines, .. } => lines.position(),
            Self::Loaded(loaded) => loaded.position,
        }
    }

    /// Returns the next record; `None` at the end. Lines before `from` are not parsed.
    pub(super) fn next(&mut self, from: u64) -> io::Result<Option<Record>> {
        match self {
            Self::Lines { lines, .. } => next_line(lines, from),
            Self::Loaded(loaded) => Ok(loaded.next()),
        }
    }
}

fn next_line(lines: &mut Lines<BufReader<File>>, from: u64) -> io::Result<Option<Record>> {
    let before = lines.position();
    let Some(line) = lines.next()? else { return Ok(None) };
    let (number, start, is_complete) = (line.number, line.start, line.is_complete);
    let content = match line.content {
        _ if start < from => None,
        Some([]) => None,
        Some(content) => Some(serde_json::from_slice(content).map_err(|error| error.to_string())),
        None => Some(Err(format!("the line is longer than {MAX_LINE_BYTES} bytes"))),
    };
    let content = content.filter(|content| is_complete || content.is_ok());
    Ok(Some(Record { number, start, bytes: lines.position() - before, content }))
}

/// Records that were loaded at once, because their source is not a list of lines.
#[derive(Default)]
pub(super) struct Loaded {
    records: Vec<(u64, Result<Value, String>)>,
    bytes: u64,
    next: usize,
    position: u64,
}

impl Loaded {
    /// Adds a record that takes this number of bytes in its source.
    pub(super) fn push(&mut self, bytes: usize, record: Result<Value, String>) {
        self.bytes += bytes as u64;
        self.records.push((bytes as u64, record));
    }

    fn next(&mut self) -> Option<Record> {
        let (bytes, content) = self.records.get(self.next)?.clone();
        let start = self.position;
        self.next += 1;
        self.position += bytes;
        Some(Record { number: self.next as u64, start, bytes, content: Some(content) })
    }
}

/// Converts an error of a foreign database.
pub(super) fn unreadable(error: ForeignError) -> io::Error {
    match error {
        ForeignError::File(error) => error,
        error => io::Error::other(error),
    }
}

/// Parses a text of a foreign database or file.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
