//! Tokens of JSON text and escapes of strings.
//!
//! Owns where a token ends and which character an escape stands for. The readers decide which order of tokens is valid.

use super::error::JsonErrorKind;

/// Length of `\u` and four digits.
const UNIT_ESCAPE_BYTES: usize = r"\ud83d".len();

/// Lists the brackets, commas, colons, strings with their quotes, and other values of a text that may be damaged. Ends
/// before a token that may be incomplete.
pub fn json_tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let (token, after) = rest.split_at(token_length(rest)?);
        rest = after;
        Some(token)
    })
}

/// Returns the length of the token that a text starts with; none if the text ends before it is certain.
#[inline]
pub(super) fn token_length(text: &[u8]) -> Option<usize> {
    let ends_value = |byte: &u8| {
        matches!(
            byte,
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\x0C' | b'\r'
        )
    };
    match text.first()? {
        b'"' => string_length(text),
        b'{' | b'}' | b'[' | b']' | b',' | b':' => Some(1),
        _ => Some(1 + text[1..].iter().position(ends_value)?),
    }
}

/// Returns the length of the string that a text starts with, with its quotes; none if it has no end.
pub(super) fn string_length(text: &[u8]) -> Option<usize> {
    let mut position = 1;
    loop {
        position += plain_length(text.get(position..)?);
        match text.get(position)? {
            b'"' => return Some(position + 1),
            // The byte after a backslash is part of the escape, also if it is a quote.
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

/// Counts the bytes before the first quote, backslash or control character, eight at a time.
pub fn plain_length(bytes: &[u8]) -> usize {
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

/// Reads the escape that a text starts with. Returns the character and the length of the escape, or the error and its
/// position.
pub(super) fn read_escape(text: &[u8]) -> Result<(char, usize), (JsonErrorKind, usize)> {
    let character = match text.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return read_unicode_escape(text),
        Some(_) => return Err((JsonErrorKind::Syntax("an escape character"), 1)),
        None => return Err((JsonErrorKind::Truncated, 1)),
    };
    Ok((character, 2))
}

/// Reads the escape that a text starts with and repairs it: an invalid escape is kept as written, half of a surrogate pair
/// becomes U+FFFD.
pub fn repair_escape(text: &[u8]) -> (char, usize) {
    read_escape(text).unwrap_or_else(|(kind, position)| {
        let is_half = kind == JsonErrorKind::LoneSurrogate || position >= UNIT_ESCAPE_BYTES;
        if is_half { (char::REPLACEMENT_CHARACTER, UNIT_ESCAPE_BYTES) } else { ('\\', 1) }
    })
}

/// Reads a `\u` escape, with its second half if it has one.
fn read_unicode_escape(text: &[u8]) -> Result<(char, usize), (JsonErrorKind, usize)> {
    let lone = (JsonErrorKind::LoneSurrogate, 0);
    let unit = code_unit(text)?;
    if !(0xD800..0xDC00).contains(&unit) {
        return char::from_u32(unit).map(|character| (character, UNIT_ESCAPE_BYTES)).ok_or(lone);
    }
    let second = &text[UNIT_ESCAPE_BYTES..];
    if !second.starts_with(&br"\u"[..second.len().min(2)]) {
        return Err(lone);
    }
    let low = code_unit(second).map_err(|(kind, position)| (kind, UNIT_ESCAPE_BYTES + position))?;
    if !(0xDC00..0xE000).contains(&low) {
        return Err(lone);
    }
    let character = char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
    character.map(|character| (character, 2 * UNIT_ESCAPE_BYTES)).ok_or(lone)
}

/// Reads the four digits after `\u`.
fn code_unit(text: &[u8]) -> Result<u32, (JsonErrorKind, usize)> {
    let mut unit = 0;
    for position in r"\u".len()..UNIT_ESCAPE_BYTES {
        let byte = text.get(position).ok_or((JsonErrorKind::Truncated, text.len()))?;
        let digit = char::from(*byte).to_digit(16);
        unit = unit << 4 | digit.ok_or((JsonErrorKind::Syntax("four hexadecimal digits"), position))?;
    }
    Ok(unit)
}
