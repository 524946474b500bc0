//! Streaming parser that repairs invalid JSON without keeping the document in memory.

use std::io::{self, Read};

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
/// Words that some writers use for values that JSON numbers cannot represent.
const NON_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// An object or a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Object,
    List,
}

/// Receives the parts of a document in order.
pub(crate) trait Visitor {
    /// Called at the start of an object or list.
    fn begin(&mut self, container: Container) -> io::Result<()>;
    /// Called with the name of the next member of an object.
    fn name(&mut self, name: &str) -> io::Result<()>;
    /// Called at the end of an object or list.
    fn end(&mut self, container: Container) -> io::Result<()>;
    /// Called with the next piece of a text.
    fn text(&mut self, piece: &str, is_last: bool) -> io::Result<()>;
    /// Called with a number, `true`, `false` or `null` as JSON.
    fn literal(&mut self, literal: &str) -> io::Result<()>;
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
    /// The visitor failed, for example because it cannot write.
    #[error("cannot store the input: {0}")]
    Sink(#[from] io::Error),
}

/// Parses a whole document and passes its parts to `visitor`.
pub(crate) fn read_to(source: impl Read, visitor: &mut impl Visitor) -> Result<(), ReadError> {
    let mut reader =
        Reader { source, buffer: vec![0; CHUNK_BYTES], at: 0, end: 0, passed: 0, text: Vec::new() };
    reader.ensure(b"\xef\xbb\xbf".len())?;
    if reader.window().starts_with(b"\xef\xbb\xbf") {
        reader.at += 3;
    }
    if reader.next_byte()?.is_none() {
        return Err(LenientError::Empty.into());
    }
    reader.value(0, visitor)?;
    match reader.next_byte()? {
        None => Ok(()),
        Some(_) => Err(reader.wrong("something follows the document")),
    }
}

struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Range of the buffer that is not parsed yet.
    at: usize,
    end: usize,
    /// Number of bytes that were removed from the buffer.
    passed: usize,
    /// Current text as bytes. Invalid UTF-8 is repaired when a piece is passed on.
    text: Vec<u8>,
}

impl<R: Read> Reader<R> {
    fn window(&self) -> &[u8] {
        self.buffer.get(self.at..self.end).unwrap_or_default()
    }

