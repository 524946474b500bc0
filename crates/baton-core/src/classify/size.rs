//! How many bytes a value takes as JSON without blanks, without writing it.
//!
//! The count is that of `serde_json`. Canonical JSON has the same length, except that it spells some floats otherwise;
//! a context that was stored has lost that difference already.

use std::io;

use serde_json::{Map, Number, Value};

/// Counts the bytes of a value as JSON without blanks.
pub(crate) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number_size(number),
        Value::String(text) => text_size(text),
        Value::Array(items) => list_size(items.iter().map(json_size)),
        Value::Object(members) => object_size(members),
    }
}

/// Counts the bytes of an object as JSON without blanks.
pub(crate) fn object_size(members: &Map<String, Value>) -> usize {
    list_size(members.iter().map(|(key, value)| member_size(key, json_size(value))))
}

/// Counts the bytes of a member of an object, given those of its value; the comma is not counted.
pub(crate) fn member_size(key: &str, value_bytes: usize) -> usize {
    text_size(key) + ":".len() + value_bytes
}

/// Counts the bytes of an array or object, given those of its items.
pub(crate) fn list_size(items: impl Iterator<Item = usize>) -> usize {
    let (count, bytes) = items.fold((0, 0), |(count, bytes), item| (count + 1, bytes + item));
    "[]".len() + bytes + usize::saturating_sub(count, 1)
}

/// Counts the bytes of a text between quotes, escapes included.
pub(crate) fn text_size(text: &str) -> usize {
    "\"\"".len() + text.bytes().map(byte_size).sum::<usize>()
}

/// Counts the bytes that one byte of a text becomes.
pub(crate) const fn byte_size(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

fn number_size(number: &Number) -> usize {
    let mut counter = Counter(0);
    // Counting does not fail, and neither does writing a number.
    let _ = serde_json::to_writer(&mut counter, number);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_count_is_the_length_of_the_text() {
        let value = json!({
            "": [], "a": {}, "é\n\"\\": [null, true, false, -1, 0.5, 1e300, u64::MAX],
            "control": "\u{0}\u{8}\u{b}\u{c}\u{1f}\u{7f}", "目的": { "x": [[1], "…"] },
        });
        assert_eq!(json_size(&value), value.to_string().len());
    }

    proptest! {
        #[test]
        fn any_text_is_counted_right(text in "\\PC*|[\\x00-\\x7f]*") {
            prop_assert_eq!(text_size(&text), Value::from(text).to_string().len());
        }
    }
}
