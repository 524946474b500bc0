//! Reads a document of any size: returns an excerpt, and copies members to a sink without private parts and secrets.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::parser::{Kind, Parser, ReadError};
use crate::excerpt::Excerpt;
use crate::privacy::{Cleaner, PRIVATE_MARK, clean_name};
use crate::truncate::Budget;

/// Maximum nesting depth. It is below the limit of 128 of JSON parsers, so that the document can be nested in others.
pub(super) const MAX_DEPTH: usize = 100;
/// Replacement of values that are nested too deeply.
const TOO_DEEP: &str = "[nested too deeply]";
/// Size of a value in bytes without its text.
const VALUE_COST: usize = 64;

/// Size of an excerpt: longer texts are truncated, and the last parts of larger members are omitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum size of each text.
    pub(crate) text: Budget,
    /// Maximum size of each member of the document in bytes.
    pub(crate) member: usize,
    /// Maximum size of all members in bytes.
    pub(crate) total: usize,
}

/// What is done with a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handling {
    /// True if the excerpt contains the value.
    pub(crate) keeps: bool,
    /// True if the value is copied to the sink.
    pub(crate) copies: bool,
}

impl Handling {
    pub(crate) const KEEP: Self = Self { keeps: true, copies: false };
}

/// Position of a value.
#[derive(Clone, Copy)]
struct Position<'a> {
    /// Name of the value, or of the list that contains it.
    name: Option<&'a str>,
    /// Number of containers around the value.
    depth: usize,
    handling: Handling,
}

/// Reads a document.
pub(crate) struct DocumentReader<'a> {
    parser: Parser<'a>,
    limits: Limits,
    /// Remaining bytes of the current member in the excerpt.
    room: usize,
    /// Remaining bytes of all members in the excerpt.
    total_room: usize,
    cleaner: Option<Cleaner>,
    sink: Option<&'a mut dyn Write>,
    /// Returns what is done with a member of the document.
    handling_of: fn(&str) -> Handling,
    /// Size of all values that were copied, without the quotes and escapes of a member that is a text.
    copied_bytes: u64,
    /// Part of `copied_bytes` for members that are not kept.
    output_bytes: u64,
}

impl<'a> DocumentReader<'a> {
    /// Creates a reader that keeps all members.
    pub(crate) fn new(source: &'a mut dyn Read, limits: Limits) -> Self {
        Self {
            parser: Parser::new(source),
            limits,
            room: limits.member,
            total_room: limits.total,
            cleaner: None,
            sink: None,
            handling_of: |_| Handling::KEEP,
            copied_bytes: 0,
            output_bytes: 0,
        }
    }

    /// Removes private parts and secrets, and copies members to `sink`: each as JSON and followed by a comma.
    pub(crate) fn cleaned_to(mut self, sink: &'a mut dyn Write, handling_of: fn(&str) -> Handling) -> Self {
        (self.cleaner, self.sink, self.handling_of) = (Some(Cleaner::default()), Some(sink), handling_of);
        self
    }

    /// Reads the whole document. Returns the excerpt, and the size of the members that were copied and not kept.
    pub(crate) fn read(mut self) -> Result<(Value, u64), ReadError> {
        self.parser.begin()?;
        let excerpt = self.value(Position { name: None, depth: 0, handling: Handling::KEEP })?;
        self.parser.finish()?;
        Ok((excerpt, self.output_bytes))
    }

    /// Reads a value. Of a value that is not kept, the result may be incomplete.
    fn value(&mut self, position: Position<'_>) -> Result<Value, ReadError> {
        match self.parser.begin_value()? {
            Kind::Object | Kind::List if position.depth == MAX_DEPTH => {
                self.parser.skip_container()?;
                self.scalar(TOO_DEEP.into(), position)
            }
            Kind::Object => self.object(position),
            Kind::List => self.list(position),
            Kind::Text => self.text(position),
            Kind::Scalar => {
                let scalar = self.parser.scalar()?;
                self.scalar(scalar, position)
            }
        }
    }

    fn object(&mut self, position: Position<'_>) -> Result<Value, ReadError> {
        let (mut members, mut renamed) = (Map::new(), BTreeMap::new());
        self.begin_container("{", position)?;
        let mut is_first = true;
        while self.parser.next_entry(b'}', is_first)? {
            self.separate(&mut is_first, position)?;
            let name = self.parser.name()?;
            let (name, clean_name) = match self.cleaner {
                Some(_) => clean_name(&name, &mut renamed),
                None => (name.clone(), name),
            };
            let mut handling = position.handling;
            if position.depth == 0 {
                handling = (self.handling_of)(&clean_name);
                // At most half of what remains, so that small members after large ones are kept.
                self.room = self.limits.member.min(self.total_room / 2);
            }
            let keeps = handling.keeps && self.room > 0;
            let entry = Position {
                name: Some(&name),
                depth: position.depth + 1,
                handling: Handling { keeps, ..handling },
            };
            self.use_room(clean_name.len(), entry);
            self.copy(&(quoted(&clean_name)? + ":"), entry)?;
            let before = self.copied_bytes;
            let value = self.value(entry)?;
            if keeps {
                members.insert(clean_name, value);
            }
            if position.depth == 0 && handling.copies {
                let size = self.copied_bytes - before;
                self.output_bytes += if handling.keeps { 0 } else { size };
                self.copy(",", entry)?;
            }
        }
        self.copy("}", position)?;
        Ok(Value::Object(members))
    }

