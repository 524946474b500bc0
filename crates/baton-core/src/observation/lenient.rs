//! Reading what agents send: JSON, nearly always.
//!
//! Agents cut tool output where they like, also in the middle of a character that JSON spells as two escapes. Such a
//! document is mended, not refused: what a tool did must not be lost for a broken character.

use serde_json::Value;

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LenientError {
    /// There is nothing.
    #[error("the input is empty")]
    Empty,
    /// It is not JSON, however it is mended.
    #[error("the input is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no object.
    #[error("the input is not a JSON object")]
    NotAnObject,
}

/// How deep a document may be nested. It leaves room for what is put around it: readers of JSON end at 128.
const MAX_DEPTH: usize = 100;
/// Stands in place of what is nested deeper.
const TOO_DEEP: &str = "\"[nested too deeply]\"";

/// Reads an object, mending bytes that are no UTF-8, escapes that are none, control characters in strings, numbers that
/// are out of range or none, and what is nested too deeply.
pub fn read_lenient(bytes: &[u8]) -> Result<serde_json::Map<String, Value>, LenientError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LenientError::Empty);
    }
    let value = match serde_json::from_slice(bytes) {
        Ok(value) if !is_deeper(&value, MAX_DEPTH) => value,
        Ok(_) | Err(_) => serde_json::from_str(&mended(&String::from_utf8_lossy(bytes)))
            .map_err(|error| LenientError::NotJson(error.to_string()))?,
    };
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(LenientError::NotAnObject),
    }
}

fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, depth - 1)),
        Value::Object(entries) => entries.values().any(|item| is_deeper(item, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Replaces what JSON does not allow, or no reader of it takes.
fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.char_indices();
    let mut inside = false;
    let mut depth = 0_usize;
    while let Some((at, character)) = chars.next() {
        if !inside {
            match character {
                '{' | '[' => depth += 1,
                '}' | ']' if depth > MAX_DEPTH => {
                    depth -= 1;
                    if depth == MAX_DEPTH {
                        out.push_str(TOO_DEEP);
                    }
                    continue;
                }
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth > MAX_DEPTH {
            match character {
                '"' => inside = !inside,
                '\\' if inside => drop(chars.next()),
                _ => {}
            }
            continue;
        }
        match character {
            '-' | '0'..='9' | 'N' | 'I' if !inside => {
                let number = number(text.get(at..).unwrap_or_default());
                if is_finite(number) {
                    out.push_str(number);
                } else {
                    out.push_str(&format!("\"{number}\""));
                }
                // It is ASCII.
                for _ in 1..number.len() {
                    chars.next();
                }
            }
            '"' => {
                inside = !inside;
                out.push('"');
            }
            '\\' if inside => {
                let rest = text.get(at + 1..).unwrap_or_default();
                let (written, used) = escape(rest);
                out.push_str(&written);
                // What was used is ASCII, so that many characters follow.
                for _ in 0..used {
                    chars.next();
                }
            }
            control if inside && control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out
}

/// The number, or what some writers say in place of one, that a text begins with; its first character at the least.
fn number(text: &str) -> &str {
    let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| text.starts_with(word));
    let digits =
        text.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let length = word.map_or_else(|| digits.count(), str::len).max(1);
    text.get(..length).unwrap_or(text)
}

/// Whether a number can be read as it is; what is no number at all is left for the reader to refuse.
fn is_finite(number: &str) -> bool {
    match number {
        "NaN" | "Infinity" | "-Infinity" => false,
        _ => number.parse::<f64>().map_or(true, f64::is_finite),
    }
}

/// Reads what follows a backslash; gives what to write for it and how many characters it took.
fn escape(rest: &str) -> (String, usize) {
    const REPLACEMENT: &str = "\\ufffd";
    match rest.chars().next() {
        Some(simple @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => (format!("\\{simple}"), 1),
        Some('u') => match code_unit(rest) {
            Some(unit @ 0xD800..=0xDBFF) => {
                let second = rest.get(5..).and_then(|more| code_unit(more.strip_prefix('\\')?));
                match second {
                    Some(low @ 0xDC00..=0xDFFF) => (format!("\\u{unit:04x}\\u{low:04x}"), 11),
                    _ => (REPLACEMENT.to_owned(), 5),
                }
            }
            Some(0xDC00..=0xDFFF) => (REPLACEMENT.to_owned(), 5),
            Some(unit) => (format!("\\u{unit:04x}"), 5),
            None => ("\\\\".to_owned(), 0),
        },
        _ => ("\\\\".to_owned(), 0),
    }
}

fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_agents_break_is_mended() {
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
    fn numbers_and_depths_that_no_reader_takes_are_mended() {
        let read = |text: &str| Value::Object(read_lenient(text.as_bytes()).unwrap());
        assert_eq!(
            read(r#"{"a":1e400,"b":[-1e999,2.5],"c":"1e400","d":NaN,"e":-Infinity,"f":"NaN"}"#),
            serde_json::json!({ "a": "1e400", "b": ["-1e999", 2.5], "c": "1e400", "d": "NaN", "e": "-Infinity", "f": "NaN" })
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
    fn what_is_no_object_is_refused() {
        assert_eq!(read_lenient(b" \n"), Err(LenientError::Empty));
        assert_eq!(read_lenient(b"[1]"), Err(LenientError::NotAnObject));
        for bytes in [&b"{\"a\":\"b"[..], b"\x00\x01\xff", b"{\"a\":\"\\"] {
            assert!(matches!(read_lenient(bytes), Err(LenientError::NotJson(_))));
        }
    }

    proptest! {
        #[test]
        fn sound_documents_are_left_alone(text in any::<String>()) {
            let document = serde_json::json!({ "a": text }).to_string();
            prop_assert_eq!(&mended(&document), &document);
            prop_assert_eq!(&read_lenient(document.as_bytes()).unwrap()["a"], &Value::from(text));
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_lenient(&bytes);
            let wrapped = [b"{\"a\":\"".as_slice(), &bytes, b"\"}"].concat();
            let _ = read_lenient(&wrapped);
        }
    }
}
