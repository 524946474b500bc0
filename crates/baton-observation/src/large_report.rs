//! Redacts large reports while they are read.
//!
//! Tool input and output are streamed to a sink without private parts and secrets; the other fields are small
//! and are kept in memory. Owns which fields are streamed.

use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::lenient::{Container, Event, JsonWriter, LenientError, ReadError, VALUE_COST, read_to};
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
    let mut reader = LargeReportReader {
        sink: JsonWriter::new(sink),
        output_bytes: 0,
        fields: Fields::default(),
        is_object: false,
        depth: 0,
        part: Part::Field,
    };
    reader.sink.write(Event::Begin(Container::Object))?;
    read_to(source, |event| reader.visit(cleaner.clean(event)))?;
    if !reader.is_object {
        return Err(LenientError::NotAnObject.into());
    }
    let mut fields = reader.fields.complete;
    let tool_input = fields.remove("tool_input").unwrap_or_default();
    Ok(LargeReport { fields, tool_input, output_bytes: reader.output_bytes, sink: reader.sink })
}

struct LargeReportReader<W> {
    sink: JsonWriter<W>,
    output_bytes: u64,
    fields: Fields,
    is_object: bool,
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

impl<W: Write> LargeReportReader<W> {
    fn visit(&mut self, event: Event<'_>) -> io::Result<()> {
        if matches!(event, Event::End(_)) {
            self.depth -= 1;
        }
        if self.depth > 0 {
            self.visit_member(event)?;
        } else {
            self.is_object |= matches!(event, Event::Begin(Container::Object));
        }
        if matches!(event, Event::Begin(_)) {
            self.depth += 1;
        }
        Ok(())
    }

    fn visit_member(&mut self, event: Event<'_>) -> io::Result<()> {
        if let (1, Event::Name(name)) = (self.depth, event) {
            self.part = match name {
                "tool_response" | "error" => Part::Output,
                "tool_input" => Part::Input,
                _ => Part::Field,
            };
        }
        if self.part != Part::Field {
            let written = self.sink.write(event)?;
            if self.part == Part::Output {
                let bytes = match event {
                    Event::Name(_) | Event::Literal("null") if self.depth == 1 => 0,
                    // Quotes and escapes of a text do not count.
                    Event::Text { piece, .. } if self.depth == 1 => piece.len(),
                    _ => written,
                };
                self.output_bytes += bytes as u64;
            }
        }
        if self.part != Part::Output {
            self.fields.write(self.depth, event)?;
        }
        Ok(())
    }
}

/// The fields of a report that are kept in memory.
#[derive(Default)]
struct Fields {
    complete: Map<String, Value>,
    complete_bytes: usize,
    /// Name, JSON and size of the current field.
    name: String,
    json: JsonWriter<Vec<u8>>,
    bytes: usize,
    /// Size of the current text in bytes.
    text_bytes: usize,
}

impl Fields {
    /// Adds the next part of a field. `depth` is 1 for the name and the value of a field.
    fn write(&mut self, depth: usize, event: Event<'_>) -> io::Result<()> {
        if let (1, Event::Name(name)) = (depth, event) {
            name.clone_into(&mut self.name);
            return Ok(());
        }
        let event = self.truncate(event);
        if self.complete_bytes + self.bytes < MAX_FIELDS_BYTES {
            self.bytes += self.json.write(event)? + VALUE_COST;
        }
        if depth == 1 && event.ends_value() {
            let (json, bytes) = (std::mem::take(&mut self.json), std::mem::take(&mut self.bytes));
            if self.complete_bytes + bytes < MAX_FIELDS_BYTES {
                self.complete_bytes += bytes;
                self.complete.insert(std::mem::take(&mut self.name), serde_json::from_slice(&json.sink)?);
            }
        }
        Ok(())
    }

    /// Truncates long texts.
    fn truncate<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        let Event::Text { piece, is_last } = event else { return event };
        let room = MAX_TEXT_BYTES.saturating_sub(self.text_bytes);
        self.text_bytes = if is_last { 0 } else { self.text_bytes + piece.len() };
        Event::Text { piece: piece.get(..piece.floor_char_boundary(room)).unwrap_or_default(), is_last }
    }
}

#[cfg(test)]
#[path = "large_report_tests.rs"]
mod tests;
