//! JSON text: strict reading into [`serde_json::Value`] or straight into canonical text, and writing of canonical text.
//!
//! Owns the grammar, the nesting limit, the position of every failure, and canonical form. It is stricter than
//! `serde_json`: a duplicate key, nesting beyond [`MAX_DEPTH`] and an integer that a 64-bit float would change are
//! errors, because two parsers may read such a document differently. It does not own hashes of canonical text (see
//! `canonical`), size limits, or the meaning of members.

mod canonical_text;
mod compact;
mod error;
mod object_text;
mod sink;
mod tokens;
mod tree;
mod write;

use std::borrow::Cow;

use serde_json::{Number, Value};

use canonical_text::CanonicalSink;
pub use compact::{JsonKind, JsonMember, JsonText};
use error::shorten;
pub use error::{JsonError, JsonErrorKind};
pub(crate) use error::{prepend_index, prepend_key};
pub use object_text::{add_member, indent, remove_member};
use sink::{Scalar, Sink};
use tokens::read_escape;
pub use tokens::{json_tokens, plain_length, repair_escape};
use tree::TreeSink;
pub use write::{RoundedInteger, canonicalize, compare_keys, write_string};

/// Maximum nesting of arrays and objects that [`read_strict`] accepts.
pub const MAX_DEPTH: usize = 64;

/// From this magnitude on, RFC 8785 writes a number with an exponent.
const EXPONENT_FORM_FROM: f64 = 1e21;

/// Parses one JSON document and rejects everything that RFC 8259 leaves undefined.
///
/// Integers that fit `i64` or `u64` stay exact and `-0` becomes the float `-0.0`. A larger integer is kept as
/// a float when that float has exactly its value, or when RFC 8785 writes that float with the same digits, so
/// every canonical text can be read back; any other is rejected.
///
/// # Errors
///
/// Returns the first failure with its position and path. See [`JsonErrorKind`] for the reasons.
pub fn read_strict(bytes: &[u8]) -> Result<Value, JsonError> {
    read_strict_within(bytes, MAX_DEPTH)
}

/// Reads like [`read_strict`] with another limit on nesting, for documents that come wrapped in a message.
///
/// # Errors
///
/// As for [`read_strict`].
pub fn read_strict_within(bytes: &[u8], max_depth: usize) -> Result<Value, JsonError> {
    read(bytes, max_depth, &mut TreeSink::default())
}

/// Reads like [`read_strict`] and writes the document as canonical JSON (RFC 8785) without building a tree of it, which
/// would take many times the memory of the text. Returns `None` for a document that is not an object.
///
/// # Errors
///
/// As for [`read_strict`], and for every integer whose digits RFC 8785 would change.
pub fn read_canonical_object(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    let mut sink = CanonicalSink::with_capacity(bytes.len());
    read(bytes, MAX_DEPTH, &mut sink)?;
    Ok(Some(sink.into_text()).filter(|text| text.starts_with('{')))
}

/// Reads like [`read_strict`], except that the member `name` of the document, if it is an object, is written as canonical
/// JSON (RFC 8785) instead of into a tree.
///
/// # Errors
///
/// As for [`read_strict`], and for every integer in that member whose digits RFC 8785 would change.
pub fn read_with_canonical_member(bytes: &[u8], name: &str) -> Result<(Value, Option<String>), JsonError> {
    let mut sink = TreeSink::with_canonical_member(name, bytes.len());
    let mut value = read(bytes, MAX_DEPTH, &mut sink)?;
    let text = sink.into_canonical_text();
    if text.is_some()
        && let Value::Object(members) = &mut value
    {
        members.remove(name);
    }
    Ok((value, text))
}

fn read<S: Sink>(bytes: &[u8], max_depth: usize, sink: &mut S) -> Result<S::Value, JsonError> {
    Reader::new(bytes, max_depth).read_document(sink).map_err(|failure| failure.locate(bytes))
}

/// A failure with an offset instead of line and column.
struct Failure {
    kind: JsonErrorKind,
    offset: usize,
    path: String,
}

impl Failure {
    fn new(kind: JsonErrorKind, offset: usize) -> Self {
        Self { kind, offset, path: String::new() }
    }

    fn under_key(mut self, key: &str) -> Self {
        prepend_key(&mut self.path, key);
        self
    }

    fn under_index(mut self, index: usize) -> Self {
        prepend_index(&mut self.path, index);
        self
    }

