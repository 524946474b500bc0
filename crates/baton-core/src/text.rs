//! Text rules: control characters in JSON from callers, and counts with their noun.

use serde_json::{Map, Value};

use crate::error::Fault;
use crate::json::{prepend_index, prepend_key};

/// Rejects a JSON object with a control character, other than tabs and line ends, in any string or key. `field` is the
/// path of the object in the request, for the message.
///
/// Stored text is shown in terminals, where escape sequences could hide or change it.
pub fn require_plain_text(field: &str, object: &Map<String, Value>) -> Result<(), Fault> {
    let Some(mut found) = find_in_members(object, is_control) else { return Ok(()) };
    if !field.is_empty() {
        prepend_key(&mut found.path, field);
    }
    Err(found.fault())
}

/// Rejects a JSON object with the character U+0000 in any string or key, because PostgreSQL cannot store it. The member
/// `except` is not checked.
pub fn require_no_nul(object: &Map<String, Value>, except: Option<&str>) -> Result<(), Fault> {
    let checked = object.iter().filter(|(key, _)| Some(key.as_str()) != except);
    find_among(checked, |character| character == '\0').map_or(Ok(()), |found| Err(found.fault()))
}

/// Formats a count with its noun: `1 drift`, `2 drifts`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

struct Found {
    path: String,
    character: char,
}

impl Found {
    fn fault(self) -> Fault {
        let problem = format!("contains the control character U+{:04X}", u32::from(self.character));
        Fault::invalid(&self.path, problem)
            .hint("remove it and send the request again; tabs and line ends are allowed")
    }
}

fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r')
}

/// Creates the finding for the string or key that is searched; callers prepend the path that leads to it.
const fn here(character: char) -> Found {
    Found { path: String::new(), character }
}

fn find(value: &Value, is_bad: fn(char) -> bool) -> Option<Found> {
    match value {
        Value::String(text) => text.chars().find(|c| is_bad(*c)).map(here),
        Value::Array(elements) => elements.iter().enumerate().find_map(|(index, element)| {
            let mut found = find(element, is_bad)?;
            prepend_index(&mut found.path, index);
            Some(found)
        }),
        Value::Object(members) => find_in_members(members, is_bad),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn find_in_members(members: &Map<String, Value>, is_bad: fn(char) -> bool) -> Option<Found> {
    find_among(members.iter(), is_bad)
}

fn find_among<'a>(
    mut members: impl Iterator<Item = (&'a String, &'a Value)>,
    is_bad: fn(char) -> bool,
) -> Option<Found> {
    members.find_map(|(key, member)| {
        let mut found = key.chars().find(|c| is_bad(*c)).map(here).or_else(|| find(member, is_bad))?;
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
    fn control_characters_are_reported_with_their_path() {
        assert_eq!(field(&json!({ "a": ["b", { "c": "\u{1b}[2J" }] })).as_deref(), Some("meta.a[1].c"));
        assert_eq!(field(&json!({ "a\0b": 1 })).as_deref(), Some("meta[\"a\\0b\"]"));
        for control in ["\0", "\u{8}", "\u{b}", "\u{7f}", "\u{85}"] {
            assert_eq!(field(&json!({ "a": control })).as_deref(), Some("meta.a"), "{control:?}");
        }
    }

    #[test]
    fn nul_is_found_except_in_one_member() {
        let object = json!({ "a": [{ "b": "x\0" }], "context": { "c": "\0" }, "d": "\u{1}" });
        let fault = require_no_nul(object.as_object().unwrap(), Some("context")).unwrap_err();
        assert!(fault.message.starts_with("a[0].b: contains the control character U+0000"), "{fault}");
        let object = json!({ "context": { "c": "\0" }, "d": "\u{1}" });
        assert_eq!(require_no_nul(object.as_object().unwrap(), Some("context")).map_err(|_| ()), Ok(()));
    }

    #[test]
    fn text_with_tabs_line_ends_and_any_script_passes() {
        let value = json!({ "ключ\n": ["a\tb\r\n", 1, null, true, "👩‍💻\u{202e}"] });
        assert_eq!(field(&value), None);
    }
}
