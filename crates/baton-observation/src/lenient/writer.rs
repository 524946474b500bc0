//! Writes the parts of a document as JSON, whole or as an excerpt.

use std::io::{self, Write};

use serde_json::Value;

use super::parsed;
use super::reader::{Container, Event, ReadError};
use crate::excerpt::Excerpt;
use crate::truncate::Budget;

/// Size of a value in bytes without its text.
const VALUE_COST: usize = 64;

/// Writes compact JSON.
#[derive(Debug, Clone)]
pub(crate) struct JsonWriter<W> {
    pub(crate) sink: W,
    needs_comma: bool,
    is_in_text: bool,
}

impl<W: Write> JsonWriter<W> {
    pub(crate) const fn new(sink: W) -> Self {
        Self { sink, needs_comma: false, is_in_text: false }
    }

    /// Writes the next part and returns the number of bytes.
    pub(crate) fn write(&mut self, event: Event<'_>) -> io::Result<usize> {
        let is_in_text = self.is_in_text;
        let has_comma = self.needs_comma && !matches!(event, Event::End(_));
        self.is_in_text = matches!(event, Event::Text { is_last: false, .. });
        self.needs_comma = event.ends_value();
        let encoded;
        let json = match event {
            Event::Begin(Container::Object) => "{",
            Event::End(Container::Object) => "}",
            Event::Begin(Container::List) => "[",
            Event::End(Container::List) => "]",
            Event::Literal(literal) => literal,
            Event::Name(name) => {
                encoded = serde_json::to_string(name)? + ":";
                &encoded
            }
            Event::Text { piece, .. } => {
                encoded = serde_json::to_string(piece)?;
                // The quotes are written before the first and after the last piece.
                let end = encoded.len() - usize::from(self.is_in_text);
                encoded.get(usize::from(is_in_text)..end).unwrap_or_default()
            }
        };
        if has_comma {
            self.sink.write_all(b",")?;
        }
        self.sink.write_all(json.as_bytes())?;
        Ok(json.len() + usize::from(has_comma))
    }
}

/// Size of an excerpt of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum size of each text.
    pub(crate) text: Budget,
    /// Maximum size of each member in bytes.
    pub(crate) member: usize,
    /// Maximum size of all members in bytes.
    pub(crate) total: usize,
}

/// Writes an excerpt of a document: excerpts of long texts, and the first parts of a member that is too large.
#[derive(Debug)]
pub(crate) struct ExcerptWriter {
    json: JsonWriter<Vec<u8>>,
    text: Excerpt,
    limits: Limits,
    /// Remaining bytes of the current member.
    room: usize,
    /// Remaining bytes of all members.
    total_room: usize,
    /// Number of omitted values of each open container.
    omitted: Vec<usize>,
    /// Number of open containers that are omitted.
    omitted_depth: usize,
}

impl ExcerptWriter {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            json: JsonWriter::new(Vec::new()),
            text: Excerpt::new(limits.text),
            limits,
            room: limits.member,
            total_room: limits.total,
            omitted: Vec::new(),
            omitted_depth: 0,
        }
    }

    /// Returns the document.
    pub(crate) fn into_value(self) -> Result<Value, ReadError> {
        parsed(&self.json.sink)
    }

    pub(crate) fn write(&mut self, event: Event<'_>) -> io::Result<()> {
        if self.omitted.len() == 1 && self.omitted_depth == 0 && matches!(event, Event::Name(_)) {
            // At most half of what remains, so that small members after large ones are kept.
            self.room = self.limits.member.min(self.total_room / 2);
        }
        match event {
            Event::End(container) if self.omitted_depth == 0 => {
                let omitted = self.omitted.pop().unwrap_or_default();
                if omitted > 0 && container == Container::List {
                    self.json.write(Event::text(&format!("[... {omitted} more items ...]")))?;
                }
                self.json.write(event)?;
            }
            _ if self.room == 0 || self.omitted_depth > 0 => self.omit(event),
            Event::Text { piece, is_last } => {
                self.text.push(piece);
                if is_last {
                    let text = self.text.finish();
                    self.use_room(text.len() + VALUE_COST);
                    self.json.write(Event::text(&text))?;
                }
            }
            Event::Name(name) => {
                // At least 1, because the value of this name must be written as well.
                self.use_room(name.len());
                self.room = self.room.max(1);
                self.json.write(event)?;
            }
            Event::Begin(_) | Event::End(_) | Event::Literal(_) => {
                self.use_room(VALUE_COST);
                self.json.write(event)?;
                if matches!(event, Event::Begin(_)) {
                    self.omitted.push(0);
                }
            }
        }
        Ok(())
    }

    fn use_room(&mut self, bytes: usize) {
        self.room = self.room.saturating_sub(bytes);
        self.total_room = self.total_room.saturating_sub(bytes);
    }

    fn omit(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) => self.omitted_depth += 1,
            Event::End(_) => self.omitted_depth -= 1,
            Event::Name(_) | Event::Text { .. } | Event::Literal(_) => {}
        }
        if event.ends_value()
            && self.omitted_depth == 0
            && let Some(count) = self.omitted.last_mut()
        {
            *count += 1;
        }
    }
}
