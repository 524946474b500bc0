//! Canonical JSON (RFC 8785) written while a document is read.
//!
//! The members of an object are written in the order in which they come. When the object ends, its members
//! are sorted in the text if necessary, so that only the positions of members of the enclosing objects are
//! held in memory.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::error::{JsonErrorKind, shorten};
use super::sink::{Scalar, Sink};
use super::write::{compare_keys, write_number, write_string};

/// Writes canonical text.
pub(super) struct CanonicalSink {
    text: String,
}

/// An object whose members are being written.
pub(super) struct OpenObject {
    /// Position of the opening brace in the text.
    start: usize,
    members: Vec<Member>,
    is_sorted: bool,
}

/// Position of a member in the text. A document has less than 4 GiB.
#[derive(Clone, Copy)]
struct Member {
    start: u32,
    key_end: u32,
    end: u32,
    /// Position of its key in the document that is read.
    key_start: u32,
}

impl CanonicalSink {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes) }
    }

    /// Returns the text; empty when nothing was written.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn key(&self, member: &Member) -> Cow<'_, str> {
        read_key(&self.text, 0, member)
    }

    /// Replaces the comma after the last part, or ends an empty array or object.
    fn close(&mut self, bracket: char) {
        if self.text.ends_with(',') {
            self.text.pop();
        }
        self.text.push(bracket);
    }

    fn sort(&mut self, object: &mut OpenObject) {
        let unsorted = self.text.split_off(object.start);
        let key = |member: &Member| read_key(&unsorted, object.start, member);
        object.members.sort_by(|one, other| compare_keys(&key(one), &key(other)));
        self.text.push('{');
        for member in &mut object.members {
            let entry = &unsorted[member.start as usize - object.start..member.end as usize - object.start];
            let moved = position(self.text.len());
            self.text.push_str(entry);
            self.text.push(',');
            let length = member.end - member.start;
            *member = Member {
                start: moved,
                key_end: moved + (member.key_end - member.start),
                end: moved + length,
                ..*member
            };
        }
    }
}

/// Reads the key of a member from text that starts at `offset`.
fn read_key<'t>(text: &'t str, offset: usize, member: &Member) -> Cow<'t, str> {
    let quoted = &text[member.start as usize - offset..member.key_end as usize - offset];
    let plain = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if plain.contains('\\') {
        return Cow::Owned(serde_json::from_str(quoted).unwrap_or_default());
    }
    Cow::Borrowed(plain)
}

/// Position in the text. Documents are far below the limit, which is checked before they are read.
fn position(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Sink for CanonicalSink {
    type Value = ();
    type Object = OpenObject;
    type Array = ();
    type MemberSink = Self;

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), JsonErrorKind> {
        match scalar {
            Scalar::Null => self.text.push_str("null"),
            Scalar::Bool(true) => self.text.push_str("true"),
            Scalar::Bool(false) => self.text.push_str("false"),
            Scalar::Number(number) => {
                write_number(&mut self.text, &number)
                    .map_err(|rounded| JsonErrorKind::IntegerWouldRound(shorten(&rounded.number)))?;
            }
            Scalar::String(text) => write_string(&mut self.text, &text),
        }
        Ok(())
    }

    fn begin_array(&mut self) {
        self.text.push('[');
    }

    fn push(&mut self, (): &mut (), (): ()) {
        self.text.push(',');
    }

    fn end_array(&mut self, (): ()) {
        self.close(']');
    }

    fn begin_object(&mut self) -> OpenObject {
        self.text.push('{');
        OpenObject { start: self.text.len() - 1, members: Vec::new(), is_sorted: true }
    }

    fn begin_member(
        &mut self,
        object: &mut OpenObject,
        key: &str,
        key_start: usize,
    ) -> Result<(), JsonErrorKind> {
        if let Some(before) = object.members.last()
            && object.is_sorted
        {
            object.is_sorted = compare_keys(&self.key(before), key) == Ordering::Less;
        }
        let start = position(self.text.len());
        write_string(&mut self.text, key);
        let key_end = position(self.text.len());
        object.members.push(Member { start, key_end, end: key_end, key_start: position(key_start) });
        self.text.push(':');
        Ok(())
    }

    fn end_member(&mut self, object: &mut OpenObject, _key: Cow<'_, str>, (): ()) {
        if let Some(member) = object.members.last_mut() {
            member.end = position(self.text.len());
        }
        self.text.push(',');
    }

    fn end_object(&mut self, mut object: OpenObject) -> Result<(), (JsonErrorKind, usize)> {
        if !object.is_sorted {
            self.sort(&mut object);
            let duplicates =
                object.members.windows(2).filter(|pair| self.key(&pair[0]) == self.key(&pair[1]));
            // The sort is stable: the second of a pair comes later in the document.
            if let Some(second) = duplicates.map(|pair| &pair[1]).min_by_key(|second| second.key_start) {
                let kind = JsonErrorKind::DuplicateKey(shorten(&self.key(second)));
                return Err((kind, second.key_start as usize));
            }
        }
        self.close('}');
        Ok(())
    }
}
