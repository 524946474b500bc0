//! Schemas of the registered operations, as HTTP and MCP publish them.

use baton_app::registrations;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Object whose names of fields say everything. Descriptions would cost tokens in every chat, because it is a parameter of
/// a tool in the default set.
const SELF_EXPLANATORY: &str = ".handoff.references.";

/// Adds the paths of properties without a description, in a schema whose types are inlined.
fn add_undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let is_described = property["description"].as_str().is_some_and(|text| !text.is_empty());
        if !is_described && !path.contains(SELF_EXPLANATORY) {
            found.push(path.clone());
        }
        add_undescribed(property, &path, found);
    }
    let parts = ["items", "additionalProperties"].into_iter().filter_map(|part| schema.get(part));
    let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|choice| schema.get(choice)?.as_array());
    for part in parts.chain(choices.flatten()) {
        add_undescribed(part, path, found);
    }
}

#[test]
fn every_parameter_and_every_field_of_an_output_is_described() {
    let mut found = Vec::new();
    for registered in registrations() {
        let operation = registered.operation;
        add_undescribed(&operation.params_schema(), operation.name, &mut found);
        add_undescribed(&operation.output_schema(), operation.name, &mut found);
    }
    assert!(found.is_empty(), "without a description: {found:#?}");
}

/// Returns true if a text contains the wire name of an operation, such as `turn.list`.
fn names_an_operation(text: &str) -> bool {
    let is_name_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let mut words = text.split(|letter: char| !is_name_part(letter));
    words.any(|word| baton_app::find(word.trim_end_matches('.')).is_some())
}

/// Models and users know tools, paths and commands.
#[test]
fn tools_and_hints_do_not_name_operations() {
    for tool in baton_app::tools() {
        let operation = tool.operation;
        for text in [
            operation.summary.to_owned(),
            operation.params_schema().to_string(),
            operation.output_schema().to_string(),
        ] {
            assert!(!names_an_operation(&text), "{}: {text}", tool.name);
        }
    }
    let stage = Stage::sqlite();
    let (session, handoff) = ("sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ", "ho_01HQXV3NK8ZZZZZZZZZZZZZZZZ");
    for (operation, params) in [
        ("session.show", json!({ "session_id": session })),
        ("handoff.show", json!({ "handoff_id": handoff })),
        ("note.show", json!({ "note_id": "note_01HQXV3NK8ZZZZZZZZZZZZZZZZ" })),
        ("observation.show", json!({ "observation_id": "obs_01HQXV3NK8ZZZZZZZZZZZZZZZZ" })),
        ("turn.show", json!({ "turn_id": "turn_7" })),
        ("recall.get", json!({ "ids": handoff })),
        ("recall.get", json!({ "ids": "" })),
        ("task.show", json!({ "id": "v/TASK-0001@host:/checkout" })),
    ] {
        let body: Value = serde_json::from_str(&stage.call(operation, params).body).unwrap();
        let hint = body["hint"].as_str().unwrap();
        assert!(!names_an_operation(hint), "{operation}: {hint}");
    }
}
