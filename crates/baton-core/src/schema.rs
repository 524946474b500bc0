//! JSON Schemas of the parameters and outputs of operations, shared by HTTP, MCP and the CLI, and what violates them.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
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

/// Lists what violates a schema: the field, with dots between the names, and the problem.
pub(crate) fn violations(validator: &Validator, document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    validator.iter_errors(document).for_each(|error| add_violations(&error, &mut found));
    found
}

fn add_violations(error: &ValidationError<'_>, found: &mut Vec<(String, String)>) {
    if let Some(errors) = only_choice(error) {
        return errors.iter().for_each(|error| add_violations(error, found));
    }
    let field = error.instance_path().to_string().trim_start_matches('/').replace('/', ".");
    let problem = match error.kind() {
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} elements"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} elements"),
        _ => error.masked().to_string(),
    };
    found.push((field, problem));
}

/// If exactly one choice of an `anyOf` has the type of the value, returns the errors of that choice. The schema of an optional
/// object has such choices.
fn only_choice<'a>(error: &'a ValidationError<'_>) -> Option<&'a [ValidationError<'static>]> {
    let ValidationErrorKind::AnyOf { context } = error.kind() else { return None };
    let is_wrong_type = |inner: &ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Type { .. })
            && inner.instance_path() == error.instance_path()
    };
    let mut choices = context.iter().filter(|errors| !errors.iter().any(is_wrong_type));
    let only = choices.next()?;
    if choices.next().is_some() {
        return None;
    }
    Some(only)
}
