//! Short forms of input schemas for models. Every tool definition is part of the context of every chat, so only what a
//! model needs to fill in a parameter is kept. Operations still validate strictly.

use serde_json::{Map, Value};

/// Keywords that are removed. Descriptions state limits and defaults where they matter.
const REMOVED: [&str; 14] = [
    "title",
    "pattern",
    "format",
    "default",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "maxProperties",
    "additionalProperties",
];

/// Returns the short form of an input schema.
pub(crate) fn short_input(schema: Value) -> Map<String, Value> {
    let mut schema = match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    shorten(&mut schema);
    // Repeats the description of the tool.
    schema.remove("description");
    schema
}

fn shorten(schema: &mut Map<String, Value>) {
    for keyword in REMOVED {
        schema.remove(keyword);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.remove(keyword) {
            merge_choices(schema, keyword, choices);
        }
    }
    if let Some(kind) = schema.get_mut("type") {
        remove_null(kind);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        if let Value::Object(property) = property {
            shorten(property);
        }
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        shorten(items);
    }
}

/// Merges the only choice into the schema, and constants into an enumeration. Other choices are kept.
fn merge_choices(schema: &mut Map<String, Value>, keyword: &str, choices: Vec<Value>) {
    let mut choices: Vec<Map<String, Value>> = choices
        .into_iter()
        .filter_map(|choice| match choice {
            Value::Object(choice) if choice.get("type") != Some(&"null".into()) => Some(choice),
            _ => None,
        })
        .collect();
    choices.iter_mut().for_each(shorten);
    let constants: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    match constants {
        Some(constants) if !constants.is_empty() => {
            if constants.iter().all(Value::is_string) {
                schema.insert("type".into(), "string".into());
            }
            schema.insert("enum".into(), Value::Array(constants));
        }
        _ if choices.len() == 1 => {
            for (name, value) in choices.into_iter().flatten() {
                schema.entry(name).or_insert(value);
            }
        }
        _ => {
            let choices = choices.into_iter().map(Value::Object).collect();
            schema.insert(keyword.to_owned(), Value::Array(choices));
        }
    }
}

/// Removes `null` from a list of types.
fn remove_null(kind: &mut Value) {
    if let Value::Array(kinds) = kind {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            *kind = only.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_only_what_a_model_needs() {
        let schema = json!({
            "type": "object", "title": "T", "description": "d", "additionalProperties": false, "required": ["a"],
            "properties": {
                "a": { "type": "string", "pattern": "^x$", "minLength": 1, "description": "two\nlines" },
                "b": { "type": ["integer", "null"], "default": null, "minimum": 0 },
                "c": { "anyOf": [{ "oneOf": [{ "const": "x", "description": "X" }, { "const": "y" }] },
                                 { "type": "null" }], "description": "choice" },
                "d": { "type": ["object", "null"], "properties": { "e": { "type": ["string", "null"], "default": null } } },
                "f": { "type": ["array", "null"], "items": { "type": "string", "maxLength": 3 } },
                "g": { "type": ["integer", "string", "null"] },
            },
        });
        let expected = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": { "type": "string", "description": "two lines" },
                "b": { "type": "integer" },
                "c": { "type": "string", "enum": ["x", "y"], "description": "choice" },
                "d": { "type": "object", "properties": { "e": { "type": "string" } } },
                "f": { "type": "array", "items": { "type": "string" } },
                "g": { "type": ["integer", "string"] },
            },
        });
        assert_eq!(Value::Object(short_input(schema)), expected);
    }
}
