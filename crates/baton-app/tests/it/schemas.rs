//! Schemas of the registered operations, as HTTP and MCP publish them.

use baton_app::registrations;
use serde_json::Value;

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
