//! Invalid MCP messages get a protocol error on both transports, and the next call works.

use baton_testkit::binary::{Home, McpClient};
use serde_json::{Value, json};

use crate::mcp_http::{ask, call_tool, post};
use crate::served::Served;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Returns a call of `session_start` with additional arguments.
fn start_with(id: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"session_start","arguments":{{"agent":"bad","repo":"o/r",{more}}}}}}}"#
    )
}

/// Invalid messages, with the expected error code and id.
fn bad_messages() -> Vec<(&'static str, Vec<u8>, i64, Value)> {
    let deep = |depth: usize| format!(r#""meta":{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let mut huge = start_with("\"big\"", "\"branch\":\"").into_bytes();
    huge.truncate(huge.len() - 3);
    huge.resize(64 * 1024 * 1024, b'x');
    huge.extend_from_slice(b"\"}}}");
    let mut not_text = start_with("5", "\"branch\":\"?\"").into_bytes();
    let mark = not_text.iter().position(|byte| *byte == b'?').unwrap();
    not_text[mark] = 0xff;
    vec![
        ("no JSON", b"Content-Length: 10".to_vec(), PARSE_ERROR, Value::Null),
        ("cut off", start_with("1", "\"x\":1").into_bytes()[..60].to_vec(), PARSE_ERROR, json!(1)),
        ("a key twice", start_with("2", r#""agent":"good""#).into_bytes(), INVALID_REQUEST, json!(2)),
        (
            "an id twice",
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_vec(),
            INVALID_REQUEST,
            Value::Null,
        ),
        ("too deep", start_with("3", &deep(63)).into_bytes(), INVALID_REQUEST, json!(3)),
        ("10,000 deep", start_with("4", &deep(10_000)).into_bytes(), INVALID_REQUEST, json!(4)),
        ("invalid UTF-8", not_text, PARSE_ERROR, json!(5)),
        ("half a pair", start_with("6", r#""branch":"\ud800""#).into_bytes(), PARSE_ERROR, json!(6)),
        (
            "a number to round",
            start_with("7", r#""track":123456789012345678901"#).into_bytes(),
            INVALID_REQUEST,
            json!(7),
        ),
        ("a batch", br#"[{"jsonrpc":"2.0","id":8,"method":"ping"}]"#.to_vec(), INVALID_REQUEST, Value::Null),
        ("no method", br#"{"jsonrpc":"2.0","id":9}"#.to_vec(), INVALID_REQUEST, json!(9)),
        (
            "another protocol",
            br#"{"jsonrpc":"1.0","id":10,"method":"ping"}"#.to_vec(),
            INVALID_REQUEST,
            json!(10),
        ),
        ("64 MiB", huge, INVALID_REQUEST, json!("big")),
    ]
}

fn assert_error(what: &str, answer: &Value, code: i64, id: &Value) {
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{what}: {answer}");
    assert!(answer["error"]["message"].is_string() && answer.get("result").is_none(), "{what}: {answer}");
}

fn assert_no_session(listed: &Value) {
    assert_eq!(listed["structuredContent"]["sessions"], json!([]), "a rejected message must have no effect");
}

fn client() -> (Home, McpClient) {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let client = home.mcp();
    (home, client)
}

#[test]
fn over_stdio_every_invalid_line_gets_an_error_and_the_next_call_works() {
    let (_home, mut client) = client();
    for (what, line, code, id) in bad_messages() {
        client.send_line(&line);
        assert_error(what, &client.receive(), code, &id);
        assert_no_session(&client.call("active_sessions", &json!({ "agent": "bad" })));
    }
    for blank in ["", "   ", "\r"] {
        client.send_line(blank.as_bytes());
    }
    assert_no_session(&client.call("active_sessions", &json!({ "agent": "bad" })));
    assert_eq!(client.close_after(b""), (vec![], 0));
}

#[test]
fn over_stdio_invalid_lines_before_the_handshake_are_tolerated() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let mut client = home.mcp_before_handshake();
    client.send_line(b"nonsense");
    assert_error("nonsense", &client.receive(), PARSE_ERROR, &Value::Null);
    client.send_line(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.send_line(br#"{"jsonrpc":"2.0","method":"hello"}"#);
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
    assert_no_session(&client.call("active_sessions", &json!({ "agent": "bad" })));
}

#[test]
fn over_stdio_a_last_line_without_newline_is_processed() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    assert_eq!(
        home.mcp_before_handshake().close_after(b""),
        (vec![], 0),
        "closing before the handshake is not an error"
    );
    let (responses, code) = home.mcp().close_after(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    assert_eq!((responses, code), (vec![json!({ "jsonrpc": "2.0", "id": "last", "result": {} })], 0));
    let (responses, code) = home.mcp().close_after(br#"{"jsonrpc":"2.0","id":"last","method":"pi"#);
    assert_eq!((responses.len(), code), (1, 0));
    assert_error("the last line", &responses[0], PARSE_ERROR, &json!("last"));
}

#[test]
fn over_http_every_invalid_message_gets_an_error_and_the_next_call_works() {
    let served = Served::sqlite();
    for (what, body, code, id) in bad_messages() {
        let too_large = body.len() > 20 * 1024 * 1024;
        let answer = post(&served, &[], &body);
        assert_eq!(answer.status, if too_large { 413 } else { 400 }, "{what}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.header("x-correlation-id").is_some());
        assert_error(what, &answer.json(), code, &id);
        assert_no_session(&call_tool(&served, "active_sessions", &json!({ "agent": "bad" })));
    }
    assert_error("nothing", &post(&served, &[], b"").json(), PARSE_ERROR, &Value::Null);
}

#[test]
fn arguments_up_to_the_limits_are_accepted() {
    let deep = format!("{}{}", "[".repeat(61), "]".repeat(61));
    let arguments = json!({ "agent": "a", "repo": "o/r", "meta": { "deep": serde_json::from_str::<Value>(&deep).unwrap() } });
    let large = json!({ "agent": "a", "repo": "o/r", "unknown": "x".repeat(10 * 1024 * 1024) });
    let (_home, mut client) = client();
    let served = Served::sqlite();
    for arguments in [arguments, large] {
        assert_ne!(client.call("session_start", &arguments)["isError"], true);
        assert_ne!(call_tool(&served, "session_start", &arguments)["isError"], true);
    }
}

#[test]
fn invalid_parameters_and_unknown_methods_have_different_codes() {
    let (_home, mut client) = client();
    let served = Served::sqlite();
    for (method, params, code) in [
        ("tools/call", json!({ "name": "session_start", "arguments": [] }), -32602),
        ("tools/call", json!({ "name": "nothing" }), -32602),
        ("tools/list", json!({ "cursor": "made-up" }), -32602),
        ("resources/read", json!({}), -32602),
        ("prompts/get", json!({ "name": "nothing" }), -32602),
        ("prompts/get", json!({ "name": "resume", "arguments": { "track": "x" } }), -32602),
        ("initialize", json!({}), -32602),
        ("nothing/here", json!({}), -32601),
    ] {
        let answer = client.request(method, &params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        let answer = ask(&served, &[], method, &params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
}