    fn locate(self, bytes: &[u8]) -> JsonError {
        let before = &bytes[..self.offset];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        JsonError {
            kind: self.kind,
            path: self.path,
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: self.offset - line_start + 1,
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// The document up to the first byte that is not UTF-8, where reading ends.
    text: &'a str,
    position: usize,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], max_depth: usize) -> Self {
        let text = str::from_utf8(bytes)
            .or_else(|invalid| str::from_utf8(&bytes[..invalid.valid_up_to()]))
            .unwrap_or_default();
        Self { bytes, text, position: 0, max_depth }
    }

    fn read_document<S: Sink>(&mut self, sink: &mut S) -> Result<S::Value, Failure> {
        if self.bytes.starts_with(b"\xEF\xBB\xBF") {
            return Err(self.expected("a document without a byte order mark"));
        }
        self.skip_whitespace();
        if self.position == self.bytes.len() {
            return Err(self.fail(JsonErrorKind::Empty));
        }
        let value = self.read_value(sink, 0)?;
        self.skip_whitespace();
        if self.position < self.bytes.len() {
            return Err(self.fail(JsonErrorKind::TrailingCharacters));
        }
        Ok(value)
    }

    /// Reads the value that starts here, inside `depth` arrays and objects.
    fn read_value<S: Sink>(&mut self, sink: &mut S, depth: usize) -> Result<S::Value, Failure> {
        let start = self.position;
        let scalar = match self.peek()? {
            b'{' | b'[' if depth == self.max_depth => {
                return Err(self.fail(JsonErrorKind::TooDeep(self.max_depth)));
            }
            b'{' => return self.read_object(sink, depth + 1),
            b'[' => return self.read_array(sink, depth + 1),
            b'"' => Scalar::String(self.read_string()?),
            b'-' | b'0'..=b'9' => Scalar::Number(self.read_number()?),
            b't' => self.read_literal("true", Scalar::Bool(true))?,
            b'f' => self.read_literal("false", Scalar::Bool(false))?,
            b'n' => self.read_literal("null", Scalar::Null)?,
            _ => return Err(self.expected("a value")),
        };
        sink.scalar(scalar).map_err(|kind| Failure::new(kind, start))
    }

    fn read_object<S: Sink>(&mut self, sink: &mut S, depth: usize) -> Result<S::Value, Failure> {
        let mut object = sink.begin_object();
        self.position += 1;
        let mut is_first = true;
        while self.next_entry(b'}', is_first, "',' or '}'")? {
            let key_start = self.position;
            if self.peek()? != b'"' {
                return Err(self.expected(if is_first { "a quoted key or '}'" } else { "a quoted key" }));
            }
            is_first = false;
            let key = self.read_string()?;
            sink.begin_member(&mut object, &key, key_start).map_err(|kind| Failure::new(kind, key_start))?;
            self.skip_whitespace();
            if self.peek()? != b':' {
                return Err(self.expected("':'"));
            }
            self.position += 1;
            self.skip_whitespace();
            if self.peek()? == b'{'
                && let Some(member) = sink.member_sink(&mut object, depth, &key)
            {
                self.read_value(member, depth).map_err(|failure| failure.under_key(&key))?;
            } else {
                let value = self.read_value(sink, depth).map_err(|failure| failure.under_key(&key))?;
                sink.end_member(&mut object, key, value);
            }
        }
        sink.end_object(object).map_err(|(kind, key_start)| Failure::new(kind, key_start))
    }

    fn read_array<S: Sink>(&mut self, sink: &mut S, depth: usize) -> Result<S::Value, Failure> {
        let mut array = sink.begin_array();
        self.position += 1;
        let mut index = 0;
        while self.next_entry(b']', index == 0, "',' or ']'")? {
            let element = self.read_value(sink, depth).map_err(|failure| failure.under_index(index))?;
            sink.push(&mut array, element);
            index += 1;
        }
        Ok(sink.end_array(array))
    }

    /// Moves to the next entry of an array or object. Consumes the closing bracket and returns false after the last one.
    fn next_entry(&mut self, closing: u8, is_first: bool, expected: &'static str) -> Result<bool, Failure> {
        self.skip_whitespace();
        if self.eat(closing) {
            return Ok(false);
        }
        if !is_first {
            if self.peek()? != b',' {
                return Err(self.expected(expected));
            }
            self.position += 1;
            self.skip_whitespace();
        }
        Ok(true)
    }

