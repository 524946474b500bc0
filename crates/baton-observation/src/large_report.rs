//! Redacts large reports while they are read.
//!
//! Tool input and output are written to a sink without private parts and secrets; an excerpt of the other fields and of
//! the input is kept in memory. Owns which fields are kept.

use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::lenient::{DocumentReader, Handling, LenientError, Limits, ReadError};
use super::privacy::make_private;
use super::truncate::Budget;

/// Size of the fields that are kept in memory.
const FIELDS: Limits = Limits {
    text: Budget { total: 64 * 1024, middle: 0, counts_lines: false },
    member: 1024 * 1024,
    total: 2 * 1024 * 1024,
};

/// A report whose tool input and output were written to a sink.
#[derive(Debug)]
pub struct LargeReport<W> {
    /// Excerpt of the fields other than the tool output.
    pub fields: Map<String, Value>,
    /// Size of the tool output in bytes.
    pub output_bytes: u64,
    sink: W,
}

impl<W: Write> LargeReport<W> {
    /// Adds the working directory as `cwd`, closes the JSON object in the sink and returns the sink.
    pub fn seal(mut self, folder: Option<&str>) -> io::Result<W> {
        let mut folder = Value::from(folder);
        make_private(&mut folder);
        write!(self.sink, "\"cwd\":{folder}}}")?;
        Ok(self.sink)
    }
}

/// Reads a report and writes its redacted tool input and output to `sink`.
pub fn read_large<W: Write>(mut source: impl Read, mut sink: W) -> Result<LargeReport<W>, ReadError> {
    sink.write_all(b"{")?;
    let reader = DocumentReader::new(&mut source, FIELDS).cleaned_to(&mut sink, handling_of);
    match reader.read()? {
        (Value::Object(fields), output_bytes) => Ok(LargeReport { fields, output_bytes, sink }),
        _ => Err(LenientError::NotAnObject.into()),
    }
}

fn handling_of(field: &str) -> Handling {
    match field {
        // Not needed before the report is processed, and too large to be kept in memory.
        "tool_response" | "error" => Handling { keeps: false, copies: true },
        "tool_input" => Handling { keeps: true, copies: true },
        _ => Handling::KEEP,
    }
}

#[cfg(test)]
#[path = "large_report_tests.rs"]
mod tests;
