//! Text inside JSON that callers send: where it holds characters that no terminal should be shown.

use serde_json::{Map, Value};

use crate::error::Fault;
use crate::json::{prepend_index, prepend_key};

/// Refuses a JSON object with a control character, other than tabs and line ends, in any text or key of it. `field` is
/// where the object stands in the request, for the message.
///
/// What is handed over is read in terminals, where an escape sequence could rewrite what the next reader sees.
pub fn require_plain_text(field: &str, object: &Map<String, Value>) -> Result<(), Fault> {
    let Some(Found { mut path, character }) = find_in_members(object) else { return Ok(()) };
    if !field.is_empty() {
        prepend_key(&mut path, field);
    }
    let problem = format!("holds the control character U+{:04X}", u32::from(character));
    Err(Fault::invalid(&path, problem).hint("take it out, then send it again; tabs and line ends are fine"))
}

struct Found {
    path: String,
    character: char,
}

fn control_in(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
}

const fn here(character: char) -> Found {
    Found { path: String::new(), character }
}

fn find_control(value: &Value) -> Option<Found> {
    match value {
        Value::String(text) => control_in(text).map(here),
        Value::Array(elements) => elements.iter().enumerate().find_map(|(index, element)| {
            let mut found = find_control(element)?;
            prepend_index(&mut found.path, index);
            Some(found)
        }),
        Value::Object(members) => find_in_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn find_in_members(members: &Map<String, Value>) -> Option<Found> {
    members.iter().find_map(|(key, member)| {
        let mut found = control_in(key).map(here).or_else(|| find_control(member))?;
        prepend_key(&mut found.path, key);
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(value: &Value) -> Option<String> {
        let details = require_plain_text("meta", value.as_object().unwrap()).err()?.details?;
        details["fields"][0]["field"].as_str().map(str::to_owned)
    }

    #[test]
    fn control_characters_are_found_and_their_place_is_named() {
        assert_eq!(field(&json!({ "a": ["b", { "c": "\u{1b}[2J" }] })).as_deref(), Some("meta.a[1].c"));
        assert_eq!(field(&json!({ "a\0b": 1 })).as_deref(), Some("meta[\"a\\0b\"]"));
        for control in ["\0", "\u{8}", "\u{b}", "\u{7f}", "\u{85}"] {
            assert_eq!(field(&json!({ "a": control })).as_deref(), Some("meta.a"), "{control:?}");
        }
    }

    #[test]
    fn text_with_tabs_line_ends_and_any_script_passes() {
        let value = json!({ "ключ\n": ["a\tb\r\n", 1, null, true, "👩‍💻\u{202e}"] });
        assert_eq!(field(&value), None);
    }
}
