//! Authenticated encryption of stored bytes. Sealing means encrypting, opening means decrypting.
//!
//! Owns the format of sealed bytes and the keys in memory. Does not own where keys come from (the binary's `keys`),
//! which bytes are sealed, or what the associated data contains.
//!
//! A sealed value consists of `BSL1`, 8 bytes of key id, 24 bytes of nonce, then XChaCha20-Poly1305 ciphertext and tag.
//! The first 36 bytes are authenticated too, in front of the caller's associated data.

use std::fmt;
use std::str::FromStr;

use baton_core::Sha256Hash;
use chacha20poly1305::{AeadInOut, Key, KeyInit, Tag, XChaCha20Poly1305, XNonce};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Size of a nonce. At this size random nonces do not repeat.
pub const NONCE_BYTES: usize = 24;
/// Number of bytes that sealing adds.
pub const SEAL_OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;

const MAGIC: &[u8; 4] = b"BSL1";
const KEY_ID_BYTES: usize = 8;
const HEADER_BYTES: usize = MAGIC.len() + KEY_ID_BYTES + NONCE_BYTES;
const TAG_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// Domain separation: a key id never equals a hash of the key that is used for another purpose.
const KEY_ID_DOMAIN: &[u8; 21] = b"baton.seal.key-id.v1\0";

/// Why sealed bytes cannot be opened. No error carries plaintext.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The bytes do not start with the magic number of sealed bytes.
    #[error("the bytes are not sealed")]
    NotSealed,
    /// The bytes were sealed with a key that is not in the ring.
    #[error("the bytes are sealed with key {key_id}, which is not available")]
    UnknownKey {
        /// Id of the required key.
        key_id: KeyId,
    },
    /// The bytes were changed or truncated, or the associated data differs.
    #[error("the sealed bytes are damaged or belong to another record")]
    Damaged,
}

/// The system provided no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system returned no random bytes")]
pub struct NoRandomness {
    source: getrandom::Error,
}

/// The text is not a key id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key id is 16 lowercase hexadecimal digits")]
pub struct KeyIdError;

/// Identifies a key without revealing it: the first 16 hexadecimal digits of a hash of the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; KEY_ID_BYTES]);

impl KeyId {
    fn of(key: &[u8; KEY_BYTES]) -> Self {
        let mut input = Zeroizing::new([0; KEY_ID_DOMAIN.len() + KEY_BYTES]);
        let (domain, rest) = input.split_at_mut(KEY_ID_DOMAIN.len());
        domain.copy_from_slice(KEY_ID_DOMAIN);
        rest.copy_from_slice(key);
        let [a, b, c, d, e, f, g, h, ..] = *Sha256Hash::of(input.as_slice()).as_bytes();
        Self([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 2 * KEY_ID_BYTES || !text.bytes().all(is_digit) {
            return Err(KeyIdError);
        }
        u64::from_str_radix(text, 16).map(|id| Self(id.to_be_bytes())).map_err(|_| KeyIdError)
    }
}

/// A 256-bit key. It is compared in constant time, never printed, and erased when dropped.
#[derive(Clone)]
pub struct SecretKey {
    /// Boxed, so that moving the key does not leave copies in memory.
    bytes: Box<[u8; KEY_BYTES]>,
    id: KeyId,
}

impl SecretKey {
    /// Copies the bytes. The caller must erase the original.
    pub fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        Self { bytes: Box::new(*bytes), id: KeyId::of(bytes) }
    }

    /// Creates a key from the system's random number generator.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random bytes.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|source| NoRandomness { source })?;
        Ok(Self::new(&bytes))
    }

    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the key itself, which must be written only to the key file.
    pub const fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let key: &Key = self.bytes.as_ref().into();
        XChaCha20Poly1305::new(key)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.bytes.as_mut_slice().zeroize();
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes.as_slice().ct_eq(other.bytes.as_slice()).into()
    }
}

impl Eq for SecretKey {}

/// Prints only the id.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An ordered list of at least one key. The first key seals; every key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing {
    current: SecretKey,
    older: Vec<SecretKey>,
}