    fn list(&mut self, position: Position<'_>) -> Result<Value, ReadError> {
        let (mut items, mut omitted) = (Vec::new(), 0_usize);
        self.begin_container("[", position)?;
        self.cleaner.iter_mut().for_each(Cleaner::begin_list);
        let mut is_first = true;
        while self.parser.next_entry(b']', is_first)? {
            self.separate(&mut is_first, position)?;
            let keeps = position.handling.keeps && self.room > 0;
            let handling = Handling { keeps, ..position.handling };
            let item = self.value(Position { depth: position.depth + 1, handling, ..position })?;
            if keeps {
                items.push(item);
            } else {
                omitted += 1;
            }
        }
        self.cleaner.iter_mut().for_each(Cleaner::end_list);
        self.copy("]", position)?;
        if omitted > 0 {
            items.push(format!("[... {omitted} more items ...]").into());
        }
        Ok(Value::Array(items))
    }

    fn text(&mut self, position: Position<'_>) -> Result<Value, ReadError> {
        let mut excerpt = Excerpt::new(self.limits.text);
        let (before, mut size) = (self.copied_bytes, 0);
        self.copy("\"", position)?;
        let mut is_last = false;
        while !is_last {
            is_last = self.parser.next_piece()?;
            let piece = match &mut self.cleaner {
                Some(cleaner) => cleaner.clean(position.name, &self.parser.part, is_last),
                None => &self.parser.part,
            };
            size += piece.len() as u64;
            if position.handling.keeps {
                excerpt.push(piece);
            }
            if position.handling.copies {
                let json = quoted(piece)?;
                self.copy(json.get(1..json.len() - 1).unwrap_or_default(), position)?;
            }
        }
        self.copy("\"", position)?;
        if position.depth == 1 {
            self.copied_bytes = before + size;
        }
        let text = excerpt.finish();
        self.use_room(text.len() + VALUE_COST, position);
        Ok(text.into())
    }

    /// Keeps and copies a value without parts.
    fn scalar(&mut self, scalar: Value, position: Position<'_>) -> Result<Value, ReadError> {
        let is_private = self.cleaner.as_ref().is_some_and(Cleaner::is_in_private_part);
        let (scalar, json) = match scalar {
            Value::Number(_) | Value::String(_) if is_private => (PRIVATE_MARK.into(), quoted(PRIVATE_MARK)?),
            Value::String(text) => quoted(&text).map(|json| (text.into(), json))?,
            // As in the document: parsing may round a number.
            scalar => (scalar, std::mem::take(&mut self.parser.part)),
        };
        let before = self.copied_bytes;
        self.copy(&json, position)?;
        if position.depth == 1 && scalar.is_null() {
            self.copied_bytes = before;
        }
        self.use_room(VALUE_COST, position);
        Ok(scalar)
    }

    fn begin_container(&mut self, bracket: &str, position: Position<'_>) -> io::Result<()> {
        self.use_room(VALUE_COST, position);
        self.copy(bracket, position)
    }

    /// Copies the comma before an entry, unless it is the first one.
    fn separate(&mut self, is_first: &mut bool, position: Position<'_>) -> io::Result<()> {
        if std::mem::replace(is_first, false) { Ok(()) } else { self.copy(",", position) }
    }

    /// Writes a part of a value to the sink, if the value is copied.
    fn copy(&mut self, json: &str, position: Position<'_>) -> io::Result<()> {
        match &mut self.sink {
            Some(sink) if position.handling.copies => {
                self.copied_bytes += json.len() as u64;
                sink.write_all(json.as_bytes())
            }
            _ => Ok(()),
        }
    }

    /// Subtracts the size of a part of a value from the room in the excerpt, if the value is kept.
    fn use_room(&mut self, bytes: usize, position: Position<'_>) {
        if position.handling.keeps {
            self.room = self.room.saturating_sub(bytes);
            self.total_room = self.total_room.saturating_sub(bytes);
        }
    }
}

fn quoted(text: &str) -> io::Result<String> {
    serde_json::to_string(text).map_err(io::Error::from)
}
