//! Strict reading of JSON text into [`serde_json::Value`].
//!
//! Owns the grammar, the nesting limit and the position of every failure. It is stricter than
//! `serde_json`: a duplicate key, nesting beyond [`MAX_DEPTH`] and an integer that a 64-bit float
//! would change are errors, because each of them lets two readers see two different documents.
//! It does not own canonical form (see `canonical`), size limits, or what the members mean.

mod error;

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use error::shorten;
pub use error::{JsonError, JsonErrorKind};
pub(crate) use error::{prepend_index, prepend_key};

/// The deepest nesting of arrays and objects that [`read_strict`] accepts.
pub const MAX_DEPTH: usize = 64;

/// From this magnitude on, RFC 8785 writes a number with an exponent.
const EXPONENT_FORM_FROM: f64 = 1e21;

/// Reads one JSON document and refuses whatever RFC 8259 leaves to the reader's taste.
///
/// Integers that fit `i64` or `u64` stay exact and `-0` becomes the float `-0.0`. A larger integer is
/// kept as a float when that float has exactly its value, or when RFC 8785 writes that float with the
/// same digits, so every canonical text can be read back; any other is refused.
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
    Reader { bytes, position: 0, max_depth }.read_document().map_err(|failure| failure.locate(bytes))
}

/// A failure whose offset has not been turned into line and column yet.
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
    position: usize,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    fn read_document(&mut self) -> Result<Value, Failure> {
        if self.bytes.starts_with(b"\xEF\xBB\xBF") {
            return Err(self.expected("a document without a byte order mark"));
        }
        self.skip_whitespace();
        if self.position == self.bytes.len() {
            return Err(self.fail(JsonErrorKind::Empty));
        }
        let value = self.read_value(0)?;
        self.skip_whitespace();
        if self.position < self.bytes.len() {
            return Err(self.fail(JsonErrorKind::TrailingCharacters));
        }
        Ok(value)
    }

    /// Reads the value that starts here, inside `depth` arrays and objects.
    fn read_value(&mut self, depth: usize) -> Result<Value, Failure> {
        match self.peek()? {
            b'{' | b'[' if depth == self.max_depth => Err(self.fail(JsonErrorKind::TooDeep(self.max_depth))),
            b'{' => self.read_object(depth + 1),
            b'[' => self.read_array(depth + 1),
            b'"' => self.read_string().map(Value::String),
            b'-' | b'0'..=b'9' => self.read_number().map(Value::Number),
            b't' => self.read_literal("true", Value::Bool(true)),
            b'f' => self.read_literal("false", Value::Bool(false)),
            b'n' => self.read_literal("null", Value::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn read_object(&mut self, depth: usize) -> Result<Value, Failure> {
        let mut members = Map::new();
        self.position += 1;
        self.skip_whitespace();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            let key_start = self.position;
            if self.peek()? != b'"' {
                let first = members.is_empty();
                return Err(self.expected(if first { "a quoted key or '}'" } else { "a quoted key" }));
            }
            match members.entry(self.read_string()?) {
                Entry::Occupied(taken) => {
                    return Err(Failure::new(JsonErrorKind::DuplicateKey(shorten(taken.key())), key_start));
                }
                Entry::Vacant(slot) => {
                    self.skip_whitespace();
                    if self.peek()? != b':' {
                        return Err(self.expected("':'"));
                    }
                    self.position += 1;
                    self.skip_whitespace();
                    let value = self.read_value(depth).map_err(|failure| failure.under_key(slot.key()))?;
                    slot.insert(value);
                }
            }
            self.skip_whitespace();
            match self.peek()? {
                b',' => self.position += 1,
                b'}' => break,
                _ => return Err(self.expected("',' or '}'")),
            }
            self.skip_whitespace();
        }
        self.position += 1;
        Ok(Value::Object(members))
    }

    fn read_array(&mut self, depth: usize) -> Result<Value, Failure> {
        let mut elements = Vec::new();
        self.position += 1;
        self.skip_whitespace();
        if self.eat(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            let element = self.read_value(depth).map_err(|failure| failure.under_index(elements.len()))?;
            elements.push(element);
            self.skip_whitespace();
            match self.peek()? {
                b',' => self.position += 1,
                b']' => break,
                _ => return Err(self.expected("',' or ']'")),
            }
            self.skip_whitespace();
        }
        self.position += 1;
        Ok(Value::Array(elements))
    }

    fn read_literal(&mut self, literal: &'static str, value: Value) -> Result<Value, Failure> {
        for &byte in literal.as_bytes() {
            if self.peek()? != byte {
                return Err(self.expected(literal));
            }
            self.position += 1;
        }
        Ok(value)
    }

    /// Reads a quoted string; copies each run between escapes in one piece.
    fn read_string(&mut self) -> Result<String, Failure> {
        self.position += 1;
        let first = self.read_plain_run()?;
        if self.eat(b'"') {
            return Ok(first.to_owned());
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
        Ok(text)
    }

    /// Takes everything up to the next quote, backslash, control character or end of the document.
    fn read_plain_run(&mut self) -> Result<&'a str, Failure> {
        let start = self.position;
        let rest = &self.bytes[start..];
        let length = plain_length(rest);
        let run = std::str::from_utf8(&rest[..length]).map_err(|invalid| {
            // A character cut off by the end of the document is a short document, not a bad one.
            if invalid.error_len().is_none() && length == rest.len() {
                Failure::new(JsonErrorKind::Truncated, self.bytes.len())
            } else {
                Failure::new(JsonErrorKind::InvalidUtf8, start + invalid.valid_up_to())
            }
        })?;
        self.position += length;
        Ok(run)
    }

    fn read_escape(&mut self) -> Result<char, Failure> {
        let start = self.position;
        self.position += 1;
        let escaped = match self.peek()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.read_unicode_escape(start),
            _ => return Err(self.expected("an escape character")),
        };
        self.position += 1;
        Ok(escaped)
    }

    /// Reads the rest of a `\u` escape whose backslash is at `start`, with its second half if it has one.
    fn read_unicode_escape(&mut self, start: usize) -> Result<char, Failure> {
        let lone = || Failure::new(JsonErrorKind::LoneSurrogate, start);
        self.position += 1;
        let unit = self.read_hex_unit()?;
        if !(0xD800..0xDC00).contains(&unit) {
            return char::from_u32(unit).ok_or_else(lone);
        }
        for &byte in br"\u" {
            if self.peek()? != byte {
                return Err(lone());
            }
            self.position += 1;
        }
        let low = self.read_hex_unit()?;
        if !(0xDC00..0xE000).contains(&low) {
            return Err(lone());
        }
        char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).ok_or_else(lone)
    }

    fn read_hex_unit(&mut self) -> Result<u32, Failure> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.peek()?).to_digit(16) else {
                return Err(self.expected("four hexadecimal digits"));
            };
            unit = unit << 4 | digit;
            self.position += 1;
        }
        Ok(unit)
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
        std::str::from_utf8(&self.bytes[start..self.position])
            .map_err(|_| JsonErrorKind::InvalidUtf8)
            .and_then(|literal| if is_integer { integer(literal) } else { float(literal) })
            .map_err(|kind| Failure::new(kind, start))
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

    /// Takes the next byte if it is the given one, and says whether it did.
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

/// Counts the bytes before the first quote, backslash or control character, eight at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    // Sets the high bit of each byte below `limit` (at most 128). A borrow can also mark bytes after
    // such a byte, never before it, so the lowest mark is always right.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH_BITS;

    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let stops = below(word, 0x20) | quote | backslash;
        if stops != 0 {
            return index * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let is_stop = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    words.len() * 8 + rest.iter().position(is_stop).unwrap_or(rest.len())
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
