//! The task operations as MCP tools of `baton mcp`, available inside a checkout.

use std::path::Path;
use std::sync::Arc;

use baton_core::Fault;
use baton_mcp::LocalTool;
use baton_task::{AnyTaskOperation, catalog};
use serde_json::{Map, Value};

use super::index::record;
use crate::checkout::find_root;
use crate::config::Config;
use crate::tasks::{actor, task_environment};

/// Maximum size of an output schema, because some clients send every schema to their model. Three schemas are larger
/// and are truncated: a whole context (42 kB), and the state of a role with its snapshot (11 kB, twice).
const MAX_SCHEMA_BYTES: usize = 8 * 1024;

/// Minimum depth of a truncated schema.
const MIN_DEPTH: usize = 2;

/// Returns a tool for every task operation; none outside of a checkout.
pub(crate) fn local_tools(config: &Config) -> Vec<LocalTool> {
    let root = std::env::current_dir().ok().as_deref().and_then(find_root);
    root.map_or_else(Vec::new, |root| {
        let actor = actor(config);
        let config = Arc::new(config.clone());
        catalog().into_iter().map(|operation| tool(operation, &root, &actor, &config)).collect()
    })
}

fn tool(operation: &'static AnyTaskOperation, root: &Path, actor: &str, config: &Arc<Config>) -> LocalTool {
    let (root, actor, config) = (root.to_owned(), actor.to_owned(), Arc::clone(config));
    LocalTool {
        operation: **operation,
        output_schema: fitting(operation.output_schema()),
        // Each call opens the checkout again, because HEAD moves while the server runs.
        call: Arc::new(move |arguments| {
            let (environment, params) = (task_environment(&root, &actor), Value::Object(arguments));
            let result = operation.call(&environment, params.clone());
            if let Err(failure) = record(&config, &environment, operation, &params, &result) {
                tracing::warn!(error = %failure.message, "cannot record the task in the store");
            }
            result.map_err(|fault| Fault { hint: fault.hint.as_deref().map(for_tools), ..fault })
        }),
    }
}

/// Replaces flags in a hint with the parameters of tools.
fn for_tools(hint: &str) -> String {
    let words = [
        ("--force-secrets", "force_secrets: true"),
        ("--allow-clean", "allow_clean: true"),
        ("--without-snapshot", "without_snapshot: true"),
        ("--without-qa", "without_qa: true"),
        ("--restore-all", "restore_all: true"),
        ("--baseline", "baseline"),
        ("--force", "force: true"),
    ];
    words.iter().fold(hint.to_owned(), |hint, (flag, parameter)| hint.replace(flag, parameter))
}

/// Returns the schema, truncated to as many upper levels as fit.
fn fitting(schema: Value) -> Value {
    if schema.to_string().len() <= MAX_SCHEMA_BYTES {
        return schema;
    }
    let deepest = (MIN_DEPTH..=8).rev().map(|depth| outline(&schema, depth));
    let mut outlines = deepest.skip_while(|outline| outline.to_string().len() > MAX_SCHEMA_BYTES);
    outlines.next().unwrap_or_else(|| outline(&schema, MIN_DEPTH))
}

/// Keeps the upper levels of a schema. The result is less strict and still valid for every output.
fn outline(schema: &Value, depth: usize) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let kept = |name: &str| members.get(name).map(|value| (name.to_owned(), value.clone()));
    let mut outline: Map<String, Value> =
        ["type", "description", "enum"].into_iter().filter_map(kept).collect();
    if depth > 0 {
        outline.extend(kept("required"));
        if let Some(Value::Object(properties)) = members.get("properties") {
            let properties: Map<String, Value> = properties
                .iter()
                .map(|(name, schema)| (name.clone(), self::outline(schema, depth - 1)))
                .collect();
            outline.insert("properties".into(), Value::Object(properties));
        }
        if let Some(items) = members.get("items") {
            outline.insert("items".into(), self::outline(items, depth - 1));
        }
    }
    Value::Object(outline)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_schemas_are_within_the_limit_and_only_three_are_truncated() {
        let truncated: Vec<&str> = catalog()
            .into_iter()
            .filter(|operation| {
                let (whole, described) = (operation.output_schema(), fitting(operation.output_schema()));
                assert!(described.to_string().len() <= MAX_SCHEMA_BYTES, "{}", operation.name);
                whole != described
            })
            .map(|operation| operation.name)
            .collect();
        assert_eq!(truncated, ["task.get_context", "task.update_agent", "task.mark_blocked"]);
    }

    #[test]
    fn hints_name_parameters_and_no_flags() {
        let hint =
            for_tools("take it out, or use --force-secrets if it is none; add --force or --allow-clean");
        let expected =
            "take it out, or use force_secrets: true if it is none; add force: true or allow_clean: true";
        assert_eq!(hint, expected);
    }

    #[test]
    fn outline_keeps_the_upper_levels_of_a_schema() {
        let leaf =
            json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } } });
        let schema = json!({ "type": "object", "title": "T", "required": ["a"], "properties": {
            "a": { "type": "array", "description": "some", "items": leaf },
            "b": { "anyOf": [leaf, { "type": "null" }], "description": "perhaps" },
        } });
        let expected = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "array", "description": "some", "items": { "type": "object" } },
            "b": { "description": "perhaps" },
        } });
        assert_eq!(outline(&schema, 2), expected);
    }
}
