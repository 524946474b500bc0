//! Removes private parts and secrets before text is stored.

mod cleaner;
mod filter;

use std::borrow::Cow;

use baton_core::observation::{CompressedObservation, SessionSummary};
use baton_secrets::{redact, redact_json, rename_entries};
use serde_json::Value;

pub(crate) use self::cleaner::{Cleaner, clean_name};
pub use self::filter::PRIVATE_MARK;
use self::filter::{PrivateFilter, next_tag};

/// Removes every `<private>…</private>` from a text. An unclosed part extends to the end, because a tool may have
/// truncated the text.
pub fn without_private(text: &str) -> Cow<'_, str> {
    PrivateFilter::default().apply(text)
}

/// Removes private parts and secrets from all texts of a document.
pub fn make_private(value: &mut Value) {
    remove_private(value, None);
    redact_json(value);
}

/// Redacts secrets in all fields of an observation, because a model may reassemble a secret that was split.
pub fn redact_observation(content: &mut CompressedObservation) {
    let CompressedObservation { title, summary, detail, files_touched, functions_changed } = content;
    let functions = functions_changed.iter_mut().flat_map(|change| [&mut change.file, &mut change.name]);
    redact_all([title, summary].into_iter().chain(detail).chain(files_touched).chain(functions));
}

/// Redacts secrets in all fields of a summary, because a model may reassemble a secret that was split.
pub fn redact_summary(content: &mut SessionSummary) {
    let SessionSummary { summary, key_files, key_decisions } = content;
    redact_all(std::iter::once(summary).chain(key_files).chain(key_decisions));
}

fn redact_all<'a>(texts: impl Iterator<Item = &'a mut String>) {
    for text in texts {
        if let Cow::Owned(clean) = redact(text) {
            *text = clean;
        }
    }
}

/// Removes private parts. The items of a list may be the lines or blocks of one text, so that a part may start in one
/// item and end in a later one. They share the filter of the outermost `list`.
fn remove_private(value: &mut Value, mut list: Option<&mut PrivateFilter>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = list.unwrap_or(&mut PrivateFilter::default()).apply(text) {
                *text = clean;
            }
        }
        Value::Array(items) => {
            let mut own = PrivateFilter::default();
            let filter = list.unwrap_or(&mut own);
            items.iter_mut().for_each(|item| remove_private(item, Some(&mut *filter)));
        }
        Value::Object(entries) => {
            clean_names(entries);
            entries.values_mut().for_each(|item| remove_private(item, list.as_deref_mut()));
        }
        Value::Number(_) if list.is_some_and(|filter| filter.is_open()) => *value = PRIVATE_MARK.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_names(entries: &mut serde_json::Map<String, Value>) {
    if entries.keys().any(|key| next_tag(key, 0).is_some()) {
        rename_entries(entries, |name| without_private(name).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn removes_private_parts_and_keeps_the_rest() {
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
    fn removes_private_parts_and_secrets_from_names_and_values() {
        let token = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A");
        let mut value = json!({ "a": ["<private>x</private>", { "b<private>n</private>": token }], "c": 1 });
        make_private(&mut value);
        let text = value.to_string();
        assert!(!text.contains("ghp_") && !text.contains(">x<") && !text.contains(">n<"), "{text}");
        assert!(text.contains(PRIVATE_MARK) && text.contains("[redacted:"), "{text}");
    }

    #[test]
    fn entries_whose_names_become_equal_are_all_kept() {
        let mut value = json!({ "<private>a</private>": 1, "<private>b</private>": 2, "c": 3 });
        make_private(&mut value);
        assert_eq!(value, json!({ "[private]": 1, "[private] (2)": 2, "c": 3 }));
    }

    #[test]
    fn private_parts_span_items_of_a_list() {
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
        fn removes_everything_between_tags_in_a_list(before in "[a-z<>/ ]{0,9}", inside in "[A-Z]{4,9}", count in 1..5_usize) {
            let mut lines = vec![format!("{before}<private>")];
            lines.extend(std::iter::repeat_n(inside.clone(), count));
            lines.push("</private>".to_owned());
            let mut value = json!([lines]);
            make_private(&mut value);
            prop_assert!(!value.to_string().contains(inside.as_str()), "{value}");
        }

        #[test]
        fn removes_everything_between_tags(before in "[a-z<>/ ]{0,20}", inside in "[A-Z]{1,20}", after in "[a-z ]{0,20}") {
            let text = format!("{before}<private>{inside}</private>{after}");
            let clean = without_private(&text);
            prop_assert!(!clean.contains(inside.as_str()), "{clean}");
        }
    }
}
