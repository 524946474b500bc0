//! What never reaches the disk: parts that somebody marked as private, and secrets.

mod veil;

use std::borrow::Cow;

use serde_json::Value;

pub use self::veil::PRIVATE_MARK;
pub(super) use self::veil::Veil;
use self::veil::next_tag;
use crate::secrets;

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
        Value::Number(_) if veil.is_drawn() => *value = PRIVATE_MARK.into(),
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
