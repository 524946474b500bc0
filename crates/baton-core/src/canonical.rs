//! Canonical JSON (RFC 8785) and the SHA-256 hash of it.
//!
//! Owns the canonical text and hash of a JSON value, and rejects values that cannot be represented without loss. It
//! does not parse untrusted JSON (see `json`) or decide what is hashed.

use std::cmp::Ordering;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::json::{plain_length, prepend_index, prepend_key};
use crate::schema::inline_schema;

/// Initial capacity of the text of a value.
const INITIAL_BYTES: usize = 256;
/// Every integer up to this magnitude is exact as a 64-bit float.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// An integer that has no canonical text: RFC 8785 writes every number as a 64-bit float, which would change its
/// digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("integer {number}{} would be rounded by RFC 8785; send it as a string", at_path(path))]
pub struct RoundedInteger {
    /// Path of the integer, such as `payload.count`; empty if it is the whole value.
    pub path: String,
    /// The integer as given.
    pub number: String,
}

/// Reason why a text is not a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("hash must be 64 lowercase hexadecimal digits")]
pub struct HashError;

/// Writes a value as RFC 8785 canonical JSON: no whitespace, sorted keys, one form per number.
///
/// Unless nested too deeply, the text can be parsed with [`read_strict`](crate::read_strict), and its canonical form is
/// the text itself.
///
/// # Errors
///
/// Returns the first integer whose digits would change.
pub fn canonicalize(value: &Value) -> Result<String, RoundedInteger> {
    let mut text = String::with_capacity(INITIAL_BYTES);
    write_value(&mut text, value)?;
    Ok(text)
}

/// Writes a value. Only fractions go through the general serializer, which buffers every entry of every object.
fn write_value(text: &mut String, value: &Value) -> Result<(), RoundedInteger> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number)?,
        Value::String(string) => write_string(text, string),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, element).map_err(|mut rounded| {
                    prepend_index(&mut rounded.path, index);
                    rounded
                })?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            if members.keys().all(|key| is_below_surrogates(key)) {
                write_members(text, members.iter())?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(one, _), (other, _)| compare_keys(one, other));
                write_members(text, sorted.into_iter())?;
            }
            text.push('}');
        }
    }
    Ok(())
}

/// Writes the members of an object in the given order.
fn write_members<'a>(
    text: &mut String,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), RoundedInteger> {
    for (index, (key, member)) in members.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(text, key);
        text.push(':');
        write_value(text, member).map_err(|mut rounded| {
            prepend_key(&mut rounded.path, key);
            rounded
        })?;
    }
    Ok(())
}

/// Writes a string with the escapes of RFC 8785.
pub fn write_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    loop {
        let (plain, after) = rest.split_at(plain_length(rest.as_bytes()));
        text.push_str(plain);
        let mut characters = after.chars();
        let Some(special) = characters.next() else { break };
        match special {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            control => text.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
        rest = characters.as_str();
    }
    text.push('"');
}

/// Writes a number as RFC 8785 does.
///
/// # Errors
///
/// Fails for an integer whose digits would change.
pub(crate) fn write_number(text: &mut String, number: &Number) -> Result<(), RoundedInteger> {
    let digits = number.to_string();
    let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    if let Some(..=MAX_SAFE_INTEGER) = magnitude {
        text.push_str(&digits);
        return Ok(());
    }
    // Compare digits, not values: 2^63 is exact as a float, but RFC 8785 writes it as 9223372036854776000, which is
    // another integer.
    match serde_json_canonicalizer::to_string(number) {
        Ok(canonical) if magnitude.is_none() || canonical == digits => {
            text.push_str(&canonical);
            Ok(())
        }
        _ => Err(RoundedInteger { path: String::new(), number: digits }),
    }
}

/// Compares two keys by their UTF-16 units, as RFC 8785 orders them.
pub fn compare_keys(one: &str, other: &str) -> Ordering {
    if is_below_surrogates(one) && is_below_surrogates(other) {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

/// Returns true if a key has the same order by UTF-8 bytes, as in maps, and by UTF-16 units, as RFC 8785 requires. The
/// orders differ only for characters from U+E000.
fn is_below_surrogates(key: &str) -> bool {
    // The UTF-8 encoding of U+E000 and later characters starts with 0xEE or more.
    key.bytes().all(|byte| byte < 0xEE)
}

fn at_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at {path}") }
}

/// A SHA-256 hash, written as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Sha256Hash([u8; 32]);

impl Sha256Hash {
    /// Compares in constant time, for hashes of secrets.
    pub fn eq_constant_time(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }

    /// Hashes the bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes the concatenation of several parts.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        parts.into_iter().for_each(|part| hasher.update(part));
        Self(hasher.finalize().into())
    }

    /// Hashes everything that a reader returns.
    pub fn of_all(mut source: impl Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(read) => hasher.update(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub const fn from_bytes(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Returns the bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut hash = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err(HashError);
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
        }
        Ok(Self(hash))
    }
}

/// Uppercase is rejected so that a hash has one form and can be compared as text.
fn hex_digit(digit: u8) -> Result<u8, HashError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(HashError),
    }
}

impl TryFrom<String> for Sha256Hash {
    type Error = HashError;

    fn try_from(text: String) -> Result<Self, HashError> {
        text.parse()
    }
}

impl From<Sha256Hash> for String {
    fn from(hash: Sha256Hash) -> Self {
        hash.to_string()
    }
}

inline_schema!(Sha256Hash, {
    "type": "string",
    "pattern": "^[0-9a-f]{64}$",
    "description": "A SHA-256 hash as 64 lowercase hexadecimal digits.",
});

/// A canonical JSON text together with its hash; the two cannot disagree.
#[derive(Clone, PartialEq, Eq)]
pub struct Canonical {
    text: String,
    hash: Sha256Hash,
}

impl Canonical {
    /// Canonicalises and hashes a value.
    ///
    /// # Errors
    ///
    /// Fails like [`canonicalize`].
    pub fn of(value: &Value) -> Result<Self, RoundedInteger> {
        canonicalize(value).map(Self::of_text)
    }

    /// Hashes text that is already canonical.
    pub fn of_text(text: String) -> Self {
        let hash = Sha256Hash::of(text.as_bytes());
        Self { text, hash }
    }

    /// Returns the canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the hash of the canonical text.
    pub const fn hash(&self) -> Sha256Hash {
        self.hash
    }

    /// Returns the length of the canonical text in bytes.
    pub const fn size_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the canonical text without copying it.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Shows only hash and size, because the text must not appear in logs.
impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonical")
            .field("hash", &self.hash)
            .field("size_bytes", &self.size_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
pub(crate) mod tests;
