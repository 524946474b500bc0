//! What never reaches the disk: parts that somebody marked as private, and secrets.

use std::borrow::Cow;

use serde_json::Value;

use crate::secrets;

/// Stands where a private part was.
pub const PRIVATE_MARK: &str = "[private]";

const NAME: &[u8] = b"private";
/// How much may stand in a tag after its name.
const MAX_ATTRIBUTES: usize = 200;

/// Takes every `<private>…</private>` out of a text. What is opened and not closed is private to the end: a tool may have
/// cut the rest off.
pub fn without_private(text: &str) -> Cow<'_, str> {
    Veil::default().draw_over(text)
}

/// Takes private parts and secrets out of every text of a document.
pub fn make_private(value: &mut Value) {
    drop_private(value);
    secrets::redact_json(value);
}

/// How many private parts are open. It takes as many to close as to open.
#[derive(Default)]
struct Veil {
    depth: usize,
}

impl Veil {
    /// Takes what is private out of the next text.
    fn draw_over<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let mut tag = next_tag(text, 0);
        if text.is_empty() || (self.depth == 0 && tag.is_none()) {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        if self.depth > 0 {
            clean.push_str(PRIVATE_MARK);
        }
        let mut from = 0;
        while let Some(found) = tag {
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
            tag = next_tag(text, found.end);
        }
        if self.depth == 0 {
            clean.push_str(text.get(from..).unwrap_or_default());
        }
        Cow::Owned(clean)
    }
}

struct Tag {
    start: usize,
    end: usize,
    closes: bool,
}

/// Finds the next tag that opens or closes a private part, in whatever case it is written, with attributes, and with its
/// brackets spelled as JSON may spell them.
fn next_tag(text: &str, from: usize) -> Option<Tag> {
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
    const MAX: usize = 8;
    let count = bytes.iter().take(MAX).take_while(|byte| **byte == b'\\').count();
    bytes.get(count..).unwrap_or_default()
}

fn drop_private(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = without_private(text) {
                *text = clean;
            }
        }
        Value::Array(_) => draw_through(&mut Veil::default(), value),
        Value::Object(entries) => {
            clean_names(entries);
            entries.values_mut().for_each(drop_private);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes what is private out of a list, whose items may be the lines or blocks of one text: what one of them opens, a later
/// one closes.
fn draw_through(veil: &mut Veil, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = veil.draw_over(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| draw_through(veil, item)),
        Value::Object(entries) => {
            clean_names(entries);
            entries.values_mut().for_each(|item| draw_through(veil, item));
        }
        Value::Number(_) if veil.depth > 0 => *value = PRIVATE_MARK.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_names(entries: &mut serde_json::Map<String, Value>) {
    if entries.keys().any(|key| next_tag(key, 0).is_some()) {
        let old = std::mem::take(entries);
        entries.extend(old.into_iter().map(|(key, item)| (without_private(&key).into_owned(), item)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn private_parts_go_and_the_rest_stays() {
        for (text, expected) in [
            ("plain < text", "plain < text"),
            ("a <private>b</private> c", "a [private] c"),
            ("<PRIVATE>x</Private>y<private>z</private>", "[private]y[private]"),
            ("a <private>never closed", "a [private]"),
            ("a <private>b <private>c</private> d</private> e", "a [private] e"),
            ("a </private> b", "a </private> b"),
            ("é<private>ü</private>ß", "é[private]ß"),
            ("a <private >b</private > c", "a [private] c"),
            ("a <private reason=\"key > x\">b</private> c", "a [private] c"),
            (r#"{"a":"\u003cprivate\u003eb\u003c/private\u003e"}"#, r#"{"a":"[private]"}"#),
            (r#"\\u003CPrivate why=\"x\"\\u003Eb<\/private> c"#, "[private] c"),
            (
                "a <private/> <private /> <privateKey> <private",
                "a <private/> <private /> <privateKey> <private",
            ),
        ] {
            assert_eq!(without_private(text), expected);
        }
    }

    #[test]
    fn documents_are_made_private_throughout() {
        let token = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A");
        let mut value = json!({ "a": ["<private>x</private>", { "b<private>n</private>": token }], "c": 1 });
        make_private(&mut value);
        let text = value.to_string();
        assert!(!text.contains("ghp_") && !text.contains(">x<") && !text.contains(">n<"), "{text}");
        assert!(text.contains(PRIVATE_MARK) && text.contains("[redacted:"), "{text}");
    }

    #[test]
    fn what_one_item_of_a_list_opens_a_later_one_closes() {
        let mut value = json!({
            "structuredPatch": [{ "oldStart": 1, "lines": [" a", "+<private>", "+LEAK", "", "+</private>", "+b"] }],
            "blocks": [{ "text": "a <private>" }, { "text": "LEAK", "pin": 1234 }, ["LEAK"], { "text": "x</private> b" }],
            "cut": ["a", "<private>b", "LEAK", { "text": "LEAK" }],
            "next": "seen",
        });
        make_private(&mut value);
        assert_eq!(
            value,
            json!({
                "structuredPatch": [{
                    "oldStart": 1, "lines": [" a", "+[private]", "[private]", "", "[private]", "+b"],
                }],
                "blocks": [
                    { "text": "a [private]" }, { "text": "[private]", "pin": "[private]" }, ["[private]"],
                    { "text": "[private] b" },
                ],
                "cut": ["a", "[private]", "[private]", { "text": "[private]" }],
                "next": "seen",
            })
        );
    }

    proptest! {
        #[test]
        fn nothing_between_marks_survives_in_lines(before in "[a-z<>/ ]{0,9}", inside in "[A-Z]{4,9}", count in 1..5_usize) {
            let mut lines = vec![format!("{before}<private>")];
            lines.extend(std::iter::repeat_n(inside.clone(), count));
            lines.push("</private>".to_owned());
            let mut value = json!([lines]);
            make_private(&mut value);
            prop_assert!(!value.to_string().contains(inside.as_str()), "{value}");
        }

        #[test]
        fn nothing_between_marks_survives(before in "[a-z<>/ ]{0,20}", inside in "[A-Z]{1,20}", after in "[a-z ]{0,20}") {
            let text = format!("{before}<private>{inside}</private>{after}");
            let clean = without_private(&text);
            prop_assert!(!clean.contains(inside.as_str()), "{clean}");
        }
    }
}
