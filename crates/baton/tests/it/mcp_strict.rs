//! What is no message: answered in the words of the protocol on either transport, and the next call works.

use baton_testkit::binary::{Home, McpClient};
use serde_json::{Value, json};

use crate::mcp_http::{ask, call_tool, post};
use crate::served::Served;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// A call of `session_start` with `more` among its arguments.
fn start_with(id: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"session_start","arguments":{{"agent":"bad","repo":"o/r",{more}}}}}}}"#
    )
}

/// Messages that must be refused, with the code and the id of the answer.
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

fn check(what: &str, answer: &Value, code: i64, id: &Value) {
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{what}: {answer}");
    assert!(answer["error"]["message"].is_string() && answer.get("result").is_none(), "{what}: {answer}");
}

fn nobody_came(listed: &Value) {
    assert_eq!(listed["structuredContent"]["sessions"], json!([]), "a refused message does nothing");
}

fn client() -> (Home, McpClient) {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let client = home.mcp();
    (home, client)
}

#[test]
fn over_stdio_every_bad_line_is_answered_and_the_next_call_works() {
    let (_home, mut client) = client();
    for (what, line, code, id) in bad_messages() {
        client.send_line(&line);
        check(what, &client.receive(), code, &id);
        nobody_came(&client.call("active_sessions", &json!({ "agent": "bad" })));
    }
    for blank in ["", "   ", "\r"] {
        client.send_line(blank.as_bytes());
    }
    nobody_came(&client.call("active_sessions", &json!({ "agent": "bad" })));
    assert_eq!(client.close_after(b""), (vec![], 0));
}

#[test]
fn over_stdio_nonsense_before_the_handshake_ends_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let mut client = home.mcp_before_handshake();
    client.send_line(b"nonsense");
    check("nonsense", &client.receive(), PARSE_ERROR, &Value::Null);
    client.send_line(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.send_line(br#"{"jsonrpc":"2.0","method":"hello"}"#);
    assert_eq!(client.initialize("2025-11-25")["protocolVersion"], "2025-11-25");
    nobody_came(&client.call("active_sessions", &json!({ "agent": "bad" })));
}

#[test]
fn over_stdio_a_last_line_without_an_end_counts() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    assert_eq!(home.mcp_before_handshake().close_after(b""), (vec![], 0), "a client may change its mind");
    let (said, code) = home.mcp().close_after(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    assert_eq!((said, code), (vec![json!({ "jsonrpc": "2.0", "id": "last", "result": {} })], 0));
    let (said, code) = home.mcp().close_after(br#"{"jsonrpc":"2.0","id":"last","method":"pi"#);
    assert_eq!((said.len(), code), (1, 0));
    check("the last line", &said[0], PARSE_ERROR, &json!("last"));
}

#[test]
fn over_http_every_bad_message_is_answered_and_the_next_call_works() {
    let served = Served::sqlite();
    for (what, body, code, id) in bad_messages() {
        let too_large = body.len() > 20 * 1024 * 1024;
        let answer = post(&served, &[], &body);
        assert_eq!(answer.status, if too_large { 413 } else { 400 }, "{what}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.header("x-correlation-id").is_some());
        check(what, &answer.json(), code, &id);
        nobody_came(&call_tool(&served, "active_sessions", &json!({ "agent": "bad" })));
    }
    check("nothing", &post(&served, &[], b"").json(), PARSE_ERROR, &Value::Null);
}

#[test]
fn arguments_may_be_as_large_and_as_deep_as_the_limits_say() {
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
fn parameters_that_do_not_fit_are_told_from_unknown_methods() {
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
