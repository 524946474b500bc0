//! Redacts large reports while they are read.
//!
//! Tool input and output are streamed to a sink without private parts and secrets; the other fields are small
//! and are kept in memory. Owns which fields are streamed. The result equals the result of
//! [`make_private`](super::make_private) on the whole report, except that a private key that spans texts of a
//! list may redact more of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use baton_secrets::{Redactor, redact};
use serde_json::{Map, Value};

use super::lenient::{Container, LenientError, ReadError, Visitor, read_to};
use super::privacy::{PRIVATE_MARK, PrivateFilter, make_private, without_private};

/// Fields that are streamed to the sink.
const STREAMED: [&str; 3] = ["tool_input", "tool_response", "error"];
/// Maximum size of all other fields together in bytes.
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
/// Maximum size of one field in bytes; a larger field is omitted.
const MAX_FIELD_BYTES: usize = 1024 * 1024;
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
pub fn read_large<W: Write>(source: impl Read, mut sink: W) -> Result<LargeReport<W>, ReadError> {
    sink.write_all(b"{")?;
    let report = LargeReport { fields: Map::new(), tool_input: Value::Null, output_bytes: 0, sink };
    let mut intake = Intake {
        report,
        is_object: false,
        fields_room: MAX_FIELDS_BYTES,
        member: Member::default(),
        open: Vec::new(),
        is_in_text: false,
        private_filter: PrivateFilter::default(),
        redactor: Redactor::default(),
        filtered: String::new(),
        clean: String::new(),
    };
    read_to(source, &mut intake)?;
    if intake.is_object { Ok(intake.report) } else { Err(LenientError::NotAnObject.into()) }
}

struct Intake<W> {
    report: LargeReport<W>,
    is_object: bool,
    fields_room: usize,
    member: Member,
    open: Vec<Open>,
    is_in_text: bool,
    private_filter: PrivateFilter,
    redactor: Redactor,
    filtered: String,
    clean: String,
}

/// An open container.
struct Open {
    container: Container,
    is_empty: bool,
    /// Name of the next value: its own name, or the name of the list that contains it.
    name: Option<String>,
    /// Names that resulted from redaction, and how often each occurred.
    renamed: BTreeMap<String, usize>,
}

/// The member of the report that is being read.
#[derive(Default)]
struct Member {
    name: String,
    is_streamed: bool,
    /// Size of its JSON in bytes; of a string, the size of its text.
    bytes: u64,
    /// Its JSON, up to `room` bytes.
    json: Vec<u8>,
    room: usize,
    is_over: bool,
    /// Number of bytes that the current text may still have.
    text_room: usize,
}

impl Member {
    fn put(&mut self, json: &[u8]) {
        self.is_over |= self.json.len() + json.len() > self.room;
        if !self.is_over {
            self.json.extend_from_slice(json);
        }
    }

    fn put_text(&mut self, text: &str, is_last: bool) -> io::Result<()> {
        let kept = text.get(..text.floor_char_boundary(self.text_room)).unwrap_or_default();
        if !self.is_over {
            self.put(&escaped(kept)?);
        }
        // After truncation, the rest of the text is discarded.
        self.text_room = match (is_last, kept.len() == text.len()) {
            (true, _) => MAX_TEXT_BYTES,
            (false, true) => self.text_room - kept.len(),
            (false, false) => 0,
        };
        Ok(())
    }

    fn value(&self) -> Option<Value> {
        if self.is_over { None } else { serde_json::from_slice(&self.json).ok() }
    }
}

/// Returns a text escaped for JSON, without quotes.
fn escaped(text: &str) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(text)?;
    json.pop();
    json.remove(0);
    Ok(json)
}

impl<W: Write> Intake<W> {
    /// Writes a part of the current member.
    fn put(&mut self, json: &[u8]) -> io::Result<()> {
        self.member.put(json);
        if self.member.is_streamed {
            self.member.bytes += json.len() as u64;
            self.report.sink.write_all(json)?;
        }
        Ok(())
    }

    /// Writes the comma before a value that is not the first of a list.
    fn begin_value(&mut self) -> io::Result<()> {
        let list = self.open.last_mut().filter(|open| open.container == Container::List);
        match list.map(|open| std::mem::replace(&mut open.is_empty, false)) {
            Some(false) => self.put(b","),
            Some(true) | None => Ok(()),
        }
    }

    fn end_value(&mut self) -> io::Result<()> {
        if self.open.len() == 1 { self.end_member() } else { Ok(()) }
    }

