//! Redacts large reports while they are read.
//!
//! Tool input and output are streamed to a sink without private parts and secrets; the other fields are small
//! and are kept in memory. Owns which fields are streamed.

use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::lenient::{BoundedWriter, Container, Event, JsonWriter, LenientError, ReadError, read_to};
use super::privacy::{Cleaner, make_private};

/// Maximum size of the fields that are kept in memory in bytes; a field that does not fit is omitted.
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
/// Maximum size of a text in these fields in bytes; longer texts are truncated.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A report whose tool input and output were streamed to a sink.
#[derive(Debug)]
pub struct LargeReport<W> {
    /// Fields other than tool input and output.
    pub fields: Map<String, Value>,
    /// Tool input, with long texts truncated.
    pub tool_input: Value,
    /// Size of the tool output in bytes.
    pub output_bytes: u64,
    sink: JsonWriter<W>,
}

impl<W: Write> LargeReport<W> {
    /// Adds the working directory as `cwd`, closes the JSON object in the sink and returns the sink.
    pub fn seal(mut self, folder: Option<&str>) -> io::Result<W> {
        let mut folder = Value::from(folder);
        make_private(&mut folder);
        self.sink.write(Event::Name("cwd"))?;
        self.sink.write(Event::Literal(&folder.to_string()))?;
        self.sink.write(Event::End(Container::Object))?;
        Ok(self.sink.sink)
    }
}

/// Reads a report and writes its redacted tool input and output to `sink`.
pub fn read_large<W: Write>(source: impl Read, sink: W) -> Result<LargeReport<W>, ReadError> {
    let mut cleaner = Cleaner::default();
    let mut intake = Intake {
        sink: JsonWriter::new(sink),
        output_bytes: 0,
        fields: BoundedWriter::fields(MAX_FIELDS_BYTES, MAX_TEXT_BYTES),
        depth: 0,
        part: Part::Field,
    };
    intake.sink.write(Event::Begin(Container::Object))?;
    read_to(source, |event| intake.visit(cleaner.clean(event)))?;
    let Intake { sink, output_bytes, fields, .. } = intake;
    let Value::Object(mut fields) = fields.into_value()? else {
        return Err(LenientError::NotAnObject.into());
    };
    let tool_input = fields.remove("tool_input").unwrap_or_default();
    Ok(LargeReport { fields, tool_input, output_bytes, sink })
}

struct Intake<W> {
    sink: JsonWriter<W>,
    output_bytes: u64,
    fields: BoundedWriter,
    /// Number of open containers.
    depth: usize,
    part: Part,
}

/// The part of a report that a member belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Streamed. It is not needed before it is processed, so it is not kept in memory.
    Output,
    /// Streamed and kept in memory.
    Input,
    /// Kept in memory.
    Field,
}

impl<W: Write> Intake<W> {
    fn visit(&mut self, event: Event<'_>) -> io::Result<()> {
        self.depth -= usize::from(matches!(event, Event::End(_)));
        match (self.depth, event) {
            (0, _) => self.part = Part::Field,
            (1, Event::Name("tool_response" | "error")) => self.part = Part::Output,
            (1, Event::Name("tool_input")) => self.part = Part::Input,
            (1, Event::Name(_)) => self.part = Part::Field,
            _ => {}
        }
        if self.part != Part::Field {
            let bytes = match (self.depth, event, self.sink.write(event)?) {
                (1, Event::Name(_) | Event::Literal("null"), _) => 0,
                // Of a text, the quotes and escapes do not count.
                (1, Event::Text { piece, .. }, _) => piece.len(),
                (_, _, bytes) => bytes,
            };
            self.output_bytes += if self.part == Part::Output { bytes as u64 } else { 0 };
        }
        if self.part != Part::Output {
            self.fields.write(event)?;
        }
        self.depth += usize::from(matches!(event, Event::Begin(_)));
        Ok(())
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
