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

use super::lenient::{LenientError, ReadError, Visitor, read_to};
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
    is_begun: bool,
}

impl<W: Write> LargeReport<W> {
    /// Adds the working directory as `cwd`, closes the JSON object in the sink and returns the sink.
    pub fn seal(mut self, folder: Option<&str>) -> io::Result<W> {
        let mut folder = Value::from(folder);
        make_private(&mut folder);
        let before = if self.is_begun { "," } else { "{" };
        write!(self.sink, "{before}\"cwd\":{folder}}}")?;
        Ok(self.sink)
    }
}

/// Reads a report and writes its redacted tool input and output to `sink`.
pub fn read_large<W: Write>(source: impl Read, sink: W) -> Result<LargeReport<W>, ReadError> {
    let mut intake = Intake {
        sink,
        is_begun: false,
        fields: Map::new(),
        fields_room: MAX_FIELDS_BYTES,
        tool_input: Value::Null,
        output_bytes: 0,
        member: None,
        open: Vec::new(),
        lists: 0,
        is_in_text: false,
        private_filter: PrivateFilter::default(),
        redactor: Redactor::default(),
        filtered: String::new(),
        clean: String::new(),
    };
    read_to(source, &mut intake)?;
    let Intake { fields, tool_input, output_bytes, sink, is_begun, member, .. } = intake;
    // Without an object there is no member.
    if member.is_none() {
        return Err(LenientError::NotAnObject.into());
    }
    Ok(LargeReport { fields, tool_input, output_bytes, sink, is_begun })
}

struct Intake<W> {
    sink: W,
    is_begun: bool,
    fields: Map<String, Value>,
    fields_room: usize,
    tool_input: Value,
    output_bytes: u64,
    /// The member of the report that is being read, or was read last.
    member: Option<Member>,
    open: Vec<Open>,
    /// Number of open containers that are lists.
    lists: usize,
    is_in_text: bool,
    private_filter: PrivateFilter,
    redactor: Redactor,
    filtered: String,
    clean: String,
}

/// A member of the report.
struct Member {
    name: String,
    is_streamed: bool,
    /// Size of its JSON in bytes; of a string, the size of its text.
    bytes: u64,
    buffer: MemberBuffer,
}

/// An open container.
struct Open {
    is_list: bool,
    is_empty: bool,
    /// Name of the next value: its own name, or the name of the list that contains it.
    name: Option<String>,
    /// Names that resulted from redaction, and how often each occurred.
    renamed: BTreeMap<String, usize>,
}

/// JSON of a member, up to a maximum size.
struct MemberBuffer {
    json: Vec<u8>,
    room: usize,
    /// Number of bytes that the current text may still have.
    text_room: usize,
    is_over: bool,
}

impl MemberBuffer {
    const fn with_room(room: usize) -> Self {
        Self { json: Vec::new(), room, text_room: MAX_TEXT_BYTES, is_over: room == 0 }
    }

    fn put(&mut self, json: &[u8]) {
        self.is_over |= self.json.len() + json.len() > self.room;
        if !self.is_over {
            self.json.extend_from_slice(json);
        }
    }

    fn put_text(&mut self, text: &str, is_last: bool) -> io::Result<()> {
        let kept = text.get(..text.floor_char_boundary(self.text_room)).unwrap_or_default();
        if !self.is_over && !kept.is_empty() {
            escaped(kept, |json| self.put(json))?;
        }
        // After truncation, the rest of the text is discarded.
        self.text_room = match (is_last, kept.len() == text.len()) {
            (true, _) => MAX_TEXT_BYTES,
            (false, true) => self.text_room - kept.len(),
            (false, false) => 0,
        };
        Ok(())
    }

    fn into_value(self) -> Option<Value> {
        if self.is_over { None } else { serde_json::from_slice(&self.json).ok() }
    }
}

/// Passes a text to `put`, escaped for JSON but without quotes.
fn escaped<T>(text: &str, put: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
    let json = serde_json::to_vec(text)?;
    Ok(put(json.get(1..json.len() - 1).unwrap_or_default()))
}

impl<W: Write> Intake<W> {
    /// Writes a part of the current member.
    fn put(&mut self, json: &[u8]) -> io::Result<()> {
        let Some(member) = &mut self.member else { return Ok(()) };
        member.buffer.put(json);
        if member.is_streamed {
            member.bytes += json.len() as u64;
            self.sink.write_all(json)?;
        }
        Ok(())
    }

    /// Writes the comma before a value that is not the first of a list.
    fn begin_value(&mut self) -> io::Result<()> {
        match self.open.last_mut() {
            Some(open) if open.is_list => {
                let is_first = std::mem::replace(&mut open.is_empty, false);
                if is_first { Ok(()) } else { self.put(b",") }
            }
            _ => Ok(()),
        }
    }

    fn end_value(&mut self) {
        if self.open.len() == 1 {
            self.end_member();
        }
    }

