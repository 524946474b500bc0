//! The text of a diff.

use baton_core::Sha256Hash;

/// A complete, applicable patch as written by git (`--binary --full-index`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch(Vec<u8>);

impl Patch {
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, which need not be UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if there are no differences.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hash for comparing patches, see [`normalized_patch_hash`].
    pub fn normalized_hash(&self) -> Sha256Hash {
        normalized_patch_hash(&self.0)
    }
}

/// Hashes a patch with all line endings as LF and one at the end, so that the hash is the same on every platform.
pub fn normalized_patch_hash(patch: &[u8]) -> Sha256Hash {
    let mut normalized = Vec::with_capacity(patch.len() + 1);
    let mut bytes = patch.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'\r' {
            bytes.next_if_eq(&b'\n');
            normalized.push(b'\n');
        } else {
            normalized.push(byte);
        }
    }
    if !normalized.is_empty() && !normalized.ends_with(b"\n") {
        normalized.push(b'\n');
    }
    Sha256Hash::of(&normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_do_not_change_the_hash() {
        let expected = Sha256Hash::of(b"a\n\nb\n");
        for patch in ["a\n\nb\n", "a\n\nb", "a\r\n\r\nb\r\n", "a\r\rb\r", "a\n\r\nb", "a\r\n\nb\n"] {
            assert_eq!(normalized_patch_hash(patch.as_bytes()), expected, "{patch:?}");
        }
        assert_eq!(normalized_patch_hash(b""), Sha256Hash::of(b""));
        assert_ne!(normalized_patch_hash(b"a\nb\n"), expected);
    }
}
