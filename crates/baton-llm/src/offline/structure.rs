//! JSON output, described by its members.

use serde_json::{Map, Value};

use super::facts::{Detail, names, paths};
use super::text::{counted, one_line};

/// Maximum size of JSON that is parsed.
const MAX_BYTES: usize = 1_000_000;
/// Maximum nesting depth that is examined.
const MAX_DEPTH: usize = 32;
/// Maximum number of member names that are listed.
const MAX_KEYS: usize = 24;
/// Minimum number of characters of a member that are shown.
const MIN_PART: usize = 24;
/// Members that identify a value, most relevant first.
const IDENTIFYING_MEMBERS: &[&str] = &[
    "identifier",
    "number",
    "title",
    "name",
    "path",
    "file",
    "line",
    "status",
    "state",
    "type",
    "level",
    "msg",
    "message",
    "subject",
    "error",
    "description",
    "body",
    "text",
    "content",
    "url",
    "author",
    "login",
    "branch",
    "gitBranchName",
    "version",
    "id",
];

/// Adds the content of JSON text. Returns false if the text is not JSON.
pub(super) fn fill(text: &str, detail: &mut Detail) -> bool {
    let values = read(text);
    if values.is_empty() {
        return false;
    }
    fill_values(&values, detail);
    true
}

/// Parses JSON, or one JSON value per line.
pub(super) fn read(text: &str) -> Vec<Value> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) || trimmed.len() > MAX_BYTES {
        return Vec::new();
    }
    if let Ok(value) = serde_json::from_str::<Value>(trimmed) {
        return match value {
            Value::Array(elements) => elements,
            value => vec![value],
        };
    }
    let lines: Vec<&str> = trimmed.lines().filter(|line| !line.trim().is_empty()).collect();
    let values: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // The last line may be truncated.
    if values.is_empty() || values.len() + 2 < lines.len() { Vec::new() } else { values }
}

/// Adds one line per value with its most relevant members, then the names in all values.
pub(super) fn fill_values(values: &[Value], detail: &mut Detail) {
    let whole = detail.reserve(detail.left() * 11 / 20);
    if let [Value::Object(only)] = values {
        fill_object(only, detail);
    } else {
        let mut keys: Vec<&str> = Vec::new();
        for key in values.iter().take(200).filter_map(Value::as_object).flat_map(Map::keys) {
            if keys.len() < MAX_KEYS
                && !key.ends_with("url")
                && !key.starts_with('_')
                && !keys.contains(&key.as_str())
            {
                keys.push(key);
            }
        }
        detail.list(&format!("{} with", counted(values.len(), "entry")), keys);
        let each = detail.left() / values.len().clamp(1, 8);
        detail.lines(values.iter().map(|value| line_of(value, each.max(60))));
    }
    detail.restore(whole);
    let mut text = String::new();
    values.iter().for_each(|value| collect(value, &mut text, 0));
    let whole = detail.reserve(detail.left() * 2 / 3);
    detail.list("Files", paths(&text, None));
    detail.restore(whole);
    detail.names("Names", &names(&text));
}

/// Collects all text of a value except URLs and member names.
fn collect(value: &Value, text: &mut String, depth: usize) {
    match value {
        Value::String(words) if !words.starts_with("http") || words.contains(' ') => {
            text.push_str(words);
            text.push('\n');
        }
        Value::Array(elements) if depth < MAX_DEPTH => {
            elements.iter().for_each(|element| collect(element, text, depth + 1))
        }
        Value::Object(members) if depth < MAX_DEPTH => {
            members.values().for_each(|member| collect(member, text, depth + 1))
        }
        _ => {}
    }
}

fn fill_object(object: &Map<String, Value>, detail: &mut Detail) {
    for name in IDENTIFYING_MEMBERS {
        if let Some(text) = object.get(*name).and_then(scalar) {
            detail.line(&format!("{name}: {}", one_line(&text, 200)));
        }
    }
    for (name, value) in object {
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                detail.line(&format!("{name}: {}", counted(elements.len(), "entry")));
                detail.lines(elements.iter().take(12).map(|element| format!("  {}", line_of(element, 140))));
            }
            Value::Object(inner) if !inner.is_empty() => {
                let line = line_of(value, 140);
                if !line.is_empty() {
                    detail.line(&format!("{name}: {line}"));
                }
            }
            _ if IDENTIFYING_MEMBERS.contains(&name.as_str()) || name.ends_with("url") => {}
            _ => {
                if let Some(text) = scalar(value) {
                    detail.line(&format!("{name}: {}", one_line(&text, 100)));
                }
            }
        }
    }
}

/// Formats a value on one line by its most relevant members.
fn line_of(value: &Value, characters: usize) -> String {
    let Value::Object(object) = value else {
        return scalar(value).map(|text| one_line(&text, characters)).unwrap_or_default();
    };
    let mut parts: Vec<String> = IDENTIFYING_MEMBERS
        .iter()
        .filter_map(|name| {
            object.get(*name).and_then(scalar).map(|text| format!("{name} {}", one_line(&text, 120)))
        })
        .collect();
    if parts.is_empty() {
        parts = object
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", one_line(&scalar(value)?, 80))))
            .collect();
    }
    let mut line = String::new();
    for part in parts {
        let room = characters.saturating_sub(line.chars().count() + 2);
        // A part is omitted if too little of it would be visible.
        if !line.is_empty() && room < part.chars().count().min(MIN_PART) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(&one_line(&part, room.max(MIN_PART)));
    }
    line
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("true".into()),
        _ => None,
    }
}
