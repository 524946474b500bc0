//! One call through each interface.

use baton_testkit::binary::{Home, McpClient, ServerProcess, tool_answer};
use serde_json::{Value, json};

use crate::mcp_http::call_tool;
use crate::served::{encode, names};

/// Result of a call: the output, or the error code.
pub(super) type Outcome = Result<Value, String>;

pub(super) trait Interface {
    fn call(&mut self, step: &Step) -> Outcome;
}

/// One call of a scenario, described for each interface.
pub(super) struct Step {
    pub(super) http: (&'static str, &'static str),
    pub(super) tool: &'static str,
    pub(super) verb: &'static [&'static str],
    pub(super) params: Value,
    /// Parameters that the verb takes as positional arguments.
    pub(super) positional: &'static [&'static str],
}

/// A server and the number of requests sent to it.
pub(super) struct Http(pub(super) ServerProcess, pub(super) u32);
pub(super) struct Mcp(pub(super) McpClient);
pub(super) struct McpOverHttp(pub(super) ServerProcess);
pub(super) struct Cli(pub(super) Home);

impl Interface for Http {
    fn call(&mut self, step: &Step) -> Outcome {
        let (method, path) = step.http;
        let (path, params) = fill_path(path, &step.params);
        let answer = if method == "GET" {
            let pairs: Vec<String> = params
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| format!("{name}={}", encode(&text_of(value))))
                .collect();
            self.0.get(&format!("{path}?{}", pairs.join("&")))
        } else {
            // Some operations require a key; the other interfaces create it themselves.
            self.1 += 1;
            self.0.send(
                method,
                &path,
                &[("idempotency-key", &self.1.to_string())],
                params.to_string().as_bytes(),
            )
        };
        let body = answer.json();
        if answer.status == 200 { Ok(body) } else { Err(body["error"].as_str().unwrap().to_owned()) }
    }
}

impl Interface for Mcp {
    fn call(&mut self, step: &Step) -> Outcome {
        outcome_of(&self.0.call(step.tool, &step.params))
    }
}

impl Interface for McpOverHttp {
    fn call(&mut self, step: &Step) -> Outcome {
        outcome_of(&call_tool(&self.0, step.tool, &step.params))
    }
}

/// Converts the result of a tool; the error code is converted to lower case.
fn outcome_of(result: &Value) -> Outcome {
    let body = tool_answer(result);
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    // The specification defines the text of a checkpoint list as a plain array.
    let content = if text.is_array() { json!({ "checkpoints": text }) } else { text };
    assert_eq!(content, body, "the text content must equal the structured content");
    if result["isError"] != true {
        return Ok(body);
    }
    assert_eq!(names(&body), ["code", "correlation_id", "details", "message", "retry", "suggestion"].into());
    let code = body["code"].as_str().unwrap();
    assert_eq!(code, code.to_uppercase(), "MCP error codes must be upper case");
    Err(code.to_lowercase())
}

impl Interface for Cli {
    fn call(&mut self, step: &Step) -> Outcome {
        let mut arguments: Vec<String> = step.verb.iter().map(|&word| word.to_owned()).collect();
        arguments.extend(["--format".into(), "json".into()]);
        // Some handoff fields have their own flags; the rest is passed as --payload.
        let mut given = step.params.as_object().unwrap().clone();
        if let Some(Value::Object(mut handoff)) = given.remove("handoff") {
            for head in ["summary", "status_label", "to_agent"] {
                given.extend(handoff.remove(head).map(|value| (head.to_owned(), value)));
            }
            given.insert("payload".into(), handoff.into());
        }
        // The context is passed on standard input; its metadata has flags.
        let context = given.remove("context").map(|context| context.to_string()).unwrap_or_default();
        if let Some(Value::Object(mut labels)) = given.remove("metadata") {
            given.extend(labels.remove("name").map(|name| ("name".to_owned(), name)));
            let tags = labels.remove("tags").unwrap_or_default();
            arguments
                .extend(tags.as_array().into_iter().flatten().map(|tag| format!("--tag={}", text_of(tag))));
        }
        for (name, flag) in [
            ("force", "--force"),
            ("keep_session_open", "--keep-open"),
            ("redact_secrets", "--redact-secrets"),
            ("redactSecrets", "--redact-secrets"),
        ] {
            if given.remove(name) == Some(true.into()) {
                arguments.push(flag.into());
            }
        }
        for (name, value) in &given {
            if !step.positional.contains(&name.as_str()) {
                arguments.push(format!("--{}={}", flag(name, step.verb), text_of(value)));
            }
        }
        for name in step.positional {
            arguments.extend(step.params.get(*name).map(text_of));
        }
        let finished = self.0.run_with_input(&arguments, context.as_bytes());
        let body = finished.json();
        assert_eq!(body["success"] == true, finished.code == 0, "{body}");
        if finished.code == 0 {
            Ok(body["data"].clone())
        } else {
            // The command line rejects some combinations of arguments itself.
            Err(body["error"]["code"].as_str().unwrap().replace("usage", "invalid_request"))
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Inserts path parameters into the path; returns the path and the remaining parameters.
fn fill_path(path: &str, params: &Value) -> (String, Value) {
    let (mut path, mut rest) = (path.to_owned(), params.clone());
    for (name, value) in params.as_object().unwrap() {
        let placeholder = format!("{{{name}}}");
        if path.contains(&placeholder) {
            path = path.replace(&placeholder, &encode(&text_of(value)));
            rest.as_object_mut().unwrap().remove(name);
        }
    }
    (path, rest)
}

fn flag(param: &str, verb: &[&str]) -> String {
    match param {
        "issue_number" => "issue".into(),
        "session_id" if matches!(verb, ["handoff", "create"] | ["note"] | ["note", "list"]) => {
            "session".into()
        }
        "commit_sha" => "commit".into(),
        "status_label" => "status".into(),
        "sessionId" => "session".into(),
        "agentSessionId" => "agent-session".into(),
        "contextKey" => "key".into(),
        "maxBytes" => "max-bytes".into(),
        "maxTokens" => "max-tokens".into(),
        other => other.replace('_', "-"),
    }
}

/// Masks values that differ between runs: ids, times and random intervals.
pub(super) fn masked(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let varies = name.ends_with("_at")
                    || name.ends_with("_id")
                    || name.ends_with("At")
                    || [
                        "id",
                        "heartbeat_interval_seconds",
                        "next_cursor",
                        "agentSessionId",
                        "more",
                        "replaced_by",
                        "score",
                        "took_ms",
                    ]
                    .contains(&name.as_str())
                    || value.as_str().is_some_and(|text| text.starts_with("ckpt_"));
                let value = if varies && !value.is_null() { json!("<varies>") } else { masked(value) };
                (name.clone(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(masked).collect(),
        other => other.clone(),
    }
}
