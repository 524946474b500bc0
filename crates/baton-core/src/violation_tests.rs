use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::HANDOFF_SCHEMA_1_0;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]*$" },
            "count": { "type": ["integer", "null"], "minimum": 1, "maximum": 200 },
            "ratio": { "type": "number", "minimum": -0.5 },
            "tags": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "enum": ["a", "b", 3] } },
            "kind": { "oneOf": [{ "const": "x", "type": "string" }, { "const": "y", "type": "string" }] },
            "one": { "const": 1 },
            "nested": {
                "anyOf": [
                    { "type": "object", "properties": { "text": { "maxLength": 2 } }, "required": ["text"] },
                    { "type": "null" }
                ]
            },
            "numbers": { "type": "object", "additionalProperties": { "type": "integer" } },
            "free": {}
        }
    })
}

fn problems(document: Value) -> Vec<String> {
    violations(&schema(), &document)
        .iter()
        .map(|found| format!("{}: {}", found.field, found.problem))
        .collect()
}

#[test]
fn every_violation_is_described_with_its_field() {
    let found = problems(json!({
        "name": "ABCD", "count": 0, "ratio": -1, "tags": ["a", "c", "b"], "kind": "z", "one": 2,
        "nested": { "text": "abc" }, "numbers": { "a": 1, "b": 1.5 }, "free": [1], "other": 1,
    }));
    let expected = [
        "count: must be at least 1",
        "kind: must be one of x, y",
        "name: must have at most 3 characters",
        "name: must match ^[a-z]*$",
        "nested.text: must have at most 2 characters",
        "numbers.b: must be a whole number",
        "one: must be 1",
        "other: is not a known field",
        "ratio: must be at least -0.5",
        "tags: must have at most 2 elements",
        "tags[1]: must be one of a, b, 3",
    ];
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(
        problems(json!({ "count": "1", "nested": 1, "tags": [], "kind": true, "ratio": 1e300 })),
        [
            "name: is missing",
            "count: must be a whole number or null",
            "kind: must be one of x, y",
            "nested: has none of the allowed forms",
            "tags: must have at least 1 elements",
        ]
    );
    assert_eq!(
        problems(json!({ "name": "", "nested": {} })),
        ["name: must not be empty", "nested.text: is missing"]
    );
    assert_eq!(problems(json!([])), [": must be an object"]);
    assert!(
        problems(json!({ "name": "a", "count": 2.0, "tags": [3], "kind": "y", "nested": null })).is_empty()
    );
}

/// Values at and around the limits of the schemas.
fn any_value() -> impl Strategy<Value = Value> {
    let numbers = prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(200)),
        Just(json!(201)),
        Just(json!(2.0)),
        Just(json!(-0.5)),
        Just(json!(-0.75)),
        Just(json!(u64::MAX)),
        Just(json!(i64::MIN))
    ];
    let texts = prop::sample::select(vec![
        "", "a", "abc", "abcd", "x", "y", "A", "é", "a\u{7}", "a\n", "agent-1", "a b",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers,
        texts.prop_map(Value::from)
    ];
    let names = prop::sample::select(vec!["text", "a", "branch", "uncommitted_files"]);
    leaf.prop_recursive(2, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..4).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

fn any_document() -> impl Strategy<Value = Value> {
    let names = vec![
        "name",
        "count",
        "ratio",
        "tags",
        "kind",
        "one",
        "nested",
        "numbers",
        "free",
        "other",
        "summary",
        "status_label",
        "to_agent",
        "work_completed",
        "decisions",
        "references",
    ];
    let members = prop::collection::btree_map(prop::sample::select(names), any_value(), 0..6);
    members.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns the top-level fields that violate a schema according to a complete validator. Missing and unknown fields are
/// reported for the object that should or should not have them.
fn expected_fields(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    let path = |error: jsonschema::ValidationError<'_>| error.instance_path().to_string();
    let mut fields: Vec<String> = validator
        .iter_errors(document)
        .map(|error| path(error).split('/').nth(1).unwrap_or_default().to_owned())
        .collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

proptest! {
    #[test]
    fn violations_are_those_of_a_complete_validator(document in any_document()) {
        let handoff: Value = serde_json::from_str(HANDOFF_SCHEMA_1_0).unwrap();
        for schema in [schema(), handoff] {
            let found = violations(&schema, &document);
            let mut fields: Vec<String> = found
                .iter()
                .map(|found| match found.field.split_once(['.', '[']) {
                    Some((first, _)) => first.to_owned(),
                    None if found.kind != ViolationKind::Invalid => String::new(),
                    None => found.field.clone(),
                })
                .collect();
            fields.sort_unstable();
            fields.dedup();
            prop_assert_eq!(fields, expected_fields(&schema, &document));
        }
    }
}
