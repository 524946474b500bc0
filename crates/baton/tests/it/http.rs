//! The HTTP interface: headers, bodies, authentication, idempotency and limits.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use baton_testkit::binary::{Home, ServerProcess};
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

fn server() -> (Home, ServerProcess) {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve();
    (home, server)
}

fn sod() -> Value {
    json!({ "agent": "a", "venture": "v", "repo": "o/r" })
}

#[test]
fn a_server_that_cannot_listen_leaves_no_relay_key() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).with("BATON_RELAY_KEY", "");
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let failed =
        home.run(&["serve", "--listen", &used.local_addr().unwrap().to_string(), "--format", "json"]);
    assert_eq!(failed.json()["error"]["code"], "serve_failed", "{failed:?}");
    assert!(!home.data_dir().join("relay.key").exists());
}

#[test]
fn every_response_has_a_correlation_id() {
    let (_home, server) = server();
    for (method, path, status) in [("POST", "/nothing", 404), ("GET", "/sod", 405), ("POST", "/sod", 400)] {
        let answer = server.send(method, path, &[], b"");
        assert_eq!(answer.status, status, "{path} {}", answer.text);
        let id = answer.header("x-correlation-id").unwrap();
        assert!(id.starts_with("corr_"), "{id}");
        let body = answer.json();
        assert_eq!(body["correlation_id"], id);
        assert!(body["error"].is_string() && body["message"].is_string() && body.get("details").is_some());
    }
    let own = server.send("GET", "/nothing", &[("x-correlation-id", "my.own:id-1")], b"");
    assert_eq!(own.header("x-correlation-id"), Some("my.own:id-1"));
    let foreign = server.send("GET", "/nothing", &[("x-correlation-id", "not good")], b"");
    assert!(foreign.header("x-correlation-id").unwrap().starts_with("corr_"));
}

#[test]
fn invalid_bodies_are_rejected_and_store_nothing() {
    let (_home, server) = server();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(70), "]".repeat(70));
    let cases: &[(&[u8], u16, &str)] = &[
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"{} x", 400, "invalid_json"),
        (b"{\"agent\":\"a\",\"agent\":\"b\"}", 400, "invalid_json"),
        (b"{\"agent\":\"\xff\"}", 400, "invalid_json"),
        (b"{\"agent\":\"\\ud800\"}", 400, "invalid_json"),
        (deep.as_bytes(), 400, "invalid_json"),
        (b"null", 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b"3", 400, "invalid_request"),
        (b"{}", 400, "invalid_request"),
        (b"{\"agent\":1,\"repo\":\"o/r\"}", 400, "invalid_request"),
        (b"{\"agent\":\"a\",\"repo\":\"o/r\",\"track\":\"1\"}", 400, "invalid_request"),
        (b"{\"agent\":\"a\",\"repo\":\"o/r\",\"track\":1.5}", 400, "invalid_request"),
        (b"{\"agent\":\"a\",\"repo\":\"o/r\",\"branch\":\"a\\u0007\"}", 400, "invalid_request"),
        (b"{\"agent\":\"a\",\"repo\":\"o/r\",\"schema_version\":\"9.9\"}", 400, "unsupported_schema_version"),
        (b"{\"agent\":\"a\",\"repo\":\"o/r\",\"schema_version\":1}", 400, "invalid_request"),
    ];
    for (body, status, code) in cases {
        let answer = server.send("POST", "/sod", &[], body);
        let text = String::from_utf8_lossy(body);
        assert_eq!((answer.status, answer.json()["error"].as_str()), (*status, Some(*code)), "{text}");
    }
    let large = vec![b' '; 1024 * 1024 + 1];
    let answer = server.send("POST", "/sod", &[], &large);
    assert_eq!((answer.status, &answer.json()["error"]), (413, &"payload_too_large".into()));
    let active = server.get("/active?agent=a").json();
    assert_eq!(active["sessions"], json!([]));
}

#[test]
fn requests_without_a_valid_key_return_401() {
    let (_home, server) = server();
    for key in ["", "wrong", "test-relay-kez"] {
        let answer = server.send("POST", "/sod", &[("x-relay-key", key)], sod().to_string().as_bytes());
        assert_eq!((answer.status, &answer.json()["error"]), (401, &"unauthorized".into()));
    }
    let bearer = [("x-relay-key", ""), ("authorization", "Bearer test-relay-key-0123456789")];
    assert_eq!(server.send("POST", "/sod", &bearer[..1], b"{}").status, 401);
}

#[test]
fn foreign_hosts_and_origins_return_403() {
    let (_home, server) = server();
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")] {
        let answer = server.send("GET", "/active?venture=v", &[(name, value)], b"");
        assert_eq!((answer.status, &answer.json()["error"]), (403, &"forbidden".into()), "{name}: {value}");
    }
    for (name, value) in [("host", "localhost:1"), ("origin", "http://127.0.0.1:7333")] {
        assert_eq!(
            server.send("GET", "/active?venture=v", &[(name, value)], b"").status,
            200,
            "{name}: {value}"
        );
    }
}

