//! The OpenAPI 3.1 document, generated from the routes and the schemas of the operations.

use baton_app::{AnyOperation, KeyUse, Route, routes};
use baton_core::ErrorCode;
use serde_json::{Map, Value, json};

/// Generates the OpenAPI document.
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_lowercase()] = describe(&route);
    }
    for (path, item) in service_pages() {
        paths.insert(path.into(), item);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keeps the context of coding agents across chats, agents, crashes and machines.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7333" }],
        "security": [{ "relayKey": [] }, { "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "relayKey": { "type": "apiKey", "in": "header", "name": "X-Relay-Key" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
            "schemas": { "Error": error_schema() },
        },
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error", "message", "hint", "details", "correlation_id"],
        "properties": {
            "error": {
                "type": "string", "enum": codes().map(ErrorCode::as_str).collect::<Vec<_>>(),
                "description": "Stable error code.",
            },
            "message": { "type": "string", "description": "Error message: what failed and why." },
            "hint": { "type": ["string", "null"], "description": "Suggested next step." },
            "details": { "description": "Machine-readable details." },
            "correlation_id": { "type": "string", "description": "Correlation id of the request in the server log." },
        },
    })
}

fn describe(route: &Route) -> Value {
    let operation = route.operation;
    let schema = operation.params_schema();
    let first = routes().into_iter().find(|other| other.operation.name == operation.name);
    let is_first_path = first.is_none_or(|first| first.path == route.path);
    let id = if is_first_path { operation.name.to_owned() } else { format!("{}.alias", operation.name) };
    let mut description = json!({
        "operationId": id,
        "summary": operation.summary,
        "tags": [operation.name.split('.').next().unwrap_or_default()],
        "parameters": parameters(route, &schema),
        "responses": responses(operation),
    });
    if route.method.has_body() {
        let mut body = json!({ "schema": without_path_names(route, schema) });
        if let Some(example) = example(operation.name) {
            body["example"] = example;
        }
        description["requestBody"] = json!({ "required": true, "content": { "application/json": body } });
    }
    description
}

fn path_names(route: &Route) -> Vec<&'static str> {
    route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

fn without_path_names(route: &Route, mut schema: Value) -> Value {
    for name in path_names(route) {
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.remove(name);
        }
        if let Some(required) = schema["required"].as_array_mut() {
            required.retain(|field| field != name);
        }
    }
    schema
}

fn parameters(route: &Route, schema: &Value) -> Vec<Value> {
    let in_path = path_names(route);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut parameters = vec![json!({
        "name": "X-Correlation-ID", "in": "header", "required": false,
        "description": "Correlation id of your choice, for example a UUID. It is returned in the response and written to the log.",
        "schema": { "type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,128}$" },
    })];
    if route.operation.effect.is_write() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": route.operation.key == KeyUse::Required,
            "description": "Key of your choice, for example a UUID. Requests with the same key are executed at most once.",
            "schema": { "type": "string", "pattern": "^[!-~]{1,255}$" },
        }));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = if in_path.contains(&name.as_str()) {
            "path"
        } else if !route.method.has_body() {
            "query"
        } else {
            continue;
        };
        parameters.push(json!({
            "name": name,
            "in": place,
            "required": place == "path" || required.iter().any(|field| field == name),
            "description": property["description"],
            "schema": without_null(property.clone()),
        }));
    }
    parameters
}

/// A query has no `null`: absent values are omitted.
fn without_null(mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.remove("description");
        map.remove("default");
        if let Some(Value::Array(kinds)) = map.get("type") {
            let kind = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
            map.insert("type".into(), kind);
        }
    }
    schema
}

