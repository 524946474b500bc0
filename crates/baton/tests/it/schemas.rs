//! Schemas of the parameters of all operations, on the store and on a checkout.

use std::collections::BTreeSet;

use baton_core::SCHEMA_KEYWORDS;
use serde_json::Value;

/// Adds the keywords of a schema whose types are inlined.
fn add_keywords(schema: &Value, found: &mut BTreeSet<String>) {
    found.extend(schema.as_object().into_iter().flat_map(|schema| schema.keys().cloned()));
    let members = schema["properties"].as_object().into_iter().flat_map(|members| members.values());
    let parts = ["items", "additionalProperties"].into_iter().filter_map(|part| schema.get(part));
    let choices =
        ["anyOf", "oneOf"].into_iter().filter_map(|choice| schema.get(choice)?.as_array()).flatten();
    members.chain(parts).chain(choices).for_each(|part| add_keywords(part, found));
}

#[test]
fn every_keyword_of_a_schema_is_validated() {
    let mut found = BTreeSet::new();
    for registered in baton_app::registrations() {
        add_keywords(&registered.operation.params_schema(), &mut found);
    }
    for operation in baton_task::catalog() {
        add_keywords(&operation.params_schema(), &mut found);
    }
    assert!(found.contains("required") && found.contains("oneOf"), "{found:?}");
    let unknown: Vec<_> =
        found.iter().filter(|keyword| !SCHEMA_KEYWORDS.contains(&keyword.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
