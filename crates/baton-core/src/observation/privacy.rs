//! What never reaches the disk: parts that somebody marked as private, and secrets.

use std::borrow::Cow;

use serde_json::Value;

use crate::secrets;

/// Stands where a private part was.
pub const PRIVATE_MARK: &str = "[private]";

const OPEN: &str = "<private>";
const CLOSE: &str = "</private>";

/// Takes every `<private>…</private>` out of a text. What is opened and not closed is private to the end: a tool may have
/// cut the rest off.
pub fn without_private(text: &str) -> Cow<'_, str> {
    let Some(mut open) = find(text, OPEN, 0) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    loop {
        clean.push_str(text.get(from..open).unwrap_or_default());
        clean.push_str(PRIVATE_MARK);
        // One that is opened inside another is closed by the same mark: it takes as many to close as to open.
        let mut depth = 1;
        let mut at = open + OPEN.len();
        while depth > 0 {
            let Some(close) = find(text, CLOSE, at) else { return Cow::Owned(clean) };
            let inner = find(text, OPEN, at).filter(|inner| *inner < close);
            (depth, at) = match inner {
                Some(inner) => (depth + 1, inner + OPEN.len()),
                None => (depth - 1, close + CLOSE.len()),
            };
        }
        from = at;
        match find(text, OPEN, from) {
            Some(next) => open = next,
            None => {
                clean.push_str(text.get(from..).unwrap_or_default());
                return Cow::Owned(clean);
            }
        }
    }
}

/// Finds a tag, in whatever case it is written.
fn find(text: &str, tag: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(offset) = bytes.get(at..)?.iter().position(|byte| *byte == b'<') {
        at += offset;
        if bytes.get(at..at + tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes())) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Takes private parts and secrets out of every text of a document.
pub fn make_private(value: &mut Value) {
    drop_private(value);
    secrets::redact_json(value);
}

fn drop_private(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = without_private(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_private),
        Value::Object(entries) => {
            let marked = entries.keys().any(|key| find(key, OPEN, 0).is_some());
            if marked {
                let old = std::mem::take(entries);
                entries.extend(old.into_iter().map(|(key, item)| (without_private(&key).into_owned(), item)));
            }
            entries.values_mut().for_each(drop_private);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
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

    proptest! {
        #[test]
        fn nothing_between_marks_survives(before in "[a-z<>/ ]{0,20}", inside in "[A-Z]{1,20}", after in "[a-z ]{0,20}") {
            let text = format!("{before}<private>{inside}</private>{after}");
            let clean = without_private(&text);
            prop_assert!(!clean.contains(inside.as_str()), "{clean}");
        }
    }
}
