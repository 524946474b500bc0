//! The JSON Schemas of what operations are told and what they answer, as every face shows them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Gives the schema of what an operation is told.
pub fn params_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Gives the schema of what an operation answers.
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

/// Takes out `uint32` and the like: they are no formats of JSON Schema, and clients warn about them.
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