#[test]
fn a_repeated_key_replays_the_first_response_byte_for_byte() {
    let (_home, server) = server();
    let key = [("idempotency-key", "k-1")];
    let first = server.send("POST", "/sod", &key, sod().to_string().as_bytes());
    assert_eq!((first.status, first.header("x-idempotency-hit")), (200, None));
    let again = server.send("POST", "/sos", &key, sod().to_string().as_bytes());
    assert_eq!((again.status, again.header("x-idempotency-hit")), (200, Some("true")));
    assert_eq!(again.text, first.text, "an alias has the same idempotency scope");
    assert_ne!(again.header("x-correlation-id"), first.header("x-correlation-id"));
    let other = json!({ "agent": "b", "venture": "v", "repo": "o/r" });
    let refused = server.send("POST", "/sod", &key, other.to_string().as_bytes());
    assert_eq!((refused.status, &refused.json()["error"]), (422, &"idempotency_mismatch".into()));
    let elsewhere = server.send("POST", "/heartbeat", &key, b"{\"session_id\":\"x\"}");
    assert_eq!(elsewhere.status, 400, "another endpoint has another scope");
}

#[test]
fn an_error_of_the_store_is_replayed_too() {
    let (_home, server) = server();
    let key = [("idempotency-key", "k-2")];
    let body = json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" }).to_string();
    let first = server.send("POST", "/heartbeat", &key, body.as_bytes());
    let again = server.send("POST", "/heartbeat", &key, body.as_bytes());
    assert_eq!((first.status, again.status), (404, 404));
    assert_eq!(first.text, again.text);
    assert_eq!(again.header("x-idempotency-hit"), Some("true"));
}

#[test]
fn server_is_not_ready_while_another_process_locks_the_database() {
    let (home, server) = server();
    assert_eq!(server.get("/readyz").status, 200);
    let other = rusqlite::Connection::open(home.data_dir().join("baton.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    wait_until("the server is not ready", || server.get("/readyz").status == 503);
    assert_eq!((server.get("/healthz").status, server.get("/active?venture=v").status), (200, 200));
    other.execute_batch("ROLLBACK").unwrap();
    wait_until("the server is ready again", || server.get("/readyz").status == 200);
}

#[test]
fn service_endpoints_follow_the_common_rules() {
    let (_home, server) = server();
    for (path, kind) in [
        ("/healthz", "application/json"),
        ("/readyz", "application/json"),
        ("/openapi.json", "application/json"),
        ("/docs", "text/html; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4"),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        assert!(answer.header("x-correlation-id").unwrap().starts_with("corr_"), "{path}");
        for method in ["POST", "DELETE", "PUT"] {
            let refused = server.send(method, path, &[], b"{}");
            assert_eq!(
                (refused.status, &refused.json()["error"]),
                (405, &"method_not_allowed".into()),
                "{path}"
            );
            assert_eq!(refused.header("allow"), Some("GET"), "{path}");
            assert_eq!(refused.json()["correlation_id"].as_str(), refused.header("x-correlation-id"));
        }
    }
    assert_eq!(server.send("PUT", "/handoffs", &[], b"").header("allow"), Some("GET, POST"));
}

/// Reads one response and returns its status.
fn status_of(reader: &mut BufReader<TcpStream>) -> String {
    let mut lines = String::new();
    while !lines.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut lines).unwrap() > 0, "the connection was closed after {lines:?}");
    }
    let length = lines.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    reader.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
    lines.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_rejected_request_keeps_the_connection_usable() {
    let (_home, server) = server();
    let address = server.url().strip_prefix("http://").unwrap();
    let body = "x".repeat(300_000);
    for (refused, status) in [
        ("POST /sod HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: wrong", "401"),
        ("POST /sod HTTP/1.1\r\nHost: evil.example\r\nX-Relay-Key: test-relay-key-0123456789", "403"),
        (
            "POST /sod HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: test-relay-key-0123456789\r\nIdempotency-Key: a b",
            "400",
        ),
        ("POST /nothing HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: test-relay-key-0123456789", "404"),
        ("PUT /sod HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: test-relay-key-0123456789", "405"),
        ("POST /healthz HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: test-relay-key-0123456789", "405"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost", "200"),
        (
            "GET /active?venture=v HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: test-relay-key-0123456789",
            "200",
        ),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let length = body.len();
        write!(stream, "{refused}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        assert_eq!(status_of(&mut reader), status, "{refused}");
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_eq!(status_of(&mut reader), "200", "after {refused}");
    }
}

#[test]
fn requests_over_the_rate_limit_return_429_with_retry_after() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    // The next request is allowed after a minute, so that a slow test machine does not affect the result.
    let server = home.serve_with(&[("BATON_RATE_LIMIT_PER_MINUTE", "1")]);
    let statuses: Vec<u16> = (0..2).map(|_| server.get("/active?venture=v").status).collect();
    assert_eq!(statuses, [200, 429]);
    let refused = server.send("POST", "/sod", &[("idempotency-key", "k")], sod().to_string().as_bytes());
    assert_eq!((refused.status, &refused.json()["error"]), (429, &"rate_limited".into()));
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&seconds), "{seconds}");
    assert_eq!(refused.json()["details"]["retry_after_seconds"], seconds);
    assert_eq!(server.get("/healthz").status, 200, "health checks are not limited");
    let unauthorized = server.send("GET", "/active?venture=v", &[("x-relay-key", "wrong")], b"");
    assert_eq!(unauthorized.status, 401, "each credential has its own limit");
}
