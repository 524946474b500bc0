//! Text format of keys: one per line in hexadecimal or base64, or a single key as 32 raw bytes.
//!
//! Owns parsing and writing the format. Does not own the storage. Errors never contain parts of a key.

use std::fmt::Write;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use baton_store::{KeyRing, SecretKey};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const HEX_DIGITS: usize = 2 * KEY_BYTES;
/// Length of 32 bytes in base64, without and with padding.
const BASE64_CHARACTERS: std::ops::RangeInclusive<usize> = 43..=44;
const HEADING: &str =
    "# Encryption keys of Baton. The first key encrypts, all keys decrypt. Keep a copy in a safe place.\n";

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Error of parsing a list of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyTextError {
    /// Only comments and empty lines.
    #[error("the file contains no key")]
    Empty,
    /// Neither text nor one raw key.
    #[error("{length_bytes} bytes that are not text; a binary key has exactly 32 bytes")]
    NotText { length_bytes: usize },
    /// 32 printable characters, which have less than 256 bits of entropy.
    #[error("32 characters of text, which is too short for a key")]
    Typed,
    /// A line is not a key.
    #[error("line {line} is not a key: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        problem: LineProblem,
    },
    /// A key occurs twice.
    #[error("line {line} repeats the key of line {first}")]
    Repeated {
        /// The line, from 1.
        line: usize,
        /// The first line with this key, from 1.
        first: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineProblem {
    /// The length matches neither hexadecimal nor base64.
    #[error("{characters} characters instead of 64 hexadecimal digits or 43 to 44 of base64")]
    Length { characters: usize },
    /// Length of a hexadecimal key, but with other characters.
    #[error("64 characters, but not all of them hexadecimal digits")]
    NotHex,
    /// Length of a base64 key, but not base64.
    #[error("as long as base64 of a key, but not base64")]
    NotBase64,
    /// All bytes of the key are the same.
    #[error("a placeholder, all of its bytes are the same")]
    Placeholder,
}

impl KeyTextError {
    /// Returns a hint for the user.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::Typed | Self::Line { problem: LineProblem::Placeholder, .. } => {
                "make a key with: openssl rand -hex 32"
            }
            Self::NotText { .. } => "store exactly 32 random bytes, or keys as text, one per line",
            Self::Line { .. } => {
                "write each key as the 64 digits of: openssl rand -hex 32; comments begin with #"
            }
            Self::Repeated { .. } => "remove one of the two lines; the first key in the list encrypts",
        }
    }
}

/// Parses a list of keys.
pub(crate) fn parse(bytes: &[u8]) -> Result<KeyRing, KeyTextError> {
    if let Ok(key) = <&[u8; KEY_BYTES]>::try_from(bytes) {
        return parse_raw(key).map(KeyRing::from);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KeyTextError::NotText { length_bytes: bytes.len() })?;
    let mut keys: Vec<(usize, SecretKey)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let (content, _comment) = content.split_once('#').unwrap_or((content, ""));
        let content = content.trim();
        if content.is_empty() {
            continue;
        }
        let key = parse_line(content).map_err(|problem| KeyTextError::Line { line, problem })?;
        if let Some((first, _)) = keys.iter().find(|(_, known)| *known == key) {
            return Err(KeyTextError::Repeated { line, first: *first });
        }
        keys.push((line, key));
    }
    KeyRing::new(keys.into_iter().map(|(_, key)| key).collect()).ok_or(KeyTextError::Empty)
}

/// Parses 32 raw bytes. Printable text is rejected: it may be one half of a hexadecimal key.
fn parse_raw(bytes: &[u8; KEY_BYTES]) -> Result<SecretKey, KeyTextError> {
    if bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        return Err(KeyTextError::Typed);
    }
    checked(bytes).map_err(|problem| KeyTextError::Line { line: 1, problem })
}

fn parse_line(text: &str) -> Result<SecretKey, LineProblem> {
    let characters = text.chars().count();
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if characters == HEX_DIGITS {
        decode_hex(text, &mut key).ok_or(LineProblem::NotHex)?;
    } else if BASE64_CHARACTERS.contains(&characters) {
        decode_base64(text, &mut key).ok_or(LineProblem::NotBase64)?;
    } else {
        return Err(LineProblem::Length { characters });
    }
    checked(&key)
}

fn checked(key: &[u8; KEY_BYTES]) -> Result<SecretKey, LineProblem> {
    let [first, rest @ ..] = key;
    if rest.iter().all(|byte| byte == first) {
        return Err(LineProblem::Placeholder);
    }
    Ok(SecretKey::new(key))
}

fn decode_hex(text: &str, key: &mut [u8; KEY_BYTES]) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != KEY_BYTES {
        return None;
    }
    for (byte, [high, low]) in key.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(())
}

fn decode_base64(text: &str, key: &mut [u8; KEY_BYTES]) -> Option<()> {
    let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    // Larger than a key, because the decoder writes whole groups.
    let mut decoded = Zeroizing::new([0; KEY_BYTES + 4]);
    let length = engine.decode_slice(text, decoded.as_mut_slice()).ok()?;
    let bytes: &[u8; KEY_BYTES] = decoded.get(..length)?.try_into().ok()?;
    *key = *bytes;
    Some(())
}

/// Formats the keys, one per line in hexadecimal.
pub(crate) fn write(keys: &KeyRing) -> Zeroizing<String> {
    let length = HEADING.len() + keys.keys().count() * (HEX_DIGITS + 1);
    // The exact capacity: a reallocation would leave copies of the keys in memory.
    let mut text = Zeroizing::new(String::with_capacity(length));
    text.push_str(HEADING);
    for key in keys.keys() {
        for byte in key.expose() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