fn responses(operation: &AnyOperation) -> Value {
    let mut statuses = vec![400, 401, 403, 404, 405, 413, 429, 500, 503];
    if operation.name.starts_with("checkpoint.") {
        statuses.push(ErrorCode::CheckpointCorrupt.status());
    }
    let mut headers = json!({ "X-Correlation-ID": correlation_header() });
    if operation.effect.is_write() {
        statuses.extend([409, 422]);
        headers["X-Idempotency-Hit"] = json!({
            "description": "`true` if this is the stored response to an earlier request with the same key.",
            "schema": { "type": "string", "const": "true" },
        });
        headers["X-Idempotency-Truncated"] = json!({
            "description": "`true` if the stored response was too large and was reduced to ids and status.",
            "schema": { "type": "string", "const": "true" },
        });
    }
    let mut responses = json!({
        "200": {
            "description": "Successful response.",
            "headers": headers,
            "content": { "application/json": { "schema": operation.output_schema() } },
        },
    });
    for status in statuses {
        responses[status.to_string()] = refusal(status);
    }
    responses
}

/// Returns the codes that HTTP can answer with. Task errors occur only in checkouts, which a server does not have.
fn codes() -> impl Iterator<Item = ErrorCode> {
    let of_tasks = |code: &ErrorCode| {
        matches!(
            code,
            ErrorCode::TaskNotFound
                | ErrorCode::TaskExists
                | ErrorCode::TaskConflict
                | ErrorCode::DriftDetected
                | ErrorCode::TaskBlocked
                | ErrorCode::TaskCorrupt
                | ErrorCode::GitUnavailable
        )
    };
    ErrorCode::ALL.iter().copied().filter(move |code| !of_tasks(code))
}

fn refusal(status: u16) -> Value {
    let codes = codes().filter(|code| code.status() == status);
    let mut headers = json!({ "X-Correlation-ID": correlation_header() });
    match status {
        405 => {
            headers["Allow"] = json!({
                "description": "Methods allowed for the path.", "schema": { "type": "string" },
            });
        }
        429 | 503 => {
            headers["Retry-After"] = json!({
                "description": "Seconds to wait before retrying.",
                "schema": { "type": "integer", "minimum": 1 },
            });
        }
        _ => {}
    }
    json!({
        "description": codes.map(ErrorCode::as_str).collect::<Vec<_>>().join(", "),
        "headers": headers,
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    })
}

fn correlation_header() -> Value {
    json!({ "description": "Correlation id of the request in the server log.", "schema": { "type": "string" } })
}