    /// Reads until `count` bytes are available or the source ends.
    fn ensure(&mut self, count: usize) -> Result<(), ReadError> {
        while self.end - self.at < count {
            if self.end == self.buffer.len() {
                self.buffer.copy_within(self.at..self.end, 0);
                self.passed += self.at;
                self.end -= self.at;
                self.at = 0;
            }
            match self.source.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Source(error)),
            }
        }
        Ok(())
    }

    /// Skips whitespace and returns the next byte without consuming it.
    fn next_byte(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            self.ensure(1)?;
            match self.window().first() {
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                other => return Ok(other.copied()),
            }
        }
    }

    fn wrong(&self, what: &str) -> ReadError {
        LenientError::NotJson(format!("{what} at byte {}", self.passed + self.at)).into()
    }

    fn value(&mut self, depth: usize, visitor: &mut impl Visitor) -> Result<(), ReadError> {
        match self.next_byte()? {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                self.skip_nested()?;
                Ok(visitor.text(TOO_DEEP, true)?)
            }
            Some(b'{') => self.container(Container::Object, depth, visitor),
            Some(b'[') => self.container(Container::List, depth, visitor),
            Some(b'"') => {
                self.at += 1;
                self.text(|piece, is_last| visitor.text(piece, is_last))
            }
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => self.number(visitor),
            Some(b't' | b'f' | b'n') => self.word(visitor),
            Some(_) => Err(self.wrong("a value is expected")),
            None => Err(self.wrong("a value is missing")),
        }
    }

    fn container(
        &mut self,
        container: Container,
        depth: usize,
        visitor: &mut impl Visitor,
    ) -> Result<(), ReadError> {
        let closing = if container == Container::Object { b'}' } else { b']' };
        self.at += 1;
        visitor.begin(container)?;
        let mut is_closed = self.next_byte()? == Some(closing);
        if is_closed {
            self.at += 1;
        }
        while !is_closed {
            if container == Container::Object {
                self.name(visitor)?;
            }
            self.value(depth + 1, visitor)?;
            is_closed = self.ends(closing)?;
        }
        Ok(visitor.end(container)?)
    }

    /// Parses the name of a member and the colon after it.
    fn name(&mut self, visitor: &mut impl Visitor) -> Result<(), ReadError> {
        self.expect(b'"', "a name is expected")?;
        // A name that is longer than a piece is truncated to its first piece.
        let mut name = None;
        self.text(|piece, _| {
            name.get_or_insert_with(|| piece.to_owned());
            Ok(())
        })?;
        visitor.name(&name.unwrap_or_default())?;
        self.expect(b':', "`:` is expected")
    }

    fn expect(&mut self, byte: u8, problem: &str) -> Result<(), ReadError> {
        if self.next_byte()? != Some(byte) {
            return Err(self.wrong(problem));
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a comma or the end of a container. Returns true for the end.
    fn ends(&mut self, closing: u8) -> Result<bool, ReadError> {
        match self.next_byte()? {
            Some(byte) if byte == closing || byte == b',' => {
                self.at += 1;
                Ok(byte == closing)
            }
            _ => Err(self.wrong("`,` or an end is expected")),
        }
    }

    /// Skips a container that is nested too deeply.
    fn skip_nested(&mut self) -> Result<(), ReadError> {
        let mut open = 0_usize;
        loop {
            match self.next_byte()? {
                Some(b'"') => {
                    self.at += 1;
                    self.text(|_, _| Ok(()))?;
                    continue;
                }
                Some(b'{' | b'[') => open += 1,
                Some(b'}' | b']') => open -= 1,
                Some(_) => {}
                None => return Err(self.wrong("an end is missing")),
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Parses a text after its opening quote and passes it on in pieces.
    fn text(&mut self, mut pass_on: impl FnMut(&str, bool) -> io::Result<()>) -> Result<(), ReadError> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        loop {
            self.ensure(1)?;
            let window = self.window();
            if window.is_empty() {
                return Err(self.wrong("a text has no end"));
            }
            let room = PIECE_BYTES - text.len();
            let window = window.get(..room).unwrap_or(window);
            let special = window.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            let plain = special.unwrap_or(window.len());
            text.extend_from_slice(window.get(..plain).unwrap_or_default());
            let ends = special.is_some_and(|at| window.get(at) == Some(&b'"'));
            self.at += plain;
            if ends {
                self.at += 1;
                pass_on(&String::from_utf8_lossy(&text), true)?;
                self.text = text;
                return Ok(());
            }
            if special.is_some() {
                self.escape(&mut text)?;
            }
            if text.len() >= PIECE_BYTES {
                let whole = complete(&text);
                let piece = String::from_utf8_lossy(text.get(..whole).unwrap_or_default());
                pass_on(&piece, false)?;
                text.drain(..whole);
            }
        }
    }

    /// Parses an escape. An invalid escape is kept as written; half of a surrogate pair becomes U+FFFD.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), ReadError> {
        self.ensure(MAX_ESCAPE_BYTES)?;
        let (character, used) = match self.window() {
            [_, simple @ (b'"' | b'\\' | b'/'), ..] => (char::from(*simple), 2),
            [_, b'b', ..] => ('\u{8}', 2),
            [_, b'f', ..] => ('\u{c}', 2),
            [_, b'n', ..] => ('\n', 2),
            [_, b'r', ..] => ('\r', 2),
            [_, b't', ..] => ('\t', 2),
            [_, rest @ ..] => unicode(rest).map_or(('\\', 1), |(character, used)| (character, used + 1)),
            [] => ('\\', 1),
        };
        self.at += used.min(self.end - self.at);
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn number(&mut self, visitor: &mut impl Visitor) -> Result<(), ReadError> {
        self.ensure("-Infinity".len())?;
        if let Some(word) = NON_FINITE.into_iter().find(|word| self.window().starts_with(word.as_bytes())) {
            self.at += word.len();
            return Ok(visitor.text(word, true)?);
        }
        let mut digits = String::new();
        let mut is_cut = false;
        loop {
            self.ensure(1)?;
            let Some(byte) = self.window().first().filter(|byte| is_of_number(**byte)) else { break };
            if digits.len() < PIECE_BYTES {
                digits.push(char::from(*byte));
            } else {
                is_cut = true;
            }
            self.at += 1;
        }
        if !is_cut && serde_json::from_str::<serde_json::Number>(&digits).is_ok() {
            return Ok(visitor.literal(&digits)?);
        }
        // A number out of range is kept as text.
        if is_cut || digits.parse::<f64>().is_ok_and(f64::is_infinite) {
            return Ok(visitor.text(&digits, true)?);
        }
        Err(self.wrong("a number is no number"))
    }

    fn word(&mut self, visitor: &mut impl Visitor) -> Result<(), ReadError> {
        self.ensure("false".len())?;
        let found =
            ["true", "false", "null"].into_iter().find(|word| self.window().starts_with(word.as_bytes()));
        let word = found.ok_or_else(|| self.wrong("a value is expected"))?;
        self.at += word.len();
        Ok(visitor.literal(word)?)
    }
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the length of a text without an incomplete character at its end.
fn complete(text: &[u8]) -> usize {
    let is_begun = |from: usize| {
        let begun = std::str::from_utf8(text.get(from..).unwrap_or_default());
        begun.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let last = text.len().saturating_sub(3)..text.len();
    last.into_iter().find(|from| is_begun(*from)).unwrap_or(text.len())
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
