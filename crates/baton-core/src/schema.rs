//! JSON Schemas of the parameters and outputs of operations, shared by HTTP, MCP and the CLI.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Returns the schema of the parameters of an operation.
pub fn params_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the schema of the output of an operation.
pub fn output_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    drop_number_formats(&mut schema);
    schema
}

/// Removes number formats such as `uint32`. They are not JSON Schema formats, and clients warn about them.
fn drop_number_formats(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_number = |format: &Value| {
                format.as_str().is_some_and(|format| format.contains("int") || format == "double")
            };
            if map.get("format").is_some_and(is_number) {
                map.remove("format");
            }
            map.values_mut().for_each(drop_number_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_number_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
