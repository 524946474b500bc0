//! The versioned schema of a handoff, for the faces that describe parameters: it is the one that validates.

use baton_core::HANDOFF_SCHEMA_1_0;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A handoff.
pub(crate) fn handoff_schema(_: &mut SchemaGenerator) -> Schema {
    let mut schema: Schema = serde_json::from_str(HANDOFF_SCHEMA_1_0).unwrap_or_default();
    for name in ["$schema", "title"] {
        schema.remove(name);
    }
    schema
}

/// A handoff or `null`.
pub(crate) fn optional_handoff_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = handoff_schema(generator);
    schema.insert("type".into(), json!(["object", "null"]));
    schema.insert("default".into(), Value::Null);
    schema
}
