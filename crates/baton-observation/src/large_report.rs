//! Redacts large reports while they are read.
//!
//! Tool input and output are streamed to a sink without private parts and secrets; the other fields are small
//! and are kept in memory. Owns which fields are streamed.

use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::lenient::{Container, Event, ExcerptWriter, JsonWriter, LenientError, Limits, ReadError, read_to};
use super::privacy::{Cleaner, make_private};
use super::truncate::Budget;

/// Size of the fields that are kept in memory.
const FIELDS: Limits = Limits {
    text: Budget { total: 64 * 1024, middle: 0, counts_lines: false },
    member: 1024 * 1024,
    total: 2 * 1024 * 1024,
};

/// A report whose tool input and output were streamed to a sink.
#[derive(Debug)]
pub struct LargeReport<W> {
    /// Excerpt of the fields other than tool input and output.
    pub fields: Map<String, Value>,
    /// Excerpt of the tool input.
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
        fields: ExcerptWriter::new(FIELDS),
        depth: 0,
        part: Part::Field,
    };
    reader.sink.write(Event::Begin(Container::Object))?;
    read_to(source, |event| reader.visit(cleaner.clean(event)))?;
    let Value::Object(mut fields) = reader.fields.into_value()? else {
        return Err(LenientError::NotAnObject.into());
    };
    let tool_input = fields.remove("tool_input").unwrap_or_default();
    Ok(LargeReport { fields, tool_input, output_bytes: reader.output_bytes, sink: reader.sink })
}

struct LargeReportReader<W> {
    sink: JsonWriter<W>,
    output_bytes: u64,
    fields: ExcerptWriter,
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
            self.fields.write(event)?;
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
            self.fields.write(event)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "large_report_tests.rs"]
mod tests;