impl KeyRing {
    /// Creates a ring from keys in order, the current one first, without duplicates. `None` if there are no keys.
    pub fn new(keys: Vec<SecretKey>) -> Option<Self> {
        let mut keys = keys.into_iter();
        let mut ring = Self::from(keys.next()?);
        for key in keys {
            if !ring.keys().any(|known| *known == key) {
                ring.older.push(key);
            }
        }
        Some(ring)
    }

    /// Makes `fresh` the current key and keeps all others for opening.
    #[must_use]
    pub fn rotated(self, fresh: SecretKey) -> Self {
        let mut ring = Self::from(fresh);
        let known = std::iter::once(self.current).chain(self.older);
        ring.older = known.filter(|key| *key != ring.current).collect();
        ring
    }

    /// Removes older keys for which `is_needed` returns false. The current key is never removed.
    #[must_use]
    pub fn without_unneeded(mut self, is_needed: impl Fn(KeyId) -> bool) -> Self {
        self.older.retain(|key| is_needed(key.id()));
        self
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &SecretKey> {
        std::iter::once(&self.current).chain(&self.older)
    }

    /// Returns the id of the key that seals.
    pub const fn current_id(&self) -> KeyId {
        self.current.id()
    }

    /// Returns the ids of all keys in order.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys().map(SecretKey::id)
    }

    /// Returns true if the ring contains this key.
    pub fn has(&self, key_id: &KeyId) -> bool {
        self.ids().any(|id| id == *key_id)
    }

    /// Seals with the current key. The nonce must never have been used with this key; use [`random_nonce`].
    ///
    /// # Panics
    ///
    /// Panics if `plain` is longer than the limit of the cipher, which is 256 GiB.
    #[expect(clippy::expect_used, reason = "nothing near 256 GiB is ever held in memory")]
    pub fn seal(&self, plain: &[u8], associated: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(plain.len() + SEAL_OVERHEAD_BYTES);
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&self.current_id().0);
        sealed.extend_from_slice(&nonce);
        let authenticated = [sealed.as_slice(), associated].concat();
        sealed.extend_from_slice(plain);
        let (_, body) = sealed.split_at_mut(HEADER_BYTES);
        let tag = self
            .current
            .cipher()
            .encrypt_inout_detached(&XNonce::from(nonce), &authenticated, body.into())
            .expect("plain bytes fit the cipher");
        sealed.extend_from_slice(&tag);
        sealed
    }

    /// Opens bytes that [`seal`](Self::seal) returned for one of these keys and the same associated data.
    ///
    /// # Errors
    ///
    /// See [`SealError`]. Nothing is decrypted before all bytes are authenticated.
    pub fn open(&self, sealed: &[u8], associated: &[u8]) -> Result<Vec<u8>, SealError> {
        if !is_sealed(sealed) {
            return Err(SealError::NotSealed);
        }
        let key_id = sealed_with(sealed).ok_or(SealError::Damaged)?;
        let (header, rest) = sealed.split_at_checked(HEADER_BYTES).ok_or(SealError::Damaged)?;
        let (body, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(SealError::Damaged)?;
        let (_, nonce) = header.split_last_chunk::<NONCE_BYTES>().ok_or(SealError::Damaged)?;
        let key = self.keys().find(|key| key.id() == key_id).ok_or(SealError::UnknownKey { key_id })?;
        let authenticated = [header, associated].concat();
        let mut plain = body.to_vec();
        key.cipher()
            .decrypt_inout_detached(
                &XNonce::from(*nonce),
                &authenticated,
                plain.as_mut_slice().into(),
                &Tag::from(*tag),
            )
            .map_err(|_| SealError::Damaged)?;
        Ok(plain)
    }
}

impl From<SecretKey> for KeyRing {
    fn from(current: SecretKey) -> Self {
        Self { current, older: Vec::new() }
    }
}

/// Returns true if bytes start with the magic number of sealed bytes. Only opening them proves that they are sealed.
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the id of the key that sealed the bytes; `None` if they are not sealed or too short.
pub fn sealed_with(bytes: &[u8]) -> Option<KeyId> {
    bytes.strip_prefix(MAGIC)?.first_chunk().map(|id| KeyId(*id))
}

/// Creates a nonce from the system's random number generator.
///
/// # Errors
///
/// Fails if the system provides no random bytes.
pub fn random_nonce() -> Result<[u8; NONCE_BYTES], NoRandomness> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|source| NoRandomness { source })?;
    Ok(nonce)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
