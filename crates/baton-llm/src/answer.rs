//! Strict parser of model answers.
//!
//! Owns the limits of every field and the schemas for structured output. Code fences and text around the object are
//! accepted; a missing title, a wrong type or an incomplete object is an error.

use baton_core::observation::{
    CompressedObservation, FunctionAction, FunctionChange, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS, SessionSummary,
};
use baton_core::{JsonError, JsonErrorKind, first_characters, one_line, read_strict, strip_control};
use serde_json::{Map, Value, json};

/// Maximum length of a detail in characters; longer details are truncated.
pub(crate) const MAX_DETAIL_CHARS: usize = 8_000;

/// Maximum length of a session summary in characters; longer summaries are truncated.
const MAX_SESSION_SUMMARY_CHARS: usize = 4_000;
const MAX_ENTRIES: usize = 100;
const MAX_ENTRY_CHARS: usize = 500;

/// Number of characters of the answer in an error message.
const SHOWN_CHARS: usize = 200;

/// Error in a model's answer. The message contains the first 200 characters of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; the answer begins: {shown}")]
pub(crate) struct AnswerError {
    problem: String,
    shown: String,
}

/// Parses an observation from a model's answer.
///
/// # Errors
///
/// If the answer contains no JSON object, a required field is missing or empty, or a field has a wrong type.
pub(crate) fn read_observation(answer: &str) -> Result<CompressedObservation, AnswerError> {
    // Redact before fields are truncated, because a truncated secret would not be recognised.
    let answer = &baton_secrets::redact(answer);
    read_object(answer)
        .and_then(|members| observation_of(&members))
        .map_err(|problem| answer_error(answer, problem))
}

/// Parses a session summary from a model's answer.
///
/// # Errors
///
/// As for [`read_observation`].
pub(crate) fn read_summary(answer: &str) -> Result<SessionSummary, AnswerError> {
    let answer = &baton_secrets::redact(answer);
    read_object(answer)
        .and_then(|members| summary_of(&members))
        .map_err(|problem| answer_error(answer, problem))
}

/// Returns the JSON schema of an observation, in the subset that endpoints support for structured output.
pub(crate) fn observation_schema() -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let function = object_schema(json!({
        "file": text,
        "name": text,
        "action": { "type": "string", "enum": ["new", "modified", "deleted"] },
    }));
    object_schema(json!({
        "title": text,
        "summary": text,
        "detail": { "anyOf": [text, { "type": "null" }] },
        "files_touched": texts,
        "functions_changed": { "type": "array", "items": function },
    }))
}

/// Returns the JSON schema of a session summary, in the subset that endpoints support for structured output.
pub(crate) fn summary_schema() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    object_schema(json!({ "summary": { "type": "string" }, "key_files": texts, "key_decisions": texts }))
}

/// Returns the schema of an object with exactly these members, because endpoints require that all members are required
/// and no others are allowed.
fn object_schema(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let required = json!(required);
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn answer_error(answer: &str, problem: String) -> AnswerError {
    let shown = match one_line(first_characters(answer.trim(), SHOWN_CHARS), SHOWN_CHARS) {
        shown if shown.is_empty() => "(nothing)".to_owned(),
        shown => shown,
    };
    AnswerError { problem, shown }
}

/// Finds and parses the JSON object in an answer.
fn read_object(answer: &str) -> Result<Map<String, Value>, String> {
    let answer = without_thinking(answer.trim().trim_start_matches('\u{feff}'));
    let text = if answer.starts_with('{') { answer } else { fenced(answer).unwrap_or(answer) };
    let whole = read_strict(text.as_bytes()).or_else(|error| match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end))
            if start < end && (start > 0 || error.kind == JsonErrorKind::TrailingCharacters) =>
        {
            read_strict(&text.as_bytes()[start..=end])
        }
        _ => Err(error),
    });
    match whole {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("the answer is JSON but not an object".to_owned()),
        Err(error) => Err(format!("the answer is not a JSON object: {}", problem_of(&error))),
    }
}

/// Describes a JSON error without quoting the text.
fn problem_of(error: &JsonError) -> String {
    let problem = match &error.kind {
        JsonErrorKind::DuplicateKey(_) => "duplicate key".to_owned(),
        JsonErrorKind::IntegerWouldRound(_) => "an integer would be rounded".to_owned(),
        kind => kind.to_string(),
    };
    format!("{problem} at line {} column {}", error.line, error.column)
}

