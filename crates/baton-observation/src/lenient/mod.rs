//! Lenient JSON parser for hook reports.
//!
//! Agents truncate tool output at any position, even between the two escapes of a surrogate pair. Such a document is
//! repaired instead of rejected, so that a report is not lost because of an invalid character.

mod document;
mod parser;

use std::io::Read;

use serde_json::Value;

use self::document::MAX_DEPTH;
pub(crate) use self::document::{DocumentReader, Handling, Limits};
pub use self::parser::ReadError;
use crate::truncate::Budget;

/// Size of the excerpt of a tool output.
const OUTPUT: Limits = Limits {
    text: Budget { total: 2 * 1024 * 1024, middle: 128 * 1024, counts_lines: true },
    member: 4 * 1024 * 1024,
    total: 64 * 1024 * 1024,
};

/// Limits of a document that is kept whole.
const WHOLE: Limits = Limits {
    text: Budget { total: usize::MAX / 4, middle: 0, counts_lines: false },
    member: usize::MAX,
    total: usize::MAX,
};

/// Error of the lenient parser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LenientError {
    /// The input is empty.
    #[error("the input is empty")]
    Empty,
    /// The input is not JSON and cannot be repaired.
    #[error("the input is not JSON: {0}")]
    NotJson(String),
    /// The input is JSON but not an object.
    #[error("the input is not a JSON object")]
    NotAnObject,
}

/// Parses an object. Repairs invalid UTF-8, invalid escapes, control characters in strings, numbers that are out of
/// range or not a number, and values that are nested too deeply.
pub fn read_lenient(bytes: &[u8]) -> Result<serde_json::Map<String, Value>, LenientError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LenientError::Empty);
    }
    let value = match serde_json::from_slice(bytes) {
        Ok(value) if !is_deeper(&value, MAX_DEPTH) => value,
        Ok(_) | Err(_) => read_repaired(bytes).map_err(|error| match error {
            ReadError::Document(error) => error,
            ReadError::Source(error) | ReadError::Sink(error) => LenientError::NotJson(error.to_string()),
        })?,
    };
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(LenientError::NotAnObject),
    }
}

/// Parses a document as a stream and returns an excerpt: head, tail, and error and summary lines of long texts, and the
/// first items of long lists.
pub fn read_excerpt(mut source: impl Read) -> Result<Value, ReadError> {
    DocumentReader::new(&mut source, OUTPUT).read().map(|(excerpt, _)| excerpt)
}

/// Parses a document that is invalid or nested too deeply.
fn read_repaired(mut source: impl Read) -> Result<Value, ReadError> {
    DocumentReader::new(&mut source, WHOLE).read().map(|(document, _)| document)
}

fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, depth - 1)),
        Value::Object(entries) => entries.values().any(|item| is_deeper(item, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::parser::PIECE_BYTES;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn repairs_invalid_characters_and_escapes() {
        for (bytes, expected) in [
            (&br#"{"a":"ok \ud83d\ude00"}"#[..], "ok 😀"),
            (br#"{"a":"cut \ud83d"}"#, "cut \u{fffd}"),
            (br#"{"a":"cut \ud83d\n"}"#, "cut \u{fffd}\n"),
            (br#"{"a":"\ude00 low"}"#, "\u{fffd} low"),
            (br#"{"a":"\d+ \x"}"#, "\\d+ \\x"),
            (br#"{"a":"\u12"}"#, "\\u12"),
            (b"{\"a\":\"raw \x00 and \x1b[0m\"}", "raw \0 and \u{1b}[0m"),
            (b"{\"a\":\"bad \xff byte\"}", "bad \u{fffd} byte"),
            (b"\xef\xbb\xbf{\"a\":\"bom\"}", "bom"),
        ] {
            assert_eq!(read_lenient(bytes).unwrap()["a"], expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn repairs_invalid_numbers_and_deep_nesting() {
        let read = |text: &str| Value::Object(read_lenient(text.as_bytes()).unwrap());
        assert_eq!(
            read(r#"{"a":1e400,"b":[-1e999,2.5],"c":"1e400","d":NaN,"e":-Infinity,"f":"NaN"}"#),
            json!({ "a": "1e400", "b": ["-1e999", 2.5], "c": "1e400", "d": "NaN", "e": "-Infinity", "f": "NaN" })
        );
        for depth in [90, 110, 127, 128, 500, 100_000] {
            let nested = format!("{}\"]}}\\\"\"{}", "[".repeat(depth), "]".repeat(depth));
            let text = read(&format!(r#"{{"deep":{nested},"after":"here"}}"#)).to_string();
            assert!(text.contains(r#""after":"here""#), "{depth}");
            assert_eq!(text.contains("nested too deeply"), depth >= MAX_DEPTH, "{depth}");
            assert!(serde_json::from_str::<Value>(&format!("[[[{text}]]]")).is_ok(), "{depth}");
        }
    }

    #[test]
    fn rejects_documents_that_are_not_objects() {
        assert_eq!(read_lenient(b" \n"), Err(LenientError::Empty));
        assert_eq!(read_lenient(b"[1]"), Err(LenientError::NotAnObject));
        for bytes in [&b"{\"a\":\"b"[..], b"\x00\x01\xff", b"{\"a\":\"\\"] {
            assert!(matches!(read_lenient(bytes), Err(LenientError::NotJson(_))));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<Value>()),
            ]
        })
    }

    /// A reader that returns one or two bytes at a time.
    struct Trickle<'a>(&'a [u8]);

    impl std::io::Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(1 + self.0.len() % 2);
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn long_texts_are_split_on_character_boundaries() {
        for unit in ["a", "é", "日", "😀", r"\n", r"\u00e9", r"\ud83d\ude00", r"\ud83d"] {
            for shift in 0..4 {
                let text = format!("{}{}", "x".repeat(shift), unit.repeat(3 * PIECE_BYTES / unit.len()));
                let document = format!("{{\"a\":\"{text}\"}}");
                let expected: Option<Value> = serde_json::from_str(&document).ok();
                let found = read_repaired(document.as_bytes()).unwrap();
                match expected {
                    Some(expected) => assert!(found == expected, "{unit} {shift}"),
                    None => assert!(found["a"].as_str().unwrap().ends_with('\u{fffd}'), "{unit}"),
                }
            }
        }
        let long =
            [b"{\"".as_slice(), &b"n".repeat(PIECE_BYTES + 9), b"\":", &b"1".repeat(2 * PIECE_BYTES), b"}"]
                .concat();
        let (name, value) = read_lenient(&long).unwrap().into_iter().next().unwrap();
        assert_eq!((name.len(), value.as_str().unwrap().len()), (PIECE_BYTES, PIECE_BYTES));
    }

    #[test]
    fn excerpt_is_bounded_and_contains_a_part_of_every_member() {
        let long = "line\n".repeat(800_000);
        let many: Vec<Value> = (0..60_000).map(|number| json!({ "number": number, "text": "é" })).collect();
        let document =
            json!({ "a": { "list": many, "after": "x" }, "b": long, "c": [long, long, 7], "d": "short" });
        let excerpt = read_excerpt(document.to_string().as_bytes()).unwrap();
        let items = excerpt["a"]["list"].as_array().unwrap();
        let left_out = format!("[... {} more items ...]", many.len() - (items.len() - 1));
        assert_eq!((items.last().unwrap(), &items[1]), (&json!(left_out), &many[1]));
        assert_eq!(excerpt["d"], "short");
        let kept = excerpt["b"].as_str().unwrap();
        assert!(kept.contains("[... truncated ") && kept.len() < 3_000_000, "{}", kept.len());
        assert!(excerpt.to_string().len() < 12_000_000, "{}", excerpt.to_string().len());
        let small = json!({ "tool_input": { "command": "ls" }, "tool_response": ["a", 1, null], "cwd": "/" });
        assert_eq!(read_excerpt(small.to_string().as_bytes()).unwrap(), small);
    }

    proptest! {
        #[test]
        fn streaming_parses_like_serde_json(value in any_json(), spaces in 0..4_usize) {
            let formatter = serde_json::ser::PrettyFormatter::with_indent(&b" \t\r"[..spaces]);
            let mut serializer = serde_json::Serializer::with_formatter(Vec::new(), formatter);
            serde::Serialize::serialize(&value, &mut serializer).unwrap();
            let pretty = serializer.into_inner();
            let expected: Value = serde_json::from_slice(&pretty).unwrap();
            prop_assert_eq!(read_repaired(Trickle(&pretty)).unwrap(), expected);
        }

        #[test]
        fn valid_documents_are_unchanged(text in any::<String>()) {
            let document = json!({ "a": text }).to_string();
            prop_assert_eq!(&read_repaired(document.as_bytes()).unwrap()["a"], &Value::from(text));
        }

        #[test]
        fn does_not_panic_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_lenient(&bytes);
            let wrapped = [b"{\"a\":\"".as_slice(), &bytes, b"\"}"].concat();
            let _ = read_lenient(&wrapped);
        }
    }
}