    fn read_literal(&mut self, literal: &'static str, value: Scalar<'a>) -> Result<Scalar<'a>, Failure> {
        for &byte in literal.as_bytes() {
            if self.peek()? != byte {
                return Err(self.expected(literal));
            }
            self.position += 1;
        }
        Ok(value)
    }

    /// Reads a quoted string; copies each run between escapes in one piece.
    fn read_string(&mut self) -> Result<Cow<'a, str>, Failure> {
        self.position += 1;
        let first = self.read_plain_run()?;
        if self.eat(b'"') {
            return Ok(Cow::Borrowed(first));
        }
        let mut text = String::with_capacity(first.len() + 16);
        text.push_str(first);
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => text.push(self.read_escape()?),
                _ => return Err(self.fail(JsonErrorKind::ControlCharacter)),
            }
            text.push_str(self.read_plain_run()?);
        }
        self.position += 1;
        Ok(Cow::Owned(text))
    }

    /// Reads up to the next quote, backslash, control character or end of the document.
    fn read_plain_run(&mut self) -> Result<&'a str, Failure> {
        let end = self.position + plain_length(&self.bytes[self.position..]);
        let run = self.text.get(self.position..end).ok_or_else(|| self.invalid_utf8())?;
        self.position = end;
        Ok(run)
    }

    fn invalid_utf8(&self) -> Failure {
        let start = self.text.len();
        // A character that is cut off by the end of the document is reported as an unexpected end, not as invalid UTF-8.
        match str::from_utf8(&self.bytes[start..]) {
            Err(invalid) if invalid.error_len().is_none() => {
                Failure::new(JsonErrorKind::Truncated, self.bytes.len())
            }
            _ => Failure::new(JsonErrorKind::InvalidUtf8, start),
        }
    }

    fn read_escape(&mut self) -> Result<char, Failure> {
        let start = self.position;
        let (character, length) = read_escape(&self.bytes[start..])
            .map_err(|(kind, position)| Failure::new(kind, start + position))?;
        self.position += length;
        Ok(character)
    }

    fn read_number(&mut self) -> Result<Number, Failure> {
        let start = self.position;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.skip_digits()?;
        } else if self.next_is_digit() {
            return Err(self.expected("a number without leading zeros"));
        }
        let mut is_integer = true;
        if self.eat(b'.') {
            is_integer = false;
            self.skip_digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            is_integer = false;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.skip_digits()?;
        }
        let literal = &self.text[start..self.position];
        let number = if is_integer { integer(literal) } else { float(literal) };
        number.map_err(|kind| Failure::new(kind, start))
    }

    fn skip_digits(&mut self) -> Result<(), Failure> {
        if !self.peek()?.is_ascii_digit() {
            return Err(self.expected("a digit"));
        }
        while self.next_is_digit() {
            self.position += 1;
        }
        Ok(())
    }

    fn next_is_digit(&self) -> bool {
        self.bytes.get(self.position).is_some_and(u8::is_ascii_digit)
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.bytes.get(self.position), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    /// Consumes the next byte if it is the given one. Returns true if it was.
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn peek(&self) -> Result<u8, Failure> {
        self.bytes.get(self.position).copied().ok_or_else(|| self.fail(JsonErrorKind::Truncated))
    }

    fn fail(&self, kind: JsonErrorKind) -> Failure {
        Failure::new(kind, self.position)
    }

    fn expected(&self, what: &'static str) -> Failure {
        self.fail(JsonErrorKind::Syntax(what))
    }
}

fn integer(literal: &str) -> Result<Number, JsonErrorKind> {
    if literal == "-0" {
        return float(literal);
    }
    if let Ok(unsigned) = literal.parse::<u64>() {
        return Ok(unsigned.into());
    }
    if let Ok(signed) = literal.parse::<i64>() {
        return Ok(signed.into());
    }
    let double = parse_double(literal)?;
    let is_exact = format!("{double:.0}") == literal;
    let is_canonical = double.abs() < EXPONENT_FORM_FROM && double.to_string() == literal;
    if is_exact || is_canonical {
        return from_double(double);
    }
    Err(JsonErrorKind::IntegerWouldRound(shorten(literal)))
}

fn float(literal: &str) -> Result<Number, JsonErrorKind> {
    from_double(parse_double(literal)?)
}

fn parse_double(literal: &str) -> Result<f64, JsonErrorKind> {
    let double: f64 = literal.parse().map_err(|_| JsonErrorKind::NumberOutOfRange)?;
    if double.is_finite() { Ok(double) } else { Err(JsonErrorKind::NumberOutOfRange) }
}

fn from_double(double: f64) -> Result<Number, JsonErrorKind> {
    Number::from_f64(double).ok_or(JsonErrorKind::NumberOutOfRange)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