    fn begin_member(&mut self, name: &str) -> io::Result<()> {
        let is_streamed = STREAMED.contains(&name);
        let room = if is_streamed { MAX_FIELD_BYTES } else { self.fields_room.min(MAX_FIELD_BYTES) };
        // The output is not needed before it is processed, so it is not kept in memory.
        let room = if matches!(name, "tool_response" | "error") { 0 } else { room };
        let buffer = MemberBuffer::with_room(room);
        self.member = Some(Member { name: name.to_owned(), is_streamed, bytes: 0, buffer });
        if is_streamed {
            let before = if std::mem::replace(&mut self.is_begun, true) { "," } else { "{" };
            write!(self.sink, "{before}\"{name}\":")?;
        }
        Ok(())
    }

    fn end_member(&mut self) {
        let Some(member) = &mut self.member else { return };
        let name = std::mem::take(&mut member.name);
        let buffer = std::mem::replace(&mut member.buffer, MemberBuffer::with_room(0));
        match name.as_str() {
            "tool_response" | "error" => self.output_bytes += member.bytes,
            "tool_input" => self.tool_input = buffer.into_value().unwrap_or_default(),
            _ => {
                let bytes = buffer.json.len();
                if let Some(value) = buffer.into_value() {
                    self.fields_room = self.fields_room.saturating_sub(bytes);
                    self.fields.insert(name, value);
                }
            }
        }
    }

    /// Resets the detection of private parts for a new text or list. Texts of a list are treated as one.
    fn begin_scope(&mut self) {
        if self.lists == 0 {
            self.private_filter = PrivateFilter::default();
        }
    }

    fn begin_container(&mut self, is_list: bool) -> io::Result<()> {
        // The braces of the report itself are not written.
        if !self.open.is_empty() {
            self.begin_value()?;
            self.put(if is_list { b"[" } else { b"{" })?;
        }
        let name = self.open.last().and_then(|open| open.name.clone());
        self.open.push(Open { is_list, is_empty: true, name, renamed: BTreeMap::new() });
        Ok(())
    }

    fn end_container(&mut self) -> io::Result<()> {
        let closed = self.open.pop();
        if !self.open.is_empty() {
            self.put(if closed.is_some_and(|open| open.is_list) { b"]" } else { b"}" })?;
        }
        self.end_value();
        Ok(())
    }
}

impl<W: Write> Visitor for Intake<W> {
    fn begin_object(&mut self) -> io::Result<()> {
        if self.open.is_empty() {
            let buffer = MemberBuffer::with_room(0);
            self.member = Some(Member { name: String::new(), is_streamed: false, bytes: 0, buffer });
        }
        self.begin_container(false)
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
        let mut json = serde_json::to_vec(clean.as_ref())?;
        json.push(b':');
        if !is_first {
            json.insert(0, b',');
        }
        self.put(&json)
    }

    fn end_object(&mut self) -> io::Result<()> {
        self.end_container()
    }

    fn begin_array(&mut self) -> io::Result<()> {
        self.begin_container(true)?;
        self.begin_scope();
        if self.lists == 0 {
            self.redactor.set_in_list(true);
        }
        self.lists += 1;
        Ok(())
    }

    fn end_array(&mut self) -> io::Result<()> {
        self.lists -= 1;
        if self.lists == 0 {
            self.redactor.set_in_list(false);
        }
        self.end_container()
    }

    fn text(&mut self, piece: &str, is_last: bool) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_in_text, !is_last) {
            self.begin_value()?;
            self.begin_scope();
            self.put(b"\"")?;
        }
        self.filtered.clear();
        self.clean.clear();
        self.private_filter.apply_to_piece(piece, is_last, &mut self.filtered);
        let name = self.open.last().and_then(|open| open.name.as_deref());
        self.redactor.push(name, &self.filtered, is_last, &mut self.clean);
        if let Some(member) = &mut self.member {
            member.buffer.put_text(&self.clean, is_last)?;
            if member.is_streamed && !self.clean.is_empty() {
                let is_all = self.open.len() == 1;
                escaped(&self.clean, |json| {
                    member.bytes += if is_all { self.clean.len() } else { json.len() } as u64;
                    self.sink.write_all(json)
                })??;
            }
        }
        if is_last {
            self.put(b"\"")?;
            if self.open.len() == 1
                && let Some(member) = &mut self.member
            {
                // The quotes do not count.
                member.bytes = member.bytes.saturating_sub(2);
            }
            self.end_value();
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) -> io::Result<()> {
        self.begin_value()?;
        let is_word = literal.starts_with(|first: char| first.is_ascii_alphabetic());
        if self.lists > 0 && self.private_filter.is_open() && !is_word {
            self.put(format!("\"{PRIVATE_MARK}\"").as_bytes())?;
        } else {
            self.put(literal.as_bytes())?;
        }
        if self.open.len() == 1
            && literal == "null"
            && let Some(member) = &mut self.member
        {
            member.bytes = 0;
        }
        self.end_value();
        Ok(())
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
