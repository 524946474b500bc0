//! Errors of the strict parser, and the path of the value that caused them.
//!
//! Owns the messages and how much of the document they may repeat. The parser decides what is an error.

use crate::truncate;

/// Maximum number of characters of a key or number that an error repeats.
const MAX_ECHO_CHARS: usize = 64;

/// Why and where a document was refused.
///
/// Holds at most 64 characters of any key or number from the document, so it is safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{} at line {line} column {column}", in_path(path))]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Path of the innermost value being read, for example `handoff.items[3].name`; empty for the document
    /// itself.
    pub path: String,
    /// The line of the failure, from 1.
    pub line: usize,
    /// The column of the failure in bytes, from 1.
    pub column: usize,
}

/// What is wrong with a refused document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// The document contains only whitespace.
    #[error("the document is empty")]
    Empty,
    /// The grammar requires another token at this position. Contains a description of that token.
    #[error("expected {0}")]
    Syntax(&'static str),
    /// An object has this key twice.
    #[error("duplicate key {0:?}")]
    DuplicateKey(String),
    /// Arrays and objects are nested deeper than this limit.
    #[error("nesting is deeper than {0} levels")]
    TooDeep(usize),
    /// Other characters follow the document.
    #[error("unexpected characters after the document")]
    TrailingCharacters,
    /// A string is not UTF-8.
    #[error("invalid UTF-8 in a string")]
    InvalidUtf8,
    /// A `\u` escape is half of a surrogate pair.
    #[error("unpaired surrogate in a string")]
    LoneSurrogate,
    /// A string holds a control character that is not escaped.
    #[error("unescaped control character in a string")]
    ControlCharacter,
    /// A number is too large for a 64-bit float.
    #[error("number does not fit a 64-bit float")]
    NumberOutOfRange,
    /// An integer would become a different number. Contains its digits.
    #[error("integer {0} would be rounded; send it as a string")]
    IntegerWouldRound(String),
    /// The document ends too early.
    #[error("unexpected end of the document")]
    Truncated,
}

/// Prepends an object member to a path. Paths are built from the innermost value outwards.
pub(crate) fn prepend_key(path: &mut String, key: &str) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    let shown = shorten(key);
    // Quoting keeps the path unambiguous when a key holds a dot, a bracket or a line break.
    let segment = if !key.is_empty() && key.chars().all(plain) { shown } else { format!("[{shown:?}]") };
    prepend(path, &segment);
}

/// Prepends an array element to a path. Paths are built from the innermost value outwards.
pub(crate) fn prepend_index(path: &mut String, index: usize) {
    prepend(path, &format!("[{index}]"));
}

fn prepend(path: &mut String, segment: &str) {
    let separator = if path.is_empty() || path.starts_with('[') { "" } else { "." };
    path.insert_str(0, separator);
    path.insert_str(0, segment);
}

fn in_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in {path}") }
}

/// Truncates text of the document to the length that an error may repeat.
pub(super) fn shorten(text: &str) -> String {
    truncate::shorten(text, MAX_ECHO_CHARS + 1)
}
