//! Streaming parser that repairs invalid JSON without keeping the document in memory.

use std::io::{self, Read};

use serde_json::Value;

use super::LenientError;

/// Maximum size of a piece of text in bytes; shorter texts are passed on in one piece.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Size of the read buffer in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum nesting depth. It is below the limit of 128 of JSON parsers, so that the document can be nested in others.
pub(super) const MAX_DEPTH: usize = 100;
/// Replacement of values that are nested too deeply.
const TOO_DEEP: &str = "[nested too deeply]";
/// Length of the longest escape, a surrogate pair.
const MAX_ESCAPE_BYTES: usize = r"\ud83d\ude00".len();
/// Values other than numbers, and words that some writers use for values that JSON numbers cannot represent.
const WORDS: [&str; 6] = ["true", "false", "null", "NaN", "Infinity", "-Infinity"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An object or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Object,
    List,
}

/// A part of a document. The parts are passed on in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'a> {
    /// Start of an object or list.
    Begin(Container),
    /// End of an object or list.
    End(Container),
    /// Name of the next member of an object.
    Name(&'a str),
    /// Next piece of a text.
    Text { piece: &'a str, is_last: bool },
    /// A number, `true`, `false` or `null` as JSON.
    Literal(&'a str),
}

impl<'a> Event<'a> {
    pub(crate) const fn text(piece: &'a str) -> Self {
        Self::Text { piece, is_last: true }
    }

    /// Returns true for the last part of a value.
    pub(crate) const fn ends_value(self) -> bool {
        matches!(self, Self::End(_) | Self::Literal(_) | Self::Text { is_last: true, .. })
    }
}

/// Error of the streaming parser.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The document is invalid.
    #[error(transparent)]
    Document(#[from] LenientError),
    /// The source cannot be read.
    #[error("cannot read the input: {0}")]
    Source(io::Error),
    /// The parts cannot be processed, for example because they cannot be written.
    #[error("cannot store the input: {0}")]
    Sink(#[from] io::Error),
}

/// Parses a whole document and passes its parts to `visit`.
pub(crate) fn read_to(
    mut source: impl Read,
    mut visit: impl FnMut(Event<'_>) -> io::Result<()>,
) -> Result<(), ReadError> {
    let (buffer, text, piece) = (Vec::with_capacity(CHUNK_BYTES), Vec::new(), String::new());
    Reader { source: &mut source, visit: &mut visit, buffer, at: 0, passed: 0, text, piece }.document()
}

struct Reader<'a> {
    source: &'a mut dyn Read,
    visit: &'a mut dyn FnMut(Event<'_>) -> io::Result<()>,
    /// Part of the document; the part before `at` is parsed.
    buffer: Vec<u8>,
    at: usize,
    /// Number of bytes that were removed from the buffer.
    passed: usize,
    /// Bytes of the current text that were not passed on.
    text: Vec<u8>,
    /// Current piece of the text.
    piece: String,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), ReadError> {
        if self.ensure(BYTE_ORDER_MARK.len())?.starts_with(BYTE_ORDER_MARK) {
            self.at += BYTE_ORDER_MARK.len();
        }
        if self.next_byte()?.is_none() {
            return Err(LenientError::Empty.into());
        }
        self.value(0)?;
        match self.next_byte()? {
            None => Ok(()),
            Some(_) => Err(self.wrong("something follows the document")),
        }
    }

    /// Returns the rest of the document, at least `count` bytes of it unless it is shorter.
    fn ensure(&mut self, count: usize) -> Result<&[u8], ReadError> {
        if self.buffer.len() - self.at < count {
            self.buffer.drain(..self.at);
            self.passed += std::mem::take(&mut self.at);
            let room = (CHUNK_BYTES - self.buffer.len()) as u64;
            (&mut *self.source).take(room).read_to_end(&mut self.buffer).map_err(ReadError::Source)?;
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }

    /// Skips whitespace and returns the next byte without consuming it.
    fn next_byte(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.ensure(1)?.first() {
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                other => return Ok(other.copied()),
            }
        }
    }

    fn wrong(&self, what: &str) -> ReadError {
        LenientError::NotJson(format!("{what} at byte {}", self.passed + self.at)).into()
    }

    /// Consumes the next byte, which must be one of `expected`.
    fn expect(&mut self, expected: &[u8], problem: &str) -> Result<u8, ReadError> {
        let byte = self.next_byte()?.filter(|byte| expected.contains(byte));
        let byte = byte.ok_or_else(|| self.wrong(problem))?;
        self.at += 1;
        Ok(byte)
    }

    fn value(&mut self, depth: usize) -> Result<(), ReadError> {
        match self.next_byte()? {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                self.skip_nested()?;
                Ok((self.visit)(Event::text(TOO_DEEP))?)
            }
            Some(b'{') => self.container(Container::Object, b'}', depth),
            Some(b'[') => self.container(Container::List, b']', depth),
            Some(b'"') => {
                self.at += 1;
                loop {
                    let is_last = self.next_piece()?;
                    (self.visit)(Event::Text { piece: &self.piece, is_last })?;
                    if is_last {
                        return Ok(());
                    }
                }
            }
            Some(_) => self.scalar(),
            None => Err(self.wrong("a value is missing")),
        }
    }

    fn container(&mut self, container: Container, closing: u8, depth: usize) -> Result<(), ReadError> {
        self.at += 1;
        (self.visit)(Event::Begin(container))?;
        let mut is_closed = self.next_byte()? == Some(closing);
        self.at += usize::from(is_closed);
        while !is_closed {
            if container == Container::Object {
                self.name()?;
            }
            self.value(depth + 1)?;
            is_closed = self.expect(&[b',', closing], "`,` or an end is expected")? == closing;
        }
        Ok((self.visit)(Event::End(container))?)
    }

    /// Parses the name of a member and the colon after it. A name that is longer than a piece is truncated to its
    /// first piece.
    fn name(&mut self) -> Result<(), ReadError> {
        self.expect(b"\"", "a name is expected")?;
        let mut is_last = self.next_piece()?;
        (self.visit)(Event::Name(&self.piece))?;
        while !is_last {
            is_last = self.next_piece()?;
        }
        self.expect(b":", "`:` is expected").map(drop)
    }

    /// Skips a container that is nested too deeply.
    fn skip_nested(&mut self) -> Result<(), ReadError> {
        let mut open = 0_usize;
        loop {
            let byte = self.next_byte()?.ok_or_else(|| self.wrong("an end is missing"))?;
            self.at += 1;
            match byte {
                b'"' => while !self.next_piece()? {},
                b'{' | b'[' => open += 1,
                b'}' | b']' if open == 1 => return Ok(()),
                b'}' | b']' => open -= 1,
                _ => {}
            }
        }
    }

    /// Parses the next piece of a text after its opening quote. Returns true for the last piece.
    fn next_piece(&mut self) -> Result<bool, ReadError> {
        loop {
            self.ensure(1)?;
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let rest = rest.get(..PIECE_BYTES - self.text.len()).unwrap_or(rest);
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            let plain = special.unwrap_or(rest.len());
            let is_last = special.is_some_and(|at| rest.get(at) == Some(&b'"'));
            if rest.is_empty() {
                return Err(self.wrong("a text has no end"));
            }
            self.text.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.at += plain + usize::from(is_last);
            if special.is_some() && !is_last {
                self.escape()?;
            }
            if is_last || self.text.len() >= PIECE_BYTES {
                let end = if is_last { self.text.len() } else { complete_length(&self.text) };
                self.piece.clear();
                self.piece.push_str(&String::from_utf8_lossy(self.text.get(..end).unwrap_or_default()));
                self.text.drain(..end);
                return Ok(is_last);
            }
        }
    }

    /// Parses an escape. An invalid escape is kept as written; half of a surrogate pair becomes U+FFFD.
    fn escape(&mut self) -> Result<(), ReadError> {
        let (character, used) = match self.ensure(MAX_ESCAPE_BYTES)? {
            [_, simple @ (b'"' | b'\\' | b'/'), ..] => (char::from(*simple), 2),
            [_, b'b', ..] => ('\u{8}', 2),
            [_, b'f', ..] => ('\u{c}', 2),
            [_, b'n', ..] => ('\n', 2),
            [_, b'r', ..] => ('\r', 2),
            [_, b't', ..] => ('\t', 2),
            [_, rest @ ..] => unicode(rest).map_or(('\\', 1), |(character, used)| (character, used + 1)),
            [] => ('\\', 0),
        };
        self.at += used;
        self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Parses a number or a word. A number that is not finite or out of range becomes a text.
    fn scalar(&mut self) -> Result<(), ReadError> {
        let rest = self.ensure("-Infinity".len())?;
        let word = WORDS.into_iter().find(|word| rest.starts_with(word.as_bytes()));
        self.at += word.map_or(0, str::len);
        let mut digits = String::new();
        while word.is_none()
            && let Some(byte) = self.ensure(1)?.first().copied().filter(|byte| is_of_number(*byte))
        {
            if digits.len() < PIECE_BYTES {
                digits.push(char::from(byte));
            }
            self.at += 1;
        }
        let scalar = word.unwrap_or(&digits);
        let is_infinite = scalar.parse::<f64>().is_ok_and(|number| !number.is_finite());
        if is_infinite || scalar.len() == PIECE_BYTES {
            return Ok((self.visit)(Event::text(scalar))?);
        }
        if serde_json::from_str::<Value>(scalar).is_err() {
            return Err(self.wrong("a value is expected"));
        }
        Ok((self.visit)(Event::Literal(scalar))?)
    }
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the length of the text without its last character if that is not ASCII, because its other bytes may follow
/// in the next piece.
fn complete_length(text: &[u8]) -> usize {
    let last = text.iter().rev().take(4).position(|byte| !matches!(byte, 0x80..=0xBF));
    let start = last.map(|after| text.len() - after - 1);
    start.filter(|start| text.get(*start).is_some_and(|byte| !byte.is_ascii())).unwrap_or(text.len())
}

/// Parses `uXXXX` or a surrogate pair. Returns the character and the number of bytes.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    match code_unit(text)? {
        high @ 0xD800..=0xDBFF => {
            let low = text.get(5..).and_then(|more| code_unit(more.strip_prefix(b"\\")?));
            match low {
                Some(low @ 0xDC00..=0xDFFF) => {
                    let point = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    Some((char::from_u32(point)?, 11))
                }
                _ => Some((char::REPLACEMENT_CHARACTER, 5)),
            }
        }
        unit => Some((char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 5)),
    }
}

fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}
