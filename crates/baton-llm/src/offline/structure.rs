//! Descriptions of JSON that a tool printed: the texts that people wrote, then the names, states and short members of its
//! entries.

use baton_core::{ends_with_any, shorten};
use serde_json::{Map, Value};

use super::call::{Call, encoded_data};
use super::draft::Draft;
use super::facts::Detail;
use super::prose::{self, PROSE_BYTES};
use super::text::{counted, join_within, one_line};

/// Maximum size of JSON that is parsed.
const MAX_BYTES: usize = 1_000_000;
/// Maximum depth at which members are read.
const MAX_DEPTH: usize = 16;
/// Maximum number of entries of an array that are read.
const MAX_ENTRIES: usize = 200;
/// A text with at least this many words counts as written by a person.
const WRITTEN_WORDS: usize = 4;
/// JSON with this many bytes of such texts is kept like prose.
const WRITTEN_BYTES: usize = 400;
/// Maximum number of short members of an entry that are listed.
const MAX_SCALARS: usize = 8;

/// Members that name an entry, the most informative first.
const NAMES: &[&str] = &["identifier", "number", "key", "id", "title", "name", "path", "file", "subject"];
/// Members that contain the state of an entry.
const STATES: &[&str] = &["state", "status", "conclusion", "type", "level"];
/// Members that are quotations of code.
const QUOTED: &[&str] = &["diff_hunk", "patch", "diff", "original_content"];

/// Describes JSON. If people wrote much of its text, the detail has as much room as for prose.
pub(super) fn draft(call: &Call<'_>, title: String, summary: String, values: &[Value]) -> Draft {
    let (draft, mut detail) = Draft::begin(call, title, summary);
    let written: usize = values.iter().map(|value| written_bytes(value, 0)).sum();
    if written > WRITTEN_BYTES {
        detail = Detail::new(PROSE_BYTES, &draft.title, &draft.summary);
    }
    fill_values(values, &mut detail);
    draft.with_detail(detail)
}

