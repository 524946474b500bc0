//! Streaming parser that repairs invalid JSON without keeping the document in memory.

use std::io::{self, Read};

use baton_core::{plain_length, repair_escape};
use serde_json::Value;

use super::LenientError;

/// Maximum size of a piece of text in bytes; shorter texts are passed on in one piece.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Size of the read buffer in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Length of the longest escape, a surrogate pair.
const MAX_ESCAPE_BYTES: usize = r"\ud83d\ude00".len();
/// Values other than numbers, and words that some writers use for values that JSON numbers cannot represent.
const WORDS: [&str; 6] = ["true", "false", "null", "NaN", "Infinity", "-Infinity"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    List,
    Text,
    /// A number, `true`, `false` or `null`.
    Scalar,
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
    /// The content cannot be written.
    #[error("cannot store the input: {0}")]
    Sink(#[from] io::Error),
}

/// Parses the parts of a document in order. The caller asks for each part.
pub(super) struct Parser<'a> {
    source: &'a mut dyn Read,
    /// Part of the document; the part before `at` is parsed.
    buffer: Vec<u8>,
    at: usize,
    /// Number of bytes that were removed from the buffer.
    passed: usize,
    /// Bytes of the current text that are not in a piece yet.
    text: Vec<u8>,
    /// The part that was parsed last: a piece of a text, a name, or a scalar as written.
    pub(super) part: String,
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a mut dyn Read) -> Self {
        let buffer = Vec::with_capacity(CHUNK_BYTES);
        Self { source, buffer, at: 0, passed: 0, text: Vec::new(), part: String::new() }
    }

    /// Starts the document.
    pub(super) fn begin(&mut self) -> Result<(), ReadError> {
        if self.ensure(BYTE_ORDER_MARK.len())?.starts_with(BYTE_ORDER_MARK) {
            self.at += BYTE_ORDER_MARK.len();
        }
        if self.next_byte()?.is_none() {
            return Err(LenientError::Empty.into());
        }
        Ok(())
    }

    /// Checks that nothing follows the document.
    pub(super) fn finish(&mut self) -> Result<(), ReadError> {
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

    /// Starts the next value: consumes the opening bracket or quote, if it has one.
    pub(super) fn begin_value(&mut self) -> Result<Kind, ReadError> {
        let kind = match self.next_byte()? {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::Text,
            Some(_) => Kind::Scalar,
            None => return Err(self.wrong("a value is missing")),
        };
        self.at += usize::from(kind != Kind::Scalar);
        Ok(kind)
    }

    /// Returns true if the current container has another entry. Consumes the comma before it, or the closing bracket.
    pub(super) fn next_entry(&mut self, closing: u8, is_first: bool) -> Result<bool, ReadError> {
        if !is_first {
            return Ok(self.expect(&[b',', closing], "`,` or an end is expected")? == b',');
        }
        let is_empty = self.next_byte()? == Some(closing);
        self.at += usize::from(is_empty);
        Ok(!is_empty)
    }

    /// Parses the name of a member and the colon after it. A name that is longer than a piece is truncated to its
    /// first piece.
    pub(super) fn name(&mut self) -> Result<String, ReadError> {
        self.expect(b"\"", "a name is expected")?;
        let mut is_last = self.next_piece()?;
        let name = std::mem::take(&mut self.part);
        while !is_last {
            is_last = self.next_piece()?;
        }
        self.expect(b":", "`:` is expected")?;
        Ok(name)
    }

    /// Skips the rest of a container that is nested too deeply.
    pub(super) fn skip_container(&mut self) -> Result<(), ReadError> {
        let mut open = 1_usize;
        while open > 0 {
            let byte = self.next_byte()?.ok_or_else(|| self.wrong("an end is missing"))?;
            self.at += 1;
            match byte {
                b'"' => while !self.next_piece()? {},
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses the next piece of a text after its opening quote. Returns true for the last piece.
    pub(super) fn next_piece(&mut self) -> Result<bool, ReadError> {
        let mut is_last = false;
        while !is_last && self.text.len() < PIECE_BYTES {
            self.ensure(1)?;
            let rest = &self.buffer[self.at..];
            let rest = &rest[..rest.len().min(PIECE_BYTES - self.text.len())];
            let plain = plain_length(rest);
            self.text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain).copied() {
                Some(b'"') => {
                    is_last = true;
                    self.at += 1;
                }
                Some(b'\\') => {
                    let (character, length) = repair_escape(self.ensure(MAX_ESCAPE_BYTES)?);
                    self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    self.at += length;
                }
                // A control character is kept.
                Some(control) => {
                    self.text.push(control);
                    self.at += 1;
                }
                None if plain == 0 => return Err(self.wrong("a text has no end")),
                None => {}
            }
        }
        let end = if is_last { self.text.len() } else { complete_length(&self.text) };
        self.part.clear();
        self.part.push_str(&String::from_utf8_lossy(&self.text[..end]));
        self.text.drain(..end);
        Ok(is_last)
    }

    /// Parses a number or a word. A number that is not finite or out of range becomes a text.
    pub(super) fn scalar(&mut self) -> Result<Value, ReadError> {
        let rest = self.ensure("-Infinity".len())?;
        let word = WORDS.into_iter().find(|word| rest.starts_with(word.as_bytes()));
        self.at += word.map_or(0, str::len);
        self.part.clear();
        self.part.push_str(word.unwrap_or_default());
        while word.is_none()
            && let Some(byte) = self.ensure(1)?.first().copied().filter(|byte| is_of_number(*byte))
        {
            if self.part.len() < PIECE_BYTES {
                self.part.push(char::from(byte));
            }
            self.at += 1;
        }
        let is_infinite = self.part.parse::<f64>().is_ok_and(|number| !number.is_finite());
        if is_infinite || self.part.len() == PIECE_BYTES {
            return Ok(std::mem::take(&mut self.part).into());
        }
        serde_json::from_str(&self.part).map_err(|_| self.wrong("a value is expected"))
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
