//! JSON Schemas of the parameters and outputs of operations, shared by HTTP, MCP and the CLI.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Implements `JsonSchema` for a type that is a text or number on the wire.
macro_rules! inline_schema {
    ($name:ident, $($schema:tt)+) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($($schema)+)
            }
        }
    };
}
pub(crate) use inline_schema;

/// Returns the schema of the parameters of an operation.
pub fn params_schema<T: JsonSchema>() -> Value {
    let mut schema =
        schema_of(&T::schema_name(), T::json_schema, SchemaSettings::draft2020_12().for_deserialize());
    state_defaults(&mut schema);
    schema
}

/// States that optional parameters, and those of listed items, are null by default.
fn state_defaults(schema: &mut Value) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(params) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, param) in params {
        let Value::Object(param) = param else { continue };
        if !required.iter().any(|required| required == name) {
            param.entry("default").or_insert(Value::Null);
        }
        param.get_mut("items").map(state_defaults);
    }
}

/// Returns the schema of the output of an operation.
pub fn output_schema<T: JsonSchema>() -> Value {
    schema_of(&T::schema_name(), T::json_schema, SchemaSettings::draft2020_12().for_serialize())
}

/// Returns the schema of a type, given by its name and the function that describes it.
fn schema_of(name: &str, describe: fn(&mut SchemaGenerator) -> Schema, settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut generator = SchemaGenerator::new(settings);
    let mut schema = describe(&mut generator);
    schema.ensure_object().entry("title").or_insert_with(|| name.into());
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    let mut schema = schema.to_value();
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
