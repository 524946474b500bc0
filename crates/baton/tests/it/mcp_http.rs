//! MCP over HTTP: authentication, permissions, rate limit, idempotency and request log.

use std::collections::BTreeSet;

use baton_store::StoreError;
use baton_testkit::binary::{Answer, Home, ServerProcess, tool_answer};
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, refusal, who};

const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Posts bytes to `/mcp` with the headers of a client.
pub(crate) fn post(server: &ServerProcess, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    server.send("POST", "/mcp", &[&[JSON, ACCEPT], headers].concat(), body)
}

/// Sends a request of revision 2025-11-25 and returns the response.
pub(crate) fn ask(server: &ServerProcess, headers: &[(&str, &str)], method: &str, params: &Value) -> Value {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [&[("mcp-protocol-version", "2025-11-25")], headers].concat();
    let answer = expect(&post(server, &headers, request.to_string().as_bytes()), 200);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)), "{answer}");
    answer
}

/// Calls a tool and returns its result.
pub(crate) fn call_tool(server: &ServerProcess, tool: &str, arguments: &Value) -> Value {
    ask(server, &[], "tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
}

fn token(home: &Home, arguments: &[&str]) -> String {
    let made = home.run(&[&["token", "create", "--format", "json"], arguments].concat());
    id(&made.json()["data"]["token"])
}

#[test]
fn mcp_has_the_same_access_checks_as_other_paths() {
    let served = Served::sqlite();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let send = |headers: &[(&str, &str)]| post(&served, headers, list.as_bytes());
    expect(&send(&[]), 200);
    refusal(&send(&[("x-relay-key", "")]), 401, "unauthorized");
    refusal(&send(&[("x-relay-key", "wrong")]), 401, "unauthorized");
    refusal(&send(&[("host", "rebound.example")]), 403, "forbidden");
    refusal(&send(&[("origin", "https://elsewhere.example")]), 403, "forbidden");
    expect(&send(&[("origin", "http://localhost:3000")]), 200);
    for method in ["GET", "DELETE", "PUT"] {
        let answer = served.send(method, "/mcp", &[ACCEPT], b"");
        refusal(&answer, 405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
    refusal(&served.send("GET", "/mcp", &[("x-relay-key", "")], b""), 401, "unauthorized");

    let named = send(&[("x-correlation-id", "mine-1")]);
    assert_eq!(
        (named.header("x-correlation-id"), named.header("cache-control")),
        (Some("mine-1"), Some("no-store"))
    );
    assert!(named.header("mcp-session-id").is_none(), "requests must be stateless");
    let metrics = served.get("/metrics").text;
    assert!(metrics.contains(r#"baton_requests_total{endpoint="/mcp",status="401"}"#), "{metrics}");
}

#[test]
fn tool_calls_use_the_permissions_of_the_credential() {
    for served in Served::each() {
        let started = call_tool(&served, "session_start", &who("a"))["structuredContent"].clone();
        let session = served.found(&format!("/sessions/{}", id(&started["session_id"])));
        let over_http = served.ok("/sod", &who("b"));
        assert_eq!(session["session"]["actor_key_id"], over_http["session"]["actor_key_id"]);

        let (reader, outsider) = (
            token(&served.home, &["--name", "reader", "--access", "read", "--venture", "v"]),
            token(&served.home, &["--name", "outsider", "--venture", "elsewhere"]),
        );
        let call = |token: &str, tool: &str, arguments: &Value| {
            let params = json!({ "name": tool, "arguments": arguments });
            let headers = [("x-relay-key", token), ("x-correlation-id", "call-1")];
            let result = ask(&served, &headers, "tools/call", &params)["result"].clone();
            (result["isError"] == true, tool_answer(&result))
        };
        let listed = call(&reader, "active_sessions", &json!({ "venture": "v" }));
        assert_eq!(listed.1["sessions"].as_array().unwrap().len(), 2);
        let (failed, error) = call(&reader, "session_start", &who("c"));
        assert_eq!(
            (failed, &error["code"], &error["correlation_id"]),
            (true, &json!("FORBIDDEN"), &json!("call-1"))
        );
        let (failed, error) = call(&outsider, "handoff_latest", &json!({ "venture": "v" }));
        assert_eq!((failed, &error["code"]), (true, &json!("FORBIDDEN")));
        let (failed, error) =
            call(&outsider, "session_show", &json!({ "session_id": started["session_id"] }));
        assert_eq!((failed, &error["code"]), (true, &json!("SESSION_NOT_FOUND")));

        let read = |token: &str, uri: &str| {
            ask(&served, &[("x-relay-key", token)], "resources/read", &json!({ "uri": uri }))
        };
        let uri = format!("baton://session/{}", id(&started["session_id"]));
        assert!(
            read(&reader, &uri)["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains("\"agent\":\"a\"")
        );
        assert_eq!(read(&outsider, &uri)["error"]["code"], -32002);
        assert_eq!(read(&outsider, "baton://handoff/latest?venture=v")["error"]["data"]["code"], "FORBIDDEN");
        let prompt = json!({ "name": "resume", "arguments": { "repo": "o/r", "venture": "v" } });
        let refused = ask(&served, &[("x-relay-key", &outsider)], "prompts/get", &prompt);
        assert_eq!(refused["error"]["data"]["code"], "FORBIDDEN");
        let unread = ask(
            &served,
            &[("x-relay-key", &outsider)],
            "resources/read",
            &json!({ "uri": "baton://context?repo=o%2Fr&venture=v" }),
        );
        for name in ["message", "suggestion", "details"] {
            assert_eq!(refused["error"]["data"][name], unread["error"]["data"][name], "{name}");
        }
        assert!(refused["error"]["data"]["suggestion"].is_string(), "{refused}");
    }
}

#[test]
fn the_rate_limit_includes_mcp_requests() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    // The next request is allowed after a minute, so that a slow test machine does not affect the result.
    let server = home.serve_with(&[("BATON_RATE_LIMIT_PER_MINUTE", "1")]);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    expect(&server.get("/active?agent=a"), 200);
    let answer = post(&server, &[], list.as_bytes());
    refusal(&answer, 429, "rate_limited");
    assert!(answer.header("retry-after").is_some());
}

#[test]
fn a_tool_call_with_an_idempotency_key_is_executed_once() {
    let served = Served::sqlite();
    let session = id(&call_tool(&served, "session_start", &who("a"))["structuredContent"]["session_id"]);
    let arguments = json!({
        "session_id": session, "handoff": { "summary": "once" }, "idempotency_key": "k-1",
    });
    let first = call_tool(&served, "handoff_create", &arguments);
    assert_eq!(
        first["structuredContent"],
        call_tool(&served, "handoff_create", &arguments)["structuredContent"]
    );
    assert_eq!(served.found("/handoffs?venture=v")["handoffs"].as_array().unwrap().len(), 1);
}

/// Tool calls are logged with their operation, rejected requests with their path.
#[test]
fn the_request_log_contains_tool_calls_and_rejected_requests() {
    let served = Served::sqlite();
    call_tool(&served, "session_start", &who("a"));
    post(&served, &[("x-relay-key", "")], b"{}");
    post(&served, &[], b"nonsense");
    let store = served.store();
    let expected: BTreeSet<(&str, &str, u16)> =
        [("session.start", "MCP", 200), ("/mcp", "POST", 401), ("/mcp", "POST", 400)].into();
    // The server writes the log after the response.
    wait_until("all calls are in the log", || {
        let found = store.read::<_, StoreError, _>(|tx| tx.requests(10)).wait().unwrap();
        let found: BTreeSet<(&str, &str, u16)> = found
            .iter()
            .map(|call| (call.endpoint.as_str(), call.method.as_str(), call.status_code))
            .collect();
        found.is_superset(&expected)
    });
}
