//! SHA-256 hashes, and canonical JSON together with its hash.
//!
//! Does not own canonical form (see `json`) or what is hashed.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::json::{RoundedInteger, canonicalize};
use crate::schema::inline_schema;

/// Reason why a text is not a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("hash must be 64 lowercase hexadecimal digits")]
pub struct HashError;

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
