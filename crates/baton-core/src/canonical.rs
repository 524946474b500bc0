//! Canonical JSON (RFC 8785) and the SHA-256 hash of it.
//!
//! Owns the one text and the one hash that stand for a JSON value, and refuses values that have none
//! without loss. It does not read untrusted JSON (see `json`) or decide what is hashed.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::json::{prepend_index, prepend_key};

/// Where the text of a value begins to grow.
const INITIAL_BYTES: usize = 256;
/// Every integer up to this magnitude is a 64-bit float and is written with its own digits.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// Why a value has no canonical text.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// RFC 8785 writes every number as a 64-bit float, which would change this integer's digits.
    #[error("integer {number}{} would be rounded by RFC 8785; send it as a string", at_path(path))]
    IntegerWouldRound {
        /// Where the integer is, like `payload.count`; empty when it is the whole value.
        path: String,
        /// The integer as it was given.
        number: String,
    },
    /// The value could not be written.
    #[error("value cannot be written as canonical JSON")]
    Write {
        /// What the serializer reported.
        source: serde_json::Error,
    },
}

/// Why a text is not a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("hash must be 64 lowercase hexadecimal digits")]
pub struct HashError;

/// Writes a value as RFC 8785 canonical JSON: no whitespace, sorted keys, one spelling per number.
///
/// Unless it is nested too deep, the text reads back with [`read_strict`](crate::read_strict), and its
/// canonical form is itself.
///
/// # Errors
///
/// Returns [`CanonicalError::IntegerWouldRound`] for the first integer whose digits would change.
pub fn canonicalize(value: &Value) -> Result<String, CanonicalError> {
    if let Some(RoundedInteger { path, number }) = find_rounded_integer(value)? {
        return Err(CanonicalError::IntegerWouldRound { path, number });
    }
    let mut text = Vec::with_capacity(INITIAL_BYTES);
    write_value(&mut text, value)?;
    String::from_utf8(text)
        .map_err(|error| CanonicalError::Write { source: serde::ser::Error::custom(error) })
}

/// Writes a value. Only what needs care goes through the general serializer, which buffers every entry of every object.
fn write_value(text: &mut Vec<u8>, value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Null => text.extend_from_slice(b"null"),
        Value::Bool(true) => text.extend_from_slice(b"true"),
        Value::Bool(false) => text.extend_from_slice(b"false"),
        Value::Number(number) if number.is_f64() => {
            text.extend_from_slice(write_canonical(number)?.as_bytes());
        }
        // Integers were checked: their digits are those of the float.
        Value::Number(number) => text.extend_from_slice(number.to_string().as_bytes()),
        Value::String(string) => write_string(text, string)?,
        Value::Array(elements) => {
            text.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_value(text, element)?;
            }
            text.push(b']');
        }
        Value::Object(members) => {
            text.push(b'{');
            let mut is_first = true;
            let mut write = |(key, member): (&String, &Value)| {
                if !std::mem::take(&mut is_first) {
                    text.push(b',');
                }
                write_string(text, key)?;
                text.push(b':');
                write_value(text, member)
            };
            if members.keys().all(|key| is_below_surrogates(key)) {
                members.iter().try_for_each(&mut write)?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
                sorted.into_iter().try_for_each(&mut write)?;
            }
            text.push(b'}');
        }
    }
    Ok(())
}

/// The general serializer escapes strings as RFC 8785 does.
fn write_string(text: &mut Vec<u8>, string: &str) -> Result<(), CanonicalError> {
    serde_json::to_writer(text, string).map_err(|source| CanonicalError::Write { source })
}

/// Tells whether a key sorts by its UTF-8 bytes, as maps have it, like it does by its UTF-16 units, as RFC 8785 wants:
/// the two differ only from the surrogates on.
fn is_below_surrogates(key: &str) -> bool {
    // U+E000 and all after it begin with 0xEE or more.
    key.bytes().all(|byte| byte < 0xEE)
}

struct RoundedInteger {
    path: String,
    number: String,
}

fn find_rounded_integer(value: &Value) -> Result<Option<RoundedInteger>, CanonicalError> {
    match value {
        Value::Number(number) if is_rounded_integer(number)? => {
            Ok(Some(RoundedInteger { path: String::new(), number: number.to_string() }))
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if let Some(mut found) = find_rounded_integer(element)? {
                    prepend_index(&mut found.path, index);
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        Value::Object(members) => {
            for (key, member) in members {
                if let Some(mut found) = find_rounded_integer(member)? {
                    prepend_key(&mut found.path, key);
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(None),
    }
}

/// Compares digits, not values: 2^63 is exactly a float, and yet RFC 8785 writes it as
/// 9223372036854776000, which reads back as another integer.
fn is_rounded_integer(number: &Number) -> Result<bool, CanonicalError> {
    let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    match magnitude {
        None | Some(..=MAX_SAFE_INTEGER) => Ok(false),
        Some(_) => Ok(write_canonical(number)? != number.to_string()),
    }
}

fn write_canonical(value: &impl Serialize) -> Result<String, CanonicalError> {
    serde_json_canonicalizer::to_string(value).map_err(|source| CanonicalError::Write { source })
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
    pub fn fits(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }

    /// Hashes the bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes some bytes one after the other.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        parts.into_iter().for_each(|part| hasher.update(part));
        Self(hasher.finalize().into())
    }

    /// Hashes what is read to its end.
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

    /// Takes a hash that was computed piece by piece.
    pub const fn from_bytes(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Gives the hash itself, not its digits.
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

/// Uppercase is refused so that a hash has one spelling and can be compared as text.
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

impl JsonSchema for Sha256Hash {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sha256Hash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "A SHA-256 hash as 64 lowercase hexadecimal digits.",
        })
    }
}

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
    /// Fails as [`canonicalize`] does.
    pub fn of(value: &Value) -> Result<Self, CanonicalError> {
        let text = canonicalize(value)?;
        let hash = Sha256Hash::of(text.as_bytes());
        Ok(Self { text, hash })
    }

    /// Gives the canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Gives the hash of the canonical text.
    pub const fn hash(&self) -> Sha256Hash {
        self.hash
    }

    /// Gives the length of the canonical text in bytes.
    pub const fn size_bytes(&self) -> usize {
        self.text.len()
    }

    /// Gives the canonical text without a copy.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Shows hash and size only: the text is payload, and payload stays out of logs.
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
mod tests;
