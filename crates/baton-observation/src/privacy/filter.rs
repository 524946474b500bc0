//! Filter for private parts: finds the tags that start and end them and removes the text between.

use std::borrow::Cow;

/// Replacement of a private part.
pub const PRIVATE_MARK: &str = "[private]";

const NAME: &[u8] = b"private";
/// Maximum length of the attributes of a tag in bytes.
const MAX_ATTRIBUTES: usize = 200;
/// Maximum number of backslashes of an escape in nested JSON.
const MAX_BACKSLASHES: usize = 8;
/// Maximum length of a tag in bytes: two escaped brackets, an escaped slash, the name and attributes.
const MAX_TAG: usize = 3 * (MAX_BACKSLASHES + b"u003c".len()) + NAME.len() + MAX_ATTRIBUTES;

/// Removes private parts from consecutive texts. Private parts can be nested.
#[derive(Debug, Default)]
pub(crate) struct PrivateFilter {
    /// Number of open private parts.
    depth: usize,
    /// End of the previous piece that may be the start of a tag.
    held: String,
    /// True after the first piece of the current text.
    is_begun: bool,
}

impl PrivateFilter {
    /// Returns true if a private part is open.
    pub(crate) const fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Removes private parts from the next text.
    pub(super) fn apply<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if text.is_empty() || (self.depth == 0 && next_tag(text, 0).is_none()) {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        self.apply_to_piece(text, true, &mut clean);
        Cow::Owned(clean)
    }

    /// Removes private parts from the next piece of a text. The end of a piece may be held back until the next one.
    pub(crate) fn apply_to_piece(&mut self, piece: &str, is_last: bool, clean: &mut String) {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let until = if is_last { text.len() } else { held_from(&text) };
        let done = self.filter_until(&text, until, clean);
        text.drain(..done);
        self.is_begun &= !is_last;
        self.held = text;
    }

    /// Removes private parts, considering only tags that start before `until`. Returns the end of the processed text.
    fn filter_until(&mut self, text: &str, until: usize, clean: &mut String) -> usize {
        if text.is_empty() {
            return 0;
        }
        if self.depth > 0 && !self.is_begun {
            clean.push_str(PRIVATE_MARK);
        }
        self.is_begun = true;
        let (mut from, mut end) = (0, until);
        let mut tag = next_tag(text, 0);
        while let Some(found) = tag.filter(|tag| tag.start < until) {
            match (found.closes, self.depth) {
                (false, 0) => {
                    clean.push_str(text.get(from..found.start).unwrap_or_default());
                    clean.push_str(PRIVATE_MARK);
                    self.depth = 1;
                }
                (false, depth) => self.depth = depth + 1,
                (true, 0) => {}
                (true, depth) => {
                    self.depth = depth - 1;
                    from = found.end;
                }
            }
            end = end.max(found.end);
            tag = next_tag(text, found.end);
        }
        if self.depth == 0 {
            clean.push_str(text.get(from..end).unwrap_or_default());
        }
        end
    }
}

/// Returns the position of a possible incomplete tag at the end of a text, or its length.
fn held_from(text: &str) -> usize {
    let last = text.floor_char_boundary(text.len().saturating_sub(MAX_TAG));
    let begun = text.get(last..).and_then(|end| end.find(['<', '\\']));
    begun.map_or(text.len(), |offset| last + offset)
}

pub(super) struct Tag {
    start: usize,
    end: usize,
    closes: bool,
}

/// Finds the next tag that opens or closes a private part. The name is case-insensitive, attributes are allowed, and
/// brackets may be escaped as in JSON.
pub(super) fn next_tag(text: &str, from: usize) -> Option<Tag> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'<', b'\\', bytes.get(from..)?).find_map(|offset| {
        let start = from + offset;
        let (closes, rest) = read_tag(bytes.get(start..)?)?;
        Some(Tag { start, end: bytes.len() - rest.len(), closes })
    })
}

/// Parses a tag. Returns whether it is a closing tag, and the rest after it.
fn read_tag(bytes: &[u8]) -> Option<(bool, &[u8])> {
    let rest = after_bracket(bytes, b'<', b"u003c")?;
    let slash = after_backslashes(rest).strip_prefix(b"/");
    let rest = slash.unwrap_or(rest);
    let name = rest.get(..NAME.len()).filter(|name| name.eq_ignore_ascii_case(NAME))?;
    let rest = rest.get(name.len()..)?;
    if let Some(after) = after_bracket(rest, b'>', b"u003e") {
        return Some((slash.is_some(), after));
    }
    rest.first().filter(|byte| byte.is_ascii_whitespace())?;
    let attributes = rest.get(..MAX_ATTRIBUTES).unwrap_or(rest);
    let length = attributes.iter().position(|byte| matches!(byte, b'<' | b'>')).unwrap_or(attributes.len());
    let end = (1..=length)
        .find(|end| after_bracket(rest.get(*end..).unwrap_or_default(), b'>', b"u003e").is_some())?;
    // `<private />` has no content.
    if slash.is_none() && rest.get(..end)?.ends_with(b"/") {
        return None;
    }
    Some((slash.is_some(), after_bracket(rest.get(end..)?, b'>', b"u003e")?))
}

/// Skips a bracket, plain or as JSON escape.
fn after_bracket<'a>(bytes: &'a [u8], plain: u8, escape: &[u8]) -> Option<&'a [u8]> {
    match bytes {
        [first, rest @ ..] if *first == plain => Some(rest),
        [b'\\', ..] => {
            let rest = after_backslashes(bytes);
            let is_escape = rest.get(..escape.len())?.eq_ignore_ascii_case(escape);
            if is_escape { rest.get(escape.len()..) } else { None }
        }
        _ => None,
    }
}

/// Skips backslashes; JSON nested in JSON strings has several.
fn after_backslashes(bytes: &[u8]) -> &[u8] {
    let count = bytes.iter().take(MAX_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    bytes.get(count..).unwrap_or_default()
}
