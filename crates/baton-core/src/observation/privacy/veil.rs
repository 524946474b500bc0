//! The veil over private parts: the tags that open and close one, and what is left of a text without them.

use std::borrow::Cow;

/// Stands where a private part was.
pub const PRIVATE_MARK: &str = "[private]";

const NAME: &[u8] = b"private";
/// How much may stand in a tag after its name.
const MAX_ATTRIBUTES: usize = 200;
/// How many backslashes may stand before something.
const MAX_BACKSLASHES: usize = 8;
/// No tag is longer: brackets and a slash that are spelled out, the name, attributes.
const MAX_TAG: usize = 3 * (MAX_BACKSLASHES + b"u003c".len()) + NAME.len() + MAX_ATTRIBUTES;

/// How many private parts are open. It takes as many to close as to open.
#[derive(Debug, Default)]
pub(in crate::observation) struct Veil {
    depth: usize,
    /// What of a text that comes in pieces may be the beginning of a tag.
    held: String,
    /// Whether some of that text was seen.
    is_begun: bool,
}

impl Veil {
    /// Whether a private part is open.
    pub(in crate::observation) const fn is_drawn(&self) -> bool {
        self.depth > 0
    }

    /// Takes what is private out of the next text.
    pub(super) fn draw_over<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if text.is_empty() || (self.depth == 0 && next_tag(text, 0).is_none()) {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        self.draw(text, text.len(), &mut clean);
        self.is_begun = false;
        Cow::Owned(clean)
    }

    /// Takes what is private out of the next piece of a text. The end of a piece may be held back until the next.
    pub(in crate::observation) fn draw_over_piece(&mut self, piece: &str, is_last: bool, clean: &mut String) {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let until = if is_last { text.len() } else { held_from(&text) };
        let done = self.draw(&text, until, clean);
        if is_last {
            self.is_begun = false;
            text.clear();
        } else {
            text.drain(..done);
        }
        self.held = text;
    }

    /// Takes what is private out of a text, going by the tags that begin before `until`; tells how far it came.
    fn draw(&mut self, text: &str, until: usize, clean: &mut String) -> usize {
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

/// From where on a text may end within a tag.
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

/// Finds the next tag that opens or closes a private part, in whatever case it is written, with attributes, and with its
/// brackets spelled as JSON may spell them.
pub(super) fn next_tag(text: &str, from: usize) -> Option<Tag> {
    let bytes = text.as_bytes();
    let mut start = from;
    while let Some(offset) = bytes.get(start..)?.iter().position(|byte| matches!(byte, b'<' | b'\\')) {
        start += offset;
        if let Some((closes, rest)) = read_tag(bytes.get(start..)?) {
            return Some(Tag { start, end: bytes.len() - rest.len(), closes });
        }
        start += 1;
    }
    None
}

/// Reads a tag; gives whether it closes, and what follows it.
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
    // `<private />` has nothing inside.
    if slash.is_none() && rest.get(..end)?.ends_with(b"/") {
        return None;
    }
    Some((slash.is_some(), after_bracket(rest.get(end..)?, b'>', b"u003e")?))
}

/// Steps over a bracket, plain or as the escape that JSON has for it.
fn after_bracket<'a>(bytes: &'a [u8], plain: u8, escape: &[u8]) -> Option<&'a [u8]> {
    match bytes {
        [first, rest @ ..] if *first == plain => Some(rest),
        [b'\\', ..] => {
            let spelled = after_backslashes(bytes);
            let is_escape = spelled.get(..escape.len())?.eq_ignore_ascii_case(escape);
            if is_escape { spelled.get(escape.len()..) } else { None }
        }
        _ => None,
    }
}

/// Steps over backslashes: as many as there are when JSON stands inside JSON.
fn after_backslashes(bytes: &[u8]) -> &[u8] {
    let count = bytes.iter().take(MAX_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    bytes.get(count..).unwrap_or_default()
}
