//! Git objects: formats, ids, modes, and the computation of ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha1::Digest as _;

/// Hash function of a repository's object ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectFormat {
    /// 20 bytes; used by nearly every repository.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl ObjectFormat {
    /// Returns the number of bytes of an id.
    pub(crate) const fn id_length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// Returns the id of the empty tree, which git knows without storing it.
    pub(crate) fn empty_tree(self) -> ObjectId {
        self.id_of("tree", b"")
    }

    /// Returns the id of an object in memory.
    pub(crate) fn id_of(self, kind: &str, content: &[u8]) -> ObjectId {
        let mut hasher = ObjectHasher::new(self, kind, content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }
}

/// Id of an object: a commit, a tree or the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ObjectId {
    format: ObjectFormat,
    bytes: [u8; 32],
}

/// The text is not an object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 40 or 64 lowercase hexadecimal digits")]
pub struct ObjectIdError;

impl ObjectId {
    /// Creates an id from bytes; `None` if their number does not match the format.
    pub(crate) fn from_bytes(format: ObjectFormat, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != format.id_length() {
            return None;
        }
        let mut id = Self { format, bytes: [0; 32] };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// Parses hexadecimal digits as written by git.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        let format = match digits.len() {
            40 => ObjectFormat::Sha1,
            64 => ObjectFormat::Sha256,
            _ => return None,
        };
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut id = Self { format, bytes: [0; 32] };
        let (pairs, _) = digits.as_chunks::<2>();
        for (byte, [high, low]) in id.bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(id)
    }

    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.format.id_length()]
    }

    /// Returns the hash function.
    pub const fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Returns true if all bytes are zero, which is how git writes "none".
    pub(crate) fn is_null(&self) -> bool {
        self.bytes == [0; 32]
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        Self::from_hex(text.as_bytes()).ok_or(ObjectIdError)
    }
}

impl TryFrom<String> for ObjectId {
    type Error = ObjectIdError;

    fn try_from(text: String) -> Result<Self, ObjectIdError> {
        text.parse()
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.to_string()
    }
}

/// Computes the id of an object incrementally.
pub(crate) enum ObjectHasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl ObjectHasher {
    /// Starts an object of `kind` with `size` bytes of content.
    pub(crate) fn new(format: ObjectFormat, kind: &str, size: u64) -> Self {
        let mut hasher = Self::plain(format);
        hasher.update(format!("{kind} {size}\0").as_bytes());
        hasher
    }

    /// Creates a hasher without an object header.
    pub(crate) fn plain(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Sha1 => Self::Sha1(sha1::Sha1::new()),
            ObjectFormat::Sha256 => Self::Sha256(sha2::Sha256::new()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> ObjectId {
        let mut bytes = [0; 32];
        match self {
            Self::Sha1(hasher) => {
                bytes[..20].copy_from_slice(&hasher.finalize());
                ObjectId { format: ObjectFormat::Sha1, bytes }
            }
            Self::Sha256(hasher) => {
                bytes.copy_from_slice(&hasher.finalize());
                ObjectId { format: ObjectFormat::Sha256, bytes }
            }
        }
    }
}

/// Type and mode of a path, as far as git distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum FileMode {
    /// A file (`100644`).
    Regular,
    /// A file that its owner may execute (`100755`).
    Executable,
    /// A symbolic link; its content is where it points (`120000`).
    Symlink,
    /// A nested repository; its id is the commit that it has checked out (`160000`).
    Nested,
}

impl FileMode {
    /// Returns git's octal digits.
    pub const fn digits(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Nested => "160000",
        }
    }

    /// Returns true for a regular file, executable or not.
    pub const fn is_file(self) -> bool {
        matches!(self, Self::Regular | Self::Executable)
    }

    /// Converts a mode as stored by git; `None` for folders and invalid modes.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        match bits & 0o170_000 {
            0o100_000 if bits & 0o100 == 0 => Some(Self::Regular),
            0o100_000 => Some(Self::Executable),
            0o120_000 => Some(Self::Symlink),
            0o160_000 => Some(Self::Nested),
            _ => None,
        }
    }

    /// Parses octal digits; `None` for `000000`, folders and invalid modes.
    pub(crate) fn from_digits(digits: &[u8]) -> Option<Self> {
        Self::from_bits(u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?)
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.digits())
    }
}

impl From<FileMode> for String {
    fn from(mode: FileMode) -> Self {
        mode.digits().to_owned()
    }
}

impl TryFrom<String> for FileMode {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::from_digits(text.as_bytes()).ok_or("must be 100644, 100755, 120000 or 160000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_git_computes() {
        let known = [
            (ObjectFormat::Sha1, "blob", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (ObjectFormat::Sha1, "tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
            (
                ObjectFormat::Sha256,
                "tree",
                "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
            ),
        ];
        for (format, kind, id) in known {
            assert_eq!(format.id_of(kind, b"").to_string(), id);
            assert_eq!(id.parse::<ObjectId>().unwrap(), format.id_of(kind, b""));
        }
        assert!("4B825dc642cb6eb9a060e54bf8d69288fbee4904".parse::<ObjectId>().is_err());
        assert!("4b825d".parse::<ObjectId>().is_err());
    }

    #[test]
    fn modes_are_read_as_git_writes_them() {
        for mode in [FileMode::Regular, FileMode::Executable, FileMode::Symlink, FileMode::Nested] {
            assert_eq!(FileMode::from_digits(mode.digits().as_bytes()), Some(mode));
        }
        assert_eq!(FileMode::from_digits(b"100664"), Some(FileMode::Regular));
        assert_eq!(FileMode::from_digits(b"000000"), None);
        assert_eq!(FileMode::from_digits(b"040000"), None);
    }
}