/// Adds the content of JSON text. Returns false if the text is not JSON.
pub(super) fn fill(text: &str, detail: &mut Detail) -> bool {
    let values = read(text);
    fill_values(&values, detail);
    !values.is_empty()
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

/// Returns the values of a response: the response itself, or the JSON in its text.
pub(super) fn of_response(response: &Value, text: &str) -> Vec<Value> {
    let is_part = |value: &Value| value.get("type").is_some() || value.is_string();
    let is_text = match response {
        Value::Array(elements) => elements.iter().all(is_part),
        Value::Object(members) => members.get("content").is_some() || members.get("text").is_some(),
        _ => true,
    };
    match response {
        _ if is_text => read(text),
        Value::Array(elements) => elements.clone(),
        response => vec![response.clone()],
    }
}

/// Adds entries, each with its share of the room.
fn fill_values(values: &[Value], detail: &mut Detail) {
    for (index, value) in values.iter().take(MAX_ENTRIES).enumerate() {
        let share = detail.left() / (values.len() - index).clamp(1, 40);
        if share < 24 {
            detail.line(&format!("[{} left out]", counted(values.len() - index, "entry")));
            return;
        }
        let reserved = detail.left() - share.max(160).min(detail.left());
        detail.reserving(reserved, |detail| fill_value(value, "", 0, detail));
    }
}

fn fill_value(value: &Value, label: &str, depth: usize, detail: &mut Detail) {
    let prefix = if label.is_empty() { String::new() } else { format!("{label}: ") };
    match value {
        Value::Object(object) if depth < MAX_DEPTH => fill_object(object, label, depth, detail),
        Value::Array(elements) if depth < MAX_DEPTH => {
            let scalars: Vec<String> = elements.iter().take(MAX_ENTRIES).filter_map(scalar).collect();
            if scalars.len() == elements.len().min(MAX_ENTRIES) {
                if !scalars.is_empty() {
                    detail.line(&format!("{prefix}{}", join_within(&scalars, 200)));
                }
                return;
            }
            if !label.is_empty() {
                detail.line(&format!("{prefix}{}", counted(elements.len(), "entry")));
            }
            fill_values(elements, detail);
        }
        _ => {
            if let Some(text) = scalar(value) {
                fill_text(&prefix, &text, detail);
            }
        }
    }
}

/// Adds an object: its name and state on one line, its texts, then its short members, and nested values.
fn fill_object(object: &Map<String, Value>, label: &str, depth: usize, detail: &mut Detail) {
    let head = head_of(object);
    let prefix = if label.is_empty() || head.is_empty() { String::new() } else { format!("{label}: ") };
    if !head.is_empty() {
        detail.line(&format!("{prefix}{head}"));
    }
    let is_in_head = |name: &str| {
        NAMES.contains(&name) || STATES.contains(&name) || matches!(name, "line" | "author" | "user")
    };
    let mut scalars = 0;
    for (name, value) in object {
        if let Some(text) = value.as_str().filter(|text| is_written(name, text) && !is_in_head(name)) {
            // If an entry has a name and a text, its other members are omitted.
            scalars = if head.is_empty() { scalars } else { MAX_SCALARS };
            let is_usual = matches!(name.as_str(), "body" | "text" | "content" | "description" | "message");
            fill_text(&if is_usual { String::new() } else { format!("{name}: ") }, text, detail);
        }
    }
    let short = object.iter().filter(|(name, value)| {
        !is_in_head(name) && !is_noise(name) && value.as_str().is_none_or(|text| !is_written(name, text))
    });
    for (name, value) in short {
        match value {
            Value::Object(_) | Value::Array(_) => fill_value(value, name, depth + 1, detail),
            _ if scalars >= MAX_SCALARS => {}
            _ => {
                if let Some(text) = scalar(value) {
                    scalars += 1;
                    detail.line(&format!("{name}: {}", one_line(&text, 100)));
                }
            }
        }
    }
}

/// Adds a text: as prose if it is long, otherwise on one line. A truncated text is marked.
fn fill_text(prefix: &str, text: &str, detail: &mut Detail) {
    let text = without_comments(text);
    let line = format!("{prefix}{}", one_line(&text, 100_000));
    if line.len() <= detail.left().min(400) {
        detail.paragraph(&line);
    } else if detail.left() > 600 {
        detail.paragraph(prefix.trim());
        prose::fill(&text, None, detail);
    } else {
        detail.paragraph(&shorten(&line, detail.left().saturating_sub(8).max(16)));
    }
}

/// Returns the subject of JSON for a title: the name of its only entry, or the number of entries.
pub(super) fn outcome(text: &str) -> Option<String> {
    match read(text).as_slice() {
        [] => None,
        [Value::Object(only)] => Some(one_line(&head_of(only), 48)).filter(|head| !head.is_empty()),
        entries => Some(counted(entries.len(), "entry")),
    }
}

/// Returns the name, state and author of an object: `ENT-95 Explain the folders (Todo, by alice)` or
/// `src/a.rs:12 (by bob)`.
fn head_of(object: &Map<String, Value>) -> String {
    // A state may be an object with a name. A long id is not informative.
    let text = |name: &&str| {
        let value = object.get(*name)?;
        let text = scalar(value).or_else(|| value.get("name").and_then(scalar))?;
        (*name != "id" || is_short_id(&text)).then(|| one_line(&text, 160))
    };
    let mut names: Vec<String> = NAMES.iter().filter_map(&text).take(3).collect();
    if let (Some(last), Some(line)) =
        (names.last_mut().filter(|_| object.contains_key("path")), text(&"line"))
    {
        last.push_str(&format!(":{line}"));
    }
    let mut marks: Vec<String> = STATES.iter().filter_map(text).take(2).collect();
    marks.extend(
        ["author", "user"]
            .iter()
            .find_map(|name| person(object.get(*name)?))
            .map(|name| format!("by {name}")),
    );
    match (names.is_empty(), marks.is_empty()) {
        (_, true) => names.join(" "),
        (true, false) => marks.join(", "),
        (false, false) => format!("{} ({})", names.join(" "), marks.join(", ")),
    }
}

/// Returns true for `6` and `ENT-241`, and false for a long number or a hash.
fn is_short_id(id: &str) -> bool {
    id.len() <= if id.contains('-') { 16 } else { 6 }
}

fn person(value: &Value) -> Option<String> {
    let name = value
        .as_str()
        .or_else(|| ["login", "name", "displayName"].iter().find_map(|key| value.get(key)?.as_str()))?;
    Some(one_line(name, 60)).filter(|name| !name.is_empty())
}

fn is_written(name: &str, text: &str) -> bool {
    !QUOTED.contains(&name) && text.split_whitespace().take(WRITTEN_WORDS).count() >= WRITTEN_WORDS
}

/// Returns true for members with addresses, ids, times, code or links.
fn is_noise(name: &str) -> bool {
    ends_with_any(name, "url|Url|_id|Id|_at|At")
        || name.starts_with('_')
        || QUOTED.contains(&name)
        || matches!(name, "id" | "node_id" | "reactions" | "avatar" | "usage" | "signature" | "links")
}

fn written_bytes(value: &Value, depth: usize) -> usize {
    match value {
        Value::Array(elements) if depth < MAX_DEPTH => {
            elements.iter().take(MAX_ENTRIES).map(|element| written_bytes(element, depth + 1)).sum()
        }
        Value::Object(members) if depth < MAX_DEPTH => members
            .iter()
            .map(|(name, member)| match member {
                Value::String(text) if is_written(name, text) => text.len(),
                member => written_bytes(member, depth + 1),
            })
            .sum(),
        _ => 0,
    }
}

/// Removes HTML comments from Markdown.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            Some(encoded_data(text).unwrap_or_else(|| text.clone()))
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("true".into()),
        _ => None,
    }
}