fn service_pages() -> [(&'static str, Value); 5] {
    let open_page = |id: &str, summary: &str, kind: &str| {
        json!({
            "get": {
                "operationId": id,
                "summary": summary,
                "tags": ["server"],
                "security": [],
                "responses": {
                    "200": {
                        "description": summary,
                        "headers": { "X-Correlation-ID": correlation_header() },
                        "content": { kind: {} },
                    },
                    "403": refusal(403),
                    "405": refusal(405),
                },
            },
        })
    };
    let mut ready =
        open_page("server.ready", "Readiness: whether the server can process requests.", "application/json");
    ready["get"]["responses"]["503"] = refusal(503);
    let mut metrics = open_page("server.metrics", "Metrics in the Prometheus text format.", "text/plain");
    if let Some(item) = metrics["get"].as_object_mut() {
        item.remove("security");
        item["responses"]["401"] = refusal(401);
        item["responses"]["429"] = refusal(429);
    }
    [
        (
            "/healthz",
            open_page(
                "server.health",
                "Liveness: whether the server process is running.",
                "application/json",
            ),
        ),
        ("/readyz", ready),
        ("/metrics", metrics),
        ("/openapi.json", open_page("server.openapi", "OpenAPI document.", "application/json")),
        ("/docs", open_page("server.docs", "API reference as an HTML page.", "text/html")),
    ]
}

/// Returns a valid example body of an operation; `None` if there is no example.
pub(crate) fn example(operation: &str) -> Option<Value> {
    let session_id = "sess_01HQXV3NK8J4M8Q2W6Z0T5R9YB";
    let (note_id, newer_note_id) = ("note_01HQXV3NK8J4M8Q2W6Z0T5R9YB", "note_01HQXV3NK8J4M8Q2W6Z0T5R9YC");
    Some(match operation {
        "session.start" => json!({
            "schema_version": "1.0", "agent": "cc-cli-host", "client": "cc-cli", "client_version": "1.2.3",
            "host": "laptop", "venture": "acme", "repo": "acme/webshop", "track": 1,
            "issue_number": 185, "branch": "feature/185-implement-auth", "commit_sha": "abc123def456",
        }),
        "session.heartbeat" => json!({ "schema_version": "1.0", "session_id": session_id }),
        "session.update" => json!({
            "session_id": session_id, "branch": "feature/185-implement-auth", "commit_sha": "def456abc789",
            "meta": { "last_file_edited": "src/auth/middleware.ts" },
        }),
        "session.end" => json!({
            "session_id": session_id,
            "handoff": {
                "summary": "Completed user authentication implementation", "status_label": "ready-for-review",
                "work_completed": ["Implemented JWT authentication middleware"], "blockers": [],
                "next_actions": ["Review PR #123"],
            },
        }),
        "handoff.create" => json!({
            "session_id": session_id, "handoff": { "summary": "Please review the schema", "to_agent": "qa-1" },
        }),
        "handoff.leave" => json!({
            "author": "alice", "venture": "acme", "repo": "acme/webshop",
            "handoff": { "summary": "The schema may change until Friday", "next_actions": ["Wait for the migration"] },
        }),
        "handoff.ack" => json!({ "agent": "qa-1" }),
        "handoff.withdraw" => json!({}),
        "note.create" => json!({
            "session_id": session_id, "kind": "decision", "file": "src/auth/middleware.ts",
            "text": "Cookies instead of tokens: the proxy drops headers",
        }),
        "note.update" => json!({ "text": "Cookies instead of tokens: the load balancer drops headers" }),
        "memory.reject" | "memory.pin" | "memory.restore" | "memory.forget" => json!({ "id": note_id }),
        "memory.supersede" => json!({ "id": note_id, "by": newer_note_id }),
        "checkpoint.save" => json!({
            "sessionId": "auth-migration", "venture": "acme",
            "context": {
                "goal": "Move the login to the new identity provider", "decisions": ["keep the session cookie"],
                "plan": ["map accounts", "switch over"], "progress": { "done": 1, "of": 2 },
            },
            "metadata": { "name": "before the switch", "tags": ["auth"] },
        }),
        "checkpoint.mark_critical" => {
            json!({ "sessionId": "auth-migration", "contextKey": "goal", "venture": "acme" })
        }
        "hook.report" => json!({
            "session_id": "0a9ccd3c-f4d4-4bdf-9446-28d5a5e3aeb8", "venture": "acme",
            "repo": "acme/webshop", "tool_name": "Bash", "tool_use_id": "toolu_01",
            "tool_input": { "command": "npm test" }, "prompt": "make the tests pass",
            "tool_response": { "stdout": "Tests: 1 failed, 41 passed, 42 total" },
        }),
        "transcript.import" => json!({
            "client_session_id": "0a9ccd3c-f4d4-4bdf-9446-28d5a5e3aeb8", "client": "claude-code", "venture": "acme",
            "repo": "acme/webshop", "branch": "main", "started_at": "2026-02-11T15:31:21.085Z",
            "reports": [
                { "event": "user-prompt-submit", "prompt": "make the tests pass",
                  "reported_at": "2026-02-11T15:31:21.085Z" },
                { "event": "stop", "last_assistant_message": "All 42 tests pass.",
                  "reported_at": "2026-02-11T15:33:02.410Z" },
            ],
        }),
        "observation.import" => json!({
            "venture": "acme", "repo": "acme/webshop",
            "observations": [{
                "title": "Fix the race in the session store", "summary": "Two writers could claim one session.",
                "files_touched": ["src/store.ts"], "external_id": "note-17", "session": "notes",
                "created_at": "2026-02-11T15:31:21.085Z",
            }],
        }),
        "task.record" => json!({
            "task_id": "TASK-0824", "host": "laptop", "checkout": "/home/dev/webshop", "venture": "acme",
            "repo": "acme/webshop", "title": "Implement auth", "status": "in_progress",
            "holder": "reviewer",
        }),
        "queue.retry" => json!({}),
        "queue.purge" => json!({ "status": "done", "older_than_hours": 24 }),
        "session.summarize" => json!({ "session_id": session_id }),
        _ => return None,
    })
}
