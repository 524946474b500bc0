//! Paths inside a repository. They are bytes and need not be UTF-8.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A path relative to the root of a checkout, with `/` as separator.
///
/// Plain UTF-8 is written unmodified, other bytes are quoted like git does (`"caf\351"`). Parsing the text yields the
/// same bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RepoPath(Vec<u8>);

/// The text is not a correctly quoted path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a correctly quoted path")]
pub struct RepoPathError;

/// Splits a path into its folder, with the slash, and its name.
pub(crate) fn split_name(path: &[u8]) -> (&[u8], &[u8]) {
    let name_start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.split_at(name_start)
}

impl RepoPath {
    /// Creates a path from bytes as reported by git.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path for the file system, relative to the root of the checkout.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Returns true if this is `folder` or inside it.
    pub fn is_within(&self, folder: &Self) -> bool {
        is_within(&self.0, &folder.0)
    }
}

pub(crate) fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Returns true if a path is written without quotes.
fn is_plain(text: &str) -> bool {
    !text.starts_with('"') && !text.chars().any(char::is_control)
}

/// Quotes bytes in C style, as git expects on its standard input.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

fn unquoted(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return None,
            b'\\' => match rest.next()? {
                escaped @ (b'"' | b'\\') => bytes.push(escaped),
                first @ b'0'..=b'3' => {
                    let mut value = first - b'0';
                    for _ in 0..2 {
                        let digit = rest.next().filter(u8::is_ascii_digit).filter(|digit| *digit < b'8')?;
                        value = value << 3 | (digit - b'0');
                    }
                    bytes.push(value);
                }
                _ => return None,
            },
            other => bytes.push(other),
        }
    }
    Some(bytes)
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if is_plain(text) => f.write_str(text),
            _ => f.write_str(&quoted(&self.0)),
        }
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for RepoPath {
    type Err = RepoPathError;

    fn from_str(text: &str) -> Result<Self, RepoPathError> {
        if text.starts_with('"') {
            unquoted(text).map(Self).ok_or(RepoPathError)
        } else {
            Ok(Self(text.into()))
        }
    }
}

impl TryFrom<String> for RepoPath {
    type Error = RepoPathError;

    fn try_from(text: String) -> Result<Self, RepoPathError> {
        text.parse()
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        match Self::from_utf8(path.0) {
            Ok(text) if is_plain(&text) => text,
            Ok(text) => quoted(text.as_bytes()),
            Err(error) => quoted(error.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_parses_to_the_same_bytes() {
        let paths: [&[u8]; 8] = [
            b"a",
            b"src/lib.rs",
            "caf\u{e9}".as_bytes(),
            b"caf\xe9",
            b"\"quoted\"",
            b"back\\slash",
            b"new\nline",
            b"\xff\x00\x7f",
        ];
        for bytes in paths {
            let path = RepoPath::new(bytes);
            assert_eq!(path.to_string().parse::<RepoPath>().unwrap(), path, "{path}");
        }
        assert_eq!(RepoPath::new(b"caf\xe9".as_slice()).to_string(), r#""caf\351""#);
    }

    #[test]
    fn invalid_quoting_is_rejected() {
        for text in ["\"", "\"a", "\"\\9\"", "\"\\400\"", "\"a\"b\"", "\"\\08\"", "\"\\"] {
            assert!(text.parse::<RepoPath>().is_err(), "{text}");
        }
    }

    #[test]
    fn folder_contains_itself_and_its_content() {
        let folder = RepoPath::new(".agent-output");
        assert!(RepoPath::new(".agent-output").is_within(&folder));
        assert!(RepoPath::new(".agent-output/TASK-1/context.json").is_within(&folder));
        assert!(!RepoPath::new(".agent-output2").is_within(&folder));
        assert!(!RepoPath::new("x/.agent-output").is_within(&folder));
    }
}
