//! Reading the parameters of a call into their type.
//!
//! Owns the conversion of integers and the report of invalid fields, which lists all of them at once: fields that cannot
//! be read, and fields outside the limits of the schema. Checks of the typed parameters are elsewhere.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

use crate::error::{ErrorCode, Fault};
use crate::schema::params_schema;
use crate::truncate::printable;
use crate::violation::{Violation, ViolationKind, join, must_be_one_of, violations};

/// Largest integer up to which all integers are exact as floats.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum number of values searched for floats in one parameter. Integer parameters are found within this limit.
const MAX_SEARCHED: usize = 256;
/// Maximum size of a parameter that is copied to search for problems after the first one.
const MAX_COPIED_BYTES: usize = 64 * 1024;
/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 20;
/// Maximum length of the description of a problem in characters.
const MAX_PROBLEM_CHARS: usize = 1_000;

/// Returns the integer that a float stands for, as in `1.0` or `1e2`.
pub fn integral(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the number is integral and within ±2^53")]
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT).then_some(number as i64)
}

/// Reads parameters into their type. Integral floats are accepted where the type has an integer. The parameter `attached`
/// is passed separately and is not reported as missing. The faults of `earlier` checks are reported with the others.
///
/// # Errors
///
/// `invalid_request` that names every field that is missing, unknown or of the wrong type. It then also names every other
/// field that violates the schema.
pub fn read_params<T: DeserializeOwned + JsonSchema>(
    params: Value,
    attached: Option<&str>,
    earlier: Result<(), Fault>,
) -> Result<T, Fault> {
    let mut result = None;
    let mut read = |params| {
        let read = serde_path_to_error::deserialize(params).map_err(|error| Problem::of(&error))?;
        result = Some(read);
        Ok(())
    };
    Fault::all([earlier, read_all(params, attached, params_schema::<T>, &mut read)])?;
    result.ok_or_else(|| Fault::new(ErrorCode::Internal, "the parameters were not read"))
}

/// The part of [`read_params`] that does not depend on the type, which is given by its schema and by a function that reads
/// it.
fn read_all(
    mut params: Value,
    attached: Option<&str>,
    schema: fn() -> Value,
    read: &mut dyn FnMut(Value) -> Result<(), Problem>,
) -> Result<(), Fault> {
    if has_float(&params) {
        normalize_integers(&schema(), &mut params);
    }
    let copied = copy_of(&params);
    let Err(first) = read(params) else { return Ok(()) };
    let problems = match copied {
        Some(mut copied) => {
            copied.omitted.extend(attached.map(str::to_owned));
            all_problems(first, copied, read, &schema())
        }
        None => vec![first],
    };
    Err(fault_of(&problems))
}

