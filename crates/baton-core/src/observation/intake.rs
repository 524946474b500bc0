//! Reports that are too large to be held: made private while they are read.
//!
//! What a tool was asked and what it said goes on as it comes, without private parts and secrets; the other fields are small
//! and are gathered. Owns which is which. What comes out is what [`make_private`](super::make_private) makes of a report that
//! is there as a whole, except that a private key across the texts of a list may take more of them with it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::lenient::{LenientError, ReadError, Visitor, read_to};
use super::privacy::{PRIVATE_MARK, Veil, make_private, without_private};
use crate::secrets::{Redactor, redact};

/// The fields that go on as they come.
const OUTPUT: [&str; 3] = ["tool_input", "tool_response", "error"];
/// How much of all other fields is gathered.
const MAX_FIELDS_BYTES: usize = 2 * 1024 * 1024;
/// How much of one of them; one that is larger all the same is left out.
const MAX_FIELD_BYTES: usize = 1024 * 1024;
/// How much of one text in them; the rest is cut off.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A report that was read while it came, with its output on the way to where it is kept.
#[derive(Debug)]
pub struct LargeReport<W> {
    /// The fields beside the output.
    pub fields: Map<String, Value>,
    /// What the tool was asked, with long texts cut.
    pub asked: Value,
    /// How much the tool said, in bytes.
    pub said_bytes: u64,
    sink: W,
    is_begun: bool,
}

impl<W: Write> LargeReport<W> {
    /// Adds the folder that the tool worked in, and ends the output: an object with the fields that went on as they came.
    pub fn seal(mut self, folder: Option<&str>) -> io::Result<W> {
        let mut folder = Value::from(folder);
        make_private(&mut folder);
        let before = if self.is_begun { "," } else { "{" };
        write!(self.sink, "{before}\"cwd\":{folder}}}")?;
        Ok(self.sink)
    }
}

/// Reads a report; what a tool was asked and what it said is written to `sink` without what is private in it.
pub fn read_large<W: Write>(source: impl Read, sink: W) -> Result<LargeReport<W>, ReadError> {
    let mut intake = Intake {
        sink,
        is_begun: false,
        fields: Map::new(),
        fields_room: MAX_FIELDS_BYTES,
        asked: Value::Null,
        said_bytes: 0,
        member: None,
        open: Vec::new(),
        lists: 0,
        is_in_text: false,
        veil: Veil::default(),
        redactor: Redactor::default(),
        veiled: String::new(),
        clean: String::new(),
    };
    read_to(source, &mut intake)?;
    let Intake { fields, asked, said_bytes, sink, is_begun, member, .. } = intake;
    // What stands outside an object belongs to no member.
    if member.is_none() {
        return Err(LenientError::NotAnObject.into());
    }
    Ok(LargeReport { fields, asked, said_bytes, sink, is_begun })
}

struct Intake<W> {
    sink: W,
    is_begun: bool,
    fields: Map<String, Value>,
    fields_room: usize,
    asked: Value,
    said_bytes: u64,
    /// The member of the report that is being read, or was read last.
    member: Option<Member>,
    open: Vec<Open>,
    /// How many of the open containers are lists.
    lists: usize,
    is_in_text: bool,
    veil: Veil,
    redactor: Redactor,
    veiled: String,
    clean: String,
}

/// A member of the report.
struct Member {
    name: String,
    goes_on: bool,
    /// Its bytes: those of the text itself if it is one.
    bytes: u64,
    sketch: Sketch,
}

/// An open container.
struct Open {
    is_list: bool,
    is_empty: bool,
    /// What the next value stands under: its own name, or that of the list around it.
    name: Option<String>,
    /// The names that had something taken out of them, and how often each came out of that.
    renamed: BTreeMap<String, usize>,
}

/// What is gathered of a member, as JSON.
struct Sketch {
    json: Vec<u8>,
    room: usize,
    /// How much of the text at hand still fits.
    text_room: usize,
    is_over: bool,
}

impl Sketch {
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
        // Nothing follows what was cut.
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

/// Gives `put` a text as it stands between the quotes of JSON.
fn escaped<T>(text: &str, put: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
    let json = serde_json::to_vec(text)?;
    Ok(put(json.get(1..json.len() - 1).unwrap_or_default()))
}

impl<W: Write> Intake<W> {
    /// Writes a part of the member at hand.
    fn put(&mut self, json: &[u8]) -> io::Result<()> {
        let Some(member) = &mut self.member else { return Ok(()) };
        member.sketch.put(json);
        if member.goes_on {
            member.bytes += json.len() as u64;
            self.sink.write_all(json)?;
        }
        Ok(())
    }

    /// Writes what is before a value: a comma where it is not the first of a list.
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
        let goes_on = OUTPUT.contains(&name);
        let room = if goes_on { MAX_FIELD_BYTES } else { self.fields_room.min(MAX_FIELD_BYTES) };
        // Nobody looks at what a tool said before it is understood.
        let room = if matches!(name, "tool_response" | "error") { 0 } else { room };
        let sketch = Sketch::with_room(room);
        self.member = Some(Member { name: name.to_owned(), goes_on, bytes: 0, sketch });
        if goes_on {
            let before = if std::mem::replace(&mut self.is_begun, true) { "," } else { "{" };
            write!(self.sink, "{before}\"{name}\":")?;
        }
        Ok(())
    }

    fn end_member(&mut self) {
        let Some(member) = &mut self.member else { return };
        let name = std::mem::take(&mut member.name);
        let sketch = std::mem::replace(&mut member.sketch, Sketch::with_room(0));
        match name.as_str() {
            "tool_response" | "error" => self.said_bytes += member.bytes,
            "tool_input" => self.asked = sketch.into_value().unwrap_or_default(),
            _ => {
                let bytes = sketch.json.len();
                if let Some(value) = sketch.into_value() {
                    self.fields_room = self.fields_room.saturating_sub(bytes);
                    self.fields.insert(name, value);
                }
            }
        }
    }

    /// Begins a text of its own, or a list, whose texts are one.
    fn begin_scope(&mut self) {
        if self.lists == 0 {
            self.veil = Veil::default();
        }
    }

    fn begin_container(&mut self, is_list: bool) -> io::Result<()> {
        // The report itself is not written, but its members are.
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
            let sketch = Sketch::with_room(0);
            self.member = Some(Member { name: String::new(), goes_on: false, bytes: 0, sketch });
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
            // Names that become equal are kept apart.
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
        self.veiled.clear();
        self.clean.clear();
        self.veil.draw_over_piece(piece, is_last, &mut self.veiled);
        let name = self.open.last().and_then(|open| open.name.as_deref());
        self.redactor.push(name, &self.veiled, is_last, &mut self.clean);
        if let Some(member) = &mut self.member {
            member.sketch.put_text(&self.clean, is_last)?;
            if member.goes_on && !self.clean.is_empty() {
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
                // The quotes are not of the text.
                member.bytes = member.bytes.saturating_sub(2);
            }
            self.end_value();
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) -> io::Result<()> {
        self.begin_value()?;
        let is_word = literal.starts_with(|first: char| first.is_ascii_alphabetic());
        if self.lists > 0 && self.veil.is_drawn() && !is_word {
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