/// Removes the `<think>` block that some models write first.
fn without_thinking(answer: &str) -> &str {
    let thoughts = answer.starts_with("<think>").then(|| answer.rsplit_once("</think>")).flatten();
    thoughts.map_or(answer, |(_, after)| after.trim())
}

/// Returns the text between the first and the last code fence, or up to the end if the fence is not closed.
fn fenced(answer: &str) -> Option<&str> {
    let (_, from) = answer.split_once("```")?;
    let from = from.split_once('\n').map_or(from, |(language, inside)| {
        let is_language = language.trim().chars().all(|c| c.is_ascii_alphanumeric());
        if is_language { inside } else { from }
    });
    Some(from.rsplit_once("```").map_or(from, |(inside, _)| inside).trim())
}

fn observation_of(members: &Map<String, Value>) -> Result<CompressedObservation, String> {
    Ok(CompressedObservation {
        title: one_line(required(members, "title")?, MAX_TITLE_CHARS),
        summary: bounded(required(members, "summary")?, MAX_SUMMARY_CHARS),
        detail: optional(members, "detail")?
            .map(|detail| bounded(detail, MAX_DETAIL_CHARS))
            .filter(|detail| !detail.is_empty()),
        files_touched: texts(members, "files_touched")?,
        functions_changed: functions(members)?,
    })
}

fn summary_of(members: &Map<String, Value>) -> Result<SessionSummary, String> {
    Ok(SessionSummary {
        summary: bounded(required(members, "summary")?, MAX_SESSION_SUMMARY_CHARS),
        key_files: texts(members, "key_files")?,
        key_decisions: texts(members, "key_decisions")?,
    })
}

fn bounded(text: &str, max: usize) -> String {
    let plain = strip_control(text);
    first_characters(plain.trim(), max).trim_end().to_owned()
}

fn required<'a>(members: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    let text = optional(members, field)?.ok_or_else(|| format!("`{field}` is missing"))?;
    if strip_control(text).trim().is_empty() { Err(format!("`{field}` is empty")) } else { Ok(text) }
}

fn optional<'a>(members: &'a Map<String, Value>, field: &str) -> Result<Option<&'a str>, String> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(field, "a string", other)),
    }
}

/// Returns a list; empty if the field is absent or null.
fn list<'a>(members: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], String> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(other) => Err(wrong(field, "a list", other)),
    }
}

fn texts(members: &Map<String, Value>, field: &str) -> Result<Vec<String>, String> {
    let mut kept: Vec<String> = Vec::new();
    for (index, entry) in list(members, field)?.iter().enumerate() {
        let text = entry.as_str().ok_or_else(|| wrong(&format!("{field}[{index}]"), "a string", entry))?;
        let text = one_line(text, MAX_ENTRY_CHARS);
        if !text.is_empty() && !kept.contains(&text) && kept.len() < MAX_ENTRIES {
            kept.push(text);
        }
    }
    Ok(kept)
}

fn functions(members: &Map<String, Value>) -> Result<Vec<FunctionChange>, String> {
    const FIELD: &str = "functions_changed";
    let mut kept = Vec::new();
    for (index, entry) in list(members, FIELD)?.iter().enumerate() {
        let place = format!("{FIELD}[{index}]");
        let entry = entry.as_object().ok_or_else(|| wrong(&place, "an object", entry))?;
        let text = |name| required(entry, name).map_err(|problem| format!("{place}: {problem}"));
        let action = match text("action")? {
            "new" => FunctionAction::New,
            "modified" => FunctionAction::Modified,
            "deleted" => FunctionAction::Deleted,
            _ => return Err(format!("`{place}.action` is not new, modified or deleted")),
        };
        let change = FunctionChange {
            file: one_line(text("file")?, MAX_ENTRY_CHARS),
            name: one_line(text("name")?, MAX_ENTRY_CHARS),
            action,
        };
        if kept.len() < MAX_ENTRIES {
            kept.push(change);
        }
    }
    Ok(kept)
}

fn wrong(field: &str, wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("`{field}` is not {wanted} but {found}")
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