    fn begin_member(&mut self, name: &str) -> io::Result<()> {
        let is_streamed = STREAMED.contains(&name);
        let room = match name {
            // The output is not needed before it is processed, so it is not kept in memory.
            "tool_response" | "error" => 0,
            "tool_input" => MAX_FIELD_BYTES,
            _ => self.fields_room.min(MAX_FIELD_BYTES),
        };
        let text_room = MAX_TEXT_BYTES;
        self.member = Member { name: name.to_owned(), is_streamed, room, text_room, ..Member::default() };
        if is_streamed { write!(self.report.sink, "\"{name}\":") } else { Ok(()) }
    }

    fn end_member(&mut self) -> io::Result<()> {
        let member = std::mem::take(&mut self.member);
        match member.name.as_str() {
            "tool_response" | "error" => self.report.output_bytes += member.bytes,
            "tool_input" => self.report.tool_input = member.value().unwrap_or_default(),
            _ => {
                if let Some(value) = member.value() {
                    self.fields_room = self.fields_room.saturating_sub(member.json.len());
                    self.report.fields.insert(member.name, value);
                }
            }
        }
        if member.is_streamed { self.report.sink.write_all(b",") } else { Ok(()) }
    }

    fn is_in_list(&self) -> bool {
        self.open.iter().any(|open| open.container == Container::List)
    }
}

impl<W: Write> Visitor for Intake<W> {
    fn begin(&mut self, container: Container) -> io::Result<()> {
        if self.open.is_empty() {
            // The braces of the report itself are not written.
            self.is_object = container == Container::Object;
        } else {
            self.begin_value()?;
            self.put(if container == Container::List { b"[" } else { b"{" })?;
        }
        // The texts of a list, and of the lists in it, are treated as one.
        if container == Container::List && !self.is_in_list() {
            self.private_filter = PrivateFilter::default();
            self.redactor.set_in_list(true);
        }
        let name = self.open.last().and_then(|open| open.name.clone());
        self.open.push(Open { container, is_empty: true, name, renamed: BTreeMap::new() });
        Ok(())
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        let seen = without_private(name);
        let clean = redact(&seen);
        let is_member = self.open.len() == 1;
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.name = Some(seen.clone().into_owned());
        if is_member {
            return self.begin_member(&clean);
        }
        let is_first = std::mem::replace(&mut open.is_empty, false);
        let clean = if clean == name {
            clean
        } else {
            let count = open.renamed.entry(clean.clone().into_owned()).or_default();
            *count += 1;
            // Names that became equal get a number.
            if *count > 1 { Cow::Owned(format!("{clean} ({count})")) } else { clean }
        };
        if !is_first {
            self.put(b",")?;
        }
        self.put(&serde_json::to_vec(clean.as_ref())?)?;
        self.put(b":")
    }

    fn end(&mut self, container: Container) -> io::Result<()> {
        self.open.pop();
        if !self.open.is_empty() {
            self.put(if container == Container::List { b"]" } else { b"}" })?;
        }
        if !self.is_in_list() {
            self.redactor.set_in_list(false);
        }
        self.end_value()
    }

    fn text(&mut self, piece: &str, is_last: bool) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_in_text, !is_last) {
            self.begin_value()?;
            if !self.is_in_list() {
                self.private_filter = PrivateFilter::default();
            }
            self.put(b"\"")?;
        }
        self.filtered.clear();
        self.clean.clear();
        self.private_filter.apply_to_piece(piece, is_last, &mut self.filtered);
        let name = self.open.last().and_then(|open| open.name.as_deref());
        self.redactor.push(name, &self.filtered, is_last, &mut self.clean);
        let is_member = self.open.len() == 1;
        self.member.put_text(&self.clean, is_last)?;
        if self.member.is_streamed {
            let json = escaped(&self.clean)?;
            self.member.bytes += if is_member { self.clean.len() } else { json.len() } as u64;
            self.report.sink.write_all(&json)?;
        }
        if is_last {
            self.put(b"\"")?;
            if is_member {
                // The quotes do not count.
                self.member.bytes = self.member.bytes.saturating_sub(2);
            }
            self.end_value()?;
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) -> io::Result<()> {
        self.begin_value()?;
        let is_word = literal.starts_with(|first: char| first.is_ascii_alphabetic());
        if self.is_in_list() && self.private_filter.is_open() && !is_word {
            self.put(format!("\"{PRIVATE_MARK}\"").as_bytes())?;
        } else {
            self.put(literal.as_bytes())?;
        }
        if self.open.len() == 1 && literal == "null" {
            self.member.bytes = 0;
        }
        self.end_value()
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