/// Returns true if a parameter has a float among its first [`MAX_SEARCHED`] values.
fn has_float(params: &Value) -> bool {
    fn search(value: &Value, remaining: &mut usize) -> bool {
        if *remaining == 0 {
            return false;
        }
        *remaining -= 1;
        match value {
            Value::Number(number) => number.is_f64(),
            Value::Array(items) => items.iter().any(|item| search(item, remaining)),
            Value::Object(members) => members.values().any(|member| search(member, remaining)),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
    params.as_object().into_iter().flat_map(Map::values).any(|member| {
        let mut remaining = MAX_SEARCHED;
        search(member, &mut remaining)
    })
}

/// Replaces integral floats with integers where the schema has an integer, and nowhere else.
fn normalize_integers(schema: &Value, value: &mut Value) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for schema in schema[keyword].as_array().into_iter().flatten() {
            normalize_integers(schema, value);
        }
    }
    match value {
        Value::Number(number) => {
            let has = |kind: &str| match &schema["type"] {
                Value::String(only) => only == kind,
                Value::Array(kinds) => kinds.iter().any(|one| one == kind),
                _ => false,
            };
            if let Some(integer) = number.as_f64().filter(|_| number.is_f64()).and_then(integral)
                && has("integer")
                && !has("number")
            {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalize_integers(&schema["items"], item)),
        Value::Object(members) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(member) = members.get_mut(name) {
                    normalize_integers(schema, member);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Copy of the parameters, used to search for further problems.
struct Copied {
    params: Value,
    /// Parameters that are too large to copy, or passed separately.
    omitted: Vec<String>,
}

/// Copies all parameters that are not too large. Returns `None` if the parameters are not an object.
fn copy_of(params: &Value) -> Option<Copied> {
    let (mut copied, mut omitted) = (Map::new(), Vec::new());
    for (name, member) in params.as_object()? {
        let mut remaining = MAX_COPIED_BYTES;
        if fits_into(member, &mut remaining) {
            copied.insert(name.clone(), member.clone());
        } else {
            omitted.push(name.clone());
        }
    }
    Some(Copied { params: Value::Object(copied), omitted })
}

/// Subtracts the size of a value from the remaining bytes. Returns false if there are too few.
fn fits_into(value: &Value, remaining: &mut usize) -> bool {
    let size = match value {
        Value::String(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = remaining.checked_sub(size) else { return false };
    *remaining = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits_into(item, remaining)),
        Value::Object(members) => members.iter().all(|(name, member)| {
            *remaining = remaining.saturating_sub(name.len());
            fits_into(member, remaining)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// Member names on the path to the field. For an element of an array, the path of the array.
    path: Vec<String>,
    /// The field as it is shown; empty for the parameters as a whole.
    field: String,
    text: String,
    is_missing: bool,
}

impl Problem {
    fn of(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let (shown, text) = (error.path().to_string(), error.inner().to_string());
        let mut path: Vec<String> = error
            .path()
            .iter()
            .map_while(|segment| match segment {
                Segment::Map { key } => Some(key.clone()),
                Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
            })
            .collect();
        let mut field = if shown == "." { String::new() } else { shown };
        let quoted = |start: &str| text.strip_prefix(start)?.split('`').next().map(str::to_owned);
        if let Some(name) = quoted("missing field `") {
            field = join(&field, &name);
            path.push(name);
            return Self { path, field, text: "is missing".to_owned(), is_missing: true };
        }
        if let Some(name) = quoted("unknown field `")
            && path.last() != Some(&name)
        {
            path.push(name);
        }
        let expected = |start: &str, end: &str| Some(text.strip_prefix(start)?.rsplit_once(end)?.1);
        let text = if let Some(expected) = expected("invalid type: ", ", expected ") {
            format!("must be {}", wire_type(expected))
        } else if let Some(names) = expected("unknown variant `", "`, expected ") {
            // Each name is in backquotes.
            must_be_one_of(names.split('`').skip(1).step_by(2))
        } else {
            printable(&text, MAX_PROBLEM_CHARS)
        };
        Self { path, field, text, is_missing: false }
    }

    /// Creates a problem from a violation of the schema.
    fn new(violation: &Violation) -> Self {
        let Violation { field, problem, kind } = violation;
        let is_missing = *kind == ViolationKind::Missing;
        Self { path: Vec::new(), field: field.clone(), text: problem.clone(), is_missing }
    }

    /// Returns the name of the field; empty for the parameters as a whole.
    fn name(&self) -> String {
        if self.field.is_empty() { self.path.join(".") } else { self.field.clone() }
    }

    /// Returns true if the problem is about the field, a part of it, or an object that contains it.
    fn is_about(&self, field: &str) -> bool {
        let name = self.name();
        let contains = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        contains(&name, field) || contains(field, &name)
    }

    fn message(&self) -> String {
        if self.field.is_empty() { self.text.clone() } else { format!("{}: {}", self.field, self.text) }
    }
}

/// Finds the problems after the first one: removes each invalid field and reads the rest again, then adds missing
/// fields and violations of the schema.
fn all_problems(
    first: Problem,
    copied: Copied,
    read: &mut dyn FnMut(Value) -> Result<(), Problem>,
    schema: &Value,
) -> Vec<Problem> {
    let Copied { params: sent, omitted } = copied;
    let mut left = sent.clone();
    let mut last = first.clone();
    let mut known = vec![first];
    let mut is_complete = false;
    while known.len() < MAX_PROBLEMS {
        // Deserialization checks fields in the order of the request and detects missing fields last. If a field is
        // missing inside an object, the object is removed, because the fields after it are still unchecked.
        let object = last.path.len().saturating_sub(1);
        let path = if last.is_missing { last.path.get(..object).unwrap_or_default() } else { &last.path };
        if !remove(&mut left, path) {
            break;
        }
        match read(left.clone()) {
            Ok(()) => {
                is_complete = true;
                break;
            }
            Err(problem) => last = problem,
        }
        // A missing field may be one that was removed above. Fields that were never sent are added below.
        if !last.is_missing && !known.contains(&last) {
            known.push(last.clone());
        }
    }
    let violations = violations(schema, &sent);
    // The schema does not know aliases. A field that was sent under one is a duplicate if it is added under its name.
    let mut has_alias = |field: &str| {
        sent.as_object().into_iter().flatten().any(|(name, value)| {
            let both = [(name.clone(), value.clone()), (field.to_owned(), value.clone())];
            read(both.into_iter().collect()).is_err_and(|problem| problem.text.starts_with("duplicate field"))
        })
    };
    // Unknown fields are already known, because deserialization reports them. No field is missing if deserialization
    // succeeded.
    let of_kind = |kind| violations.iter().filter(move |violation| violation.kind == kind);
    for missing in of_kind(ViolationKind::Missing) {
        let is_known = known.iter().any(|problem| problem.field == missing.field);
        if !is_complete && !is_known && !omitted.contains(&missing.field) && !has_alias(&missing.field) {
            known.push(Problem::new(missing));
        }
    }
    for invalid in of_kind(ViolationKind::Invalid) {
        if !invalid.field.is_empty() && !known.iter().any(|problem| problem.is_about(&invalid.field)) {
            known.push(Problem::new(invalid));
        }
    }
    known.truncate(MAX_PROBLEMS);
    known
}

/// Removes a member. Returns false if it does not exist.
fn remove(params: &mut Value, path: &[String]) -> bool {
    let Some((name, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(params, |value, name| value.get_mut(name));
    parent.and_then(Value::as_object_mut).is_some_and(|members| members.remove(name).is_some())
}

fn fault_of(problems: &[Problem]) -> Fault {
    let messages: Vec<String> = problems.iter().map(Problem::message).collect();
    let named: Vec<Value> = problems
        .iter()
        .map(|problem| (problem.name(), problem))
        .filter(|(field, _)| !field.is_empty())
        .map(|(field, problem)| json!({ "field": field, "problem": problem.text }))
        .collect();
    let fault = Fault::new(ErrorCode::InvalidRequest, messages.join("; "));
    if named.is_empty() { fault } else { fault.details(json!({ "fields": named })) }
}

/// Returns the JSON name of a Rust type.
fn wire_type(expected: &str) -> &str {
    match expected {
        "i64" | "u32" | "u64" | "u16" | "u8" | "i32" => "a whole number",
        "a boolean" => "true or false",
        "a map" => "an object",
        "a sequence" => "an array",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Params {
        #[serde(default)]
        limit: Option<u32>,
        #[serde(default)]
        offset: Option<i64>,
        #[serde(alias = "title")]
        name: String,
        #[serde(default)]
        nested: Option<Nested>,
        #[serde(default)]
        free: Value,
        #[serde(default)]
        numbers: Vec<u64>,
        #[serde(default)]
        ratio: f64,
        #[serde(default)]
        #[schemars(range(min = 1, max = 200))]
        count: Option<i64>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Aliased {
        #[serde(rename = "sessionId", alias = "workflowId")]
        _workflow: String,
        #[serde(rename = "keys")]
        _keys: Vec<String>,
        #[serde(rename = "name", alias = "title")]
        _name: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Nested {
        count: u64,
        #[schemars(length(min = 1, max = 3))]
        text: String,
    }

    fn read(params: Value) -> Result<Params, Fault> {
        read_params(params, None, Ok(()))
    }

    fn fields(params: Value) -> Vec<String> {
        let fault = read(params).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidRequest);
        let named = fault.details.unwrap()["fields"].as_array().unwrap().clone();
        named.iter().map(|field| field["field"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn integral_floats_are_integers_where_the_type_has_one() {
        let params: Value = serde_json::from_str(
            r#"{"name":"n","limit":1.0,"offset":-1e2,"nested":{"count":3.0,"text":""},"free":{"x":[1.0]},
                "numbers":[1,2.0],"ratio":2.0,"count":7.0}"#,
        )
        .unwrap();
        let read = read(params).unwrap();
        let nested = read.nested.unwrap();
        assert_eq!((read.limit, read.offset, read.count), (Some(1), Some(-100), Some(7)));
        assert_eq!((nested.count, nested.text.as_str(), read.name.as_str()), (3, "", "n"));
        assert_eq!((read.free, read.numbers, read.ratio), (json!({ "x": [1.0] }), vec![1, 2], 2.0));
    }

    #[test]
    fn other_floats_are_not_integers() {
        for number in [json!(1.5), json!(1e300), json!(-1.0), json!("1")] {
            let fault = read(json!({ "name": "n", "limit": number })).unwrap_err();
            assert!(fault.message.starts_with("limit: "), "{}", fault.message);
        }
    }

    #[test]
    fn every_field_that_does_not_fit_is_reported() {
        let all = fields(json!({ "limit": "x", "offset": [], "nested": { "count": "y" }, "ratio": true }));
        assert_eq!(all, ["limit", "nested.count", "offset", "ratio", "name", "nested.text"]);
        let nested = fields(json!({ "nested": {}, "numbers": [1, "x"] }));
        assert_eq!(nested, ["nested.count", "numbers[1]", "name", "nested.text"]);
        assert_eq!(fields(json!({ "name": 1, "nmae": "n", "limt": 2 })), ["limt", "name", "nmae"]);
    }

    #[test]
    fn a_field_that_was_sent_with_its_other_name_is_not_missing() {
        assert_eq!(fields(json!({ "title": "n", "limit": "x" })), ["limit"]);
        let missing = |params| read_params::<Aliased>(params, None, Ok(())).unwrap_err().message;
        assert_eq!(missing(json!({ "workflowId": "w" })), "keys: is missing; name: is missing");
        assert_eq!(missing(json!({ "workflowId": "w", "title": "n" })), "keys: is missing");
        assert_eq!(
            missing(json!({ "title": "n", "keys": 1 })),
            "keys: must be an array; sessionId: is missing"
        );
    }

    #[test]
    fn limits_are_reported_together_with_wrong_types() {
        let params =
            json!({ "name": 1, "count": 201, "nested": { "count": 1, "text": "long" }, "numbers": [1] });
        let fault = read(params).unwrap_err();
        assert_eq!(
            fault.details.unwrap()["fields"],
            json!([
                { "field": "name", "problem": "must be a string" },
                { "field": "count", "problem": "must be at most 200" },
                { "field": "nested.text", "problem": "must have at most 3 characters" },
            ])
        );
        assert_eq!(fields(json!({ "count": 0, "numbers": [1, "x"] })), ["numbers[1]", "name", "count"]);
        assert_eq!(fields(json!({ "nested": null, "limit": -1 })), ["limit", "name"]);
    }

    #[test]
    fn values_of_enums_are_listed() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        enum Status {
            Raw,
            Done,
            Error,
        }
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        enum Order {
            OldestFirst,
            NewestFirst,
        }
        #[derive(Debug, Deserialize, JsonSchema)]
        enum Only {
            #[serde(rename = "1.0")]
            One,
        }
        #[derive(Debug, Deserialize, JsonSchema)]
        struct Filter {
            #[serde(rename = "status", default)]
            _status: Option<Status>,
            #[serde(rename = "orders", default)]
            _orders: Vec<Order>,
            #[serde(rename = "version")]
            _version: Only,
        }
        let params = json!({ "status": "`, expected `x`", "orders": ["newest_first", ""], "version": "2" });
        assert_eq!(
            read_params::<Filter>(params, None, Ok(())).unwrap_err().message,
            "orders[1]: must be one of oldest_first, newest_first; status: must be one of raw, done, error; \
             version: must be 1.0"
        );
    }

    #[test]
    fn a_single_problem_is_reported_as_it_is() {
        let fault = read(json!({ "limit": 1 })).unwrap_err();
        assert_eq!(fault.message, "name: is missing");
        assert_eq!(
            fault.details.unwrap(),
            json!({ "fields": [{ "field": "name", "problem": "is missing" }] })
        );
        let fault = read(json!({ "name": "n", "limit": "x" })).unwrap_err();
        assert_eq!(fault.message, "limit: must be a whole number");
        assert_eq!(read(json!([])).unwrap_err().code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn a_large_parameter_is_not_reported_as_missing() {
        let long = "x".repeat(2 * MAX_COPIED_BYTES);
        assert_eq!(fields(json!({ "name": long, "limit": "x", "offset": "y" })), ["limit", "offset"]);
    }
}
