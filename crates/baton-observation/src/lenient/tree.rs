//! Builds a JSON value from the streaming parser, whole or as an excerpt.

use std::io;

use serde_json::{Map, Value};

use super::reader::{Container, Visitor};
use crate::excerpt::Excerpt;

/// Maximum size of each member of a bounded document in bytes.
const MEMBER_ROOM: usize = 4 * 1024 * 1024;
/// Size of a value in bytes without its text.
const VALUE_COST: usize = 64;

/// Builds a JSON value.
pub(super) struct Tree {
    root: Value,
    open: Vec<Open>,
    text: Excerpt,
    /// Remaining bytes for the current member of the document.
    room: usize,
    member_room: usize,
}

struct Open {
    /// The object or list so far.
    value: Value,
    /// Name of the next member.
    name: String,
    /// True if there was room for the container.
    is_kept: bool,
    /// Number of omitted items.
    left_out: usize,
}

impl Tree {
    /// Keeps the whole document.
    pub(super) const fn whole() -> Self {
        Self::with_room(Excerpt::whole(), usize::MAX)
    }

    /// Keeps excerpts of long texts and the first parts of large containers.
    pub(super) const fn bounded() -> Self {
        Self::with_room(Excerpt::bounded(), MEMBER_ROOM)
    }

    const fn with_room(text: Excerpt, room: usize) -> Self {
        Self { root: Value::Null, open: Vec::new(), text, room, member_room: room }
    }

    /// Returns the complete value.
    pub(super) fn into_root(self) -> Value {
        self.root
    }

    fn add(&mut self, value: Value, is_kept: bool) {
        match self.open.last_mut() {
            Some(open) if !is_kept => open.left_out += 1,
            Some(Open { value: Value::Object(members), name, .. }) => {
                members.insert(std::mem::take(name), value);
            }
            Some(Open { value: Value::Array(items), .. }) => items.push(value),
            _ => self.root = value,
        }
    }

    /// Adds a string or literal, if there is room.
    fn add_leaf(&mut self, value: Value, size: usize) {
        let is_kept = self.room > 0;
        self.room = self.room.saturating_sub(size + VALUE_COST);
        self.add(value, is_kept);
    }
}

impl Visitor for Tree {
    fn begin(&mut self, container: Container) -> io::Result<()> {
        let value = match container {
            Container::Object => Value::Object(Map::new()),
            Container::List => Value::Array(Vec::new()),
        };
        self.open.push(Open { value, name: String::new(), is_kept: self.room > 0, left_out: 0 });
        self.room = self.room.saturating_sub(VALUE_COST);
        Ok(())
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        if self.open.len() == 1 {
            self.room = self.member_room;
        }
        self.room = self.room.saturating_sub(name.len());
        if let Some(open) = self.open.last_mut() {
            name.clone_into(&mut open.name);
        }
        Ok(())
    }

    fn end(&mut self, _: Container) -> io::Result<()> {
        let Some(Open { mut value, is_kept, left_out, .. }) = self.open.pop() else { return Ok(()) };
        if let Value::Array(items) = &mut value
            && left_out > 0
            && is_kept
        {
            items.push(format!("[... {left_out} more items ...]").into());
        }
        self.add(value, is_kept);
        Ok(())
    }

    fn text(&mut self, piece: &str, is_last: bool) -> io::Result<()> {
        if self.room > 0 {
            self.text.push(piece);
        }
        if is_last {
            let text = self.text.finish();
            let size = text.len();
            self.add_leaf(Value::String(text), size);
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) -> io::Result<()> {
        self.add_leaf(serde_json::from_str(literal)?, 0);
        Ok(())
    }
}
