//! JSON schema of a handoff in parameter descriptions. It is the schema that handoffs are validated against.

use baton_core::HANDOFF_SCHEMA_1_0;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Returns the schema of a required handoff.
pub(crate) fn handoff_schema(_: &mut SchemaGenerator) -> Schema {
    let mut schema: Schema = serde_json::from_str(HANDOFF_SCHEMA_1_0).unwrap_or_default();
    for name in ["$schema", "title"] {
        schema.remove(name);
    }
    schema
}

/// Returns the schema of a handoff or `null`.
pub(crate) fn optional_handoff_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = handoff_schema(generator);
    schema.insert("type".into(), json!(["object", "null"]));
    schema.insert("default".into(), Value::Null);
    schema
}
