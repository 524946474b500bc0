//! Descriptions of tools for clients.

use std::borrow::Cow;
use std::sync::Arc;

use baton_app::ToolBinding;
use baton_core::OperationDescription;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::defaults::{Locality, optional_params};
use crate::schema::short_input;

/// Argument with the idempotency key. Every tool that writes has it in addition to the parameters of its operation.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// Parameters that the default set does not list: Baton knows their values, or few calls need them. They are accepted
/// in every set and listed by `--tools all`.
pub(crate) const RARE_PARAMS: [&str; 19] = [
    "actor",
    "agentSessionId",
    "checkout_repo",
    "client",
    "client_session_id",
    "client_version",
    "cursor",
    "end_reason",
    "force_secrets",
    "from_agent",
    "host",
    "idempotency_key",
    "keep_session_open",
    "level",
    "meta",
    "redactSecrets",
    "redact_secrets",
    "schema_version",
    "venture",
];

/// Describes a tool to a client.
pub(crate) fn describe(binding: &ToolBinding, locality: Locality) -> Tool {
    let mut input = short_input(binding.operation.params_schema());
    for (name, default) in binding.filled.iter().flat_map(|filled| optional_params(*filled, locality)) {
        make_optional(&mut input, name, default);
    }
    if binding.operation.effect.is_write()
        && let Some(Value::Object(properties)) = input.get_mut("properties")
    {
        properties.insert(
            IDEMPOTENCY_KEY.into(),
            json!({
                "type": "string",
                "description": "Key of your choice, for example a UUID. Requests with the same key are executed at most once.",
            }),
        );
    }
    describe_tool(binding.name, binding.operation, input, binding.operation.output_schema())
}

/// Describes the tool of an operation to a client.
pub(crate) fn describe_tool(
    name: impl Into<Cow<'static, str>>,
    operation: &OperationDescription,
    input: Map<String, Value>,
    output: Value,
) -> Tool {
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = Some(!operation.effect.is_write());
    annotations.destructive_hint = Some(operation.effect.is_destructive());
    annotations.idempotent_hint = Some(operation.effect.is_idempotent());
    annotations.open_world_hint = Some(false);
    let mut tool = Tool::new(name, operation.summary, Arc::new(input));
    tool.output_schema = Some(Arc::new(object(output)));
    tool.annotations = Some(annotations);
    tool
}

/// Removes a parameter from the required ones and states its default.
fn make_optional(input: &mut Map<String, Value>, name: &str, default: &str) {
    if let Some(Value::Array(required)) = input.get_mut("required") {
        required.retain(|required| required != name);
        if required.is_empty() {
            input.remove("required");
        }
    }
    if let Some(Value::String(text)) =
        input.get_mut("properties").and_then(|all| all[name].get_mut("description"))
        && !text.contains("Defaults to")
    {
        *text = format!("{text} {default}");
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
