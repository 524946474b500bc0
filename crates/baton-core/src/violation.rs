//! Checks documents against Baton's own JSON Schemas and describes every violation.
//!
//! Supports the keywords that occur in these schemas, and ignores others. Tests compare the results with those of a
//! complete validator and check the keywords of every operation.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords with an effect, and those that only describe.
pub const SCHEMA_KEYWORDS: [&str; 23] = [
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "$schema",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
];

/// A part of a document that violates its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Path of the field, for example `nested.tags[1]`; empty for the whole document.
    pub(crate) field: String,
    pub(crate) problem: String,
    pub(crate) kind: ViolationKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    /// A required field is missing.
    Missing,
    /// The schema has no such field.
    Unknown,
    /// The value is not allowed.
    Invalid,
}

/// Lists what violates a schema.
pub(crate) fn violations(schema: &Value, document: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    check(schema, document, "", &mut found);
    found
}

/// Appends a name to the path of a field.
pub(crate) fn join(place: &str, name: &str) -> String {
    match (place, name) {
        ("", name) => name.to_owned(),
        (place, "") => place.to_owned(),
        (place, name) => format!("{place}.{name}"),
    }
}

fn check(schema: &Value, value: &Value, field: &str, found: &mut Vec<Violation>) {
    let mut add = |kind, problem: String| found.push(Violation { field: field.to_owned(), problem, kind });
    if schema == &Value::Bool(false) {
        return add(ViolationKind::Unknown, "is not a known field".to_owned());
    }
    let Value::Object(schema) = schema else { return };
    if let Some(problem) = wrong_type(schema, value) {
        return add(ViolationKind::Invalid, problem);
    }
    for problem in schema.iter().filter_map(|(keyword, limit)| problem(keyword, limit, value)) {
        add(ViolationKind::Invalid, problem);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
            check_choices(choices, value, field, found);
        }
    }
    match value {
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &format!("{field}[{index}]"), found);
                }
            }
        }
        Value::Object(members) => check_members(schema, members, field, found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_members(
    schema: &Map<String, Value>,
    members: &Map<String, Value>,
    field: &str,
    found: &mut Vec<Violation>,
) {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
        let (field, problem) = (join(field, name), "is missing".to_owned());
        found.push(Violation { field, problem, kind: ViolationKind::Missing });
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (name, member) in members {
        if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(others) {
            check(schema, member, &join(field, name), found);
        }
    }
}

/// Checks a value against a list of schemas, of which one must accept it.
fn check_choices(choices: &[Value], value: &Value, field: &str, found: &mut Vec<Violation>) {
    let is_accepted = |choice: &Value| {
        let mut found = Vec::new();
        check(choice, value, field, &mut found);
        found.is_empty()
    };
    if choices.iter().any(is_accepted) {
        return;
    }
    // If only one choice has the type of the value, its violations are the useful ones. The schema of an optional object
    // has such choices.
    let has_type =
        |choice: &&Value| choice.as_object().is_some_and(|choice| wrong_type(choice, value).is_none());
    let mut candidates = choices.iter().filter(has_type);
    if let (Some(only), None) = (candidates.next(), candidates.next()) {
        return check(only, value, field, found);
    }
    let constants: Vec<&Value> = choices.iter().filter_map(|choice| choice.get("const")).collect();
    let problem = match constants.as_slice() {
        [] => "has none of the allowed forms".to_owned(),
        constants => one_of(constants.iter().copied()),
    };
    found.push(Violation { field: field.to_owned(), problem, kind: ViolationKind::Invalid });
}

/// Describes what is wrong with the type of a value.
fn wrong_type(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let allowed: Vec<&str> = match schema.get("type")? {
        Value::String(only) => vec![only],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let fits = |name: &&str| match value {
        Value::Null => *name == "null",
        Value::Bool(_) => *name == "boolean",
        Value::String(_) => *name == "string",
        Value::Array(_) => *name == "array",
        Value::Object(_) => *name == "object",
        Value::Number(number) => {
            let is_integral = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            *name == "number" || (*name == "integer" && is_integral)
        }
    };
    if allowed.iter().any(fits) {
        return None;
    }
    let names: Vec<&str> = allowed.into_iter().map(type_name).collect();
    Some(format!("must be {}", names.join(" or ")))
}

fn type_name(name: &str) -> &str {
    match name {
        "boolean" => "true or false",
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// Describes how a value violates a keyword that limits the value itself.
fn problem(keyword: &str, limit: &Value, value: &Value) -> Option<String> {
    let size = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
    match (keyword, value) {
        ("const", value) if value != limit => Some(one_of(std::iter::once(limit))),
        ("enum", value) => {
            let allowed = limit.as_array()?;
            (!allowed.contains(value)).then(|| one_of(allowed.iter()))
        }
        ("minimum", Value::Number(_)) if compare(value, limit) == Some(Ordering::Less) => {
            Some(format!("must be at least {limit}"))
        }
        ("maximum", Value::Number(_)) if compare(value, limit) == Some(Ordering::Greater) => {
            Some(format!("must be at most {limit}"))
        }
        ("minLength", Value::String(text)) if text.chars().count() < size? => Some(match size {
            Some(1) => "must not be empty".to_owned(),
            _ => format!("must have at least {limit} characters"),
        }),
        ("maxLength", Value::String(text)) if text.chars().count() > size? => {
            Some(format!("must have at most {limit} characters"))
        }
        ("pattern", Value::String(text)) => {
            let pattern = limit.as_str()?;
            (!compiled(pattern)?.is_match(text)).then(|| format!("must match {pattern}"))
        }
        ("minItems", Value::Array(items)) if items.len() < size? => {
            Some(format!("must have at least {limit} elements"))
        }
        ("maxItems", Value::Array(items)) if items.len() > size? => {
            Some(format!("must have at most {limit} elements"))
        }
        _ => None,
    }
}

fn one_of<'a>(allowed: impl Iterator<Item = &'a Value>) -> String {
    must_be_one_of(allowed.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// Describes a value that is not one of the allowed names.
pub(crate) fn must_be_one_of(names: impl Iterator<Item = impl Into<String>>) -> String {
    let names: Vec<String> = names.map(Into::into).collect();
    match names.as_slice() {
        [only] => format!("must be {only}"),
        several => format!("must be one of {}", several.join(", ")),
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    let integer = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Returns a compiled pattern. Patterns are kept, because they come from a fixed set of schemas and compiling takes longer
/// than matching.
fn compiled(pattern: &str) -> Option<Regex> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(pattern) {
        return known.clone();
    }
    let regex = Regex::new(pattern).ok();
    compiled.insert(pattern.to_owned(), regex.clone());
    regex
}

#[cfg(test)]
#[path = "violation_tests.rs"]
mod tests;
