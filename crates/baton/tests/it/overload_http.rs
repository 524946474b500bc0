//! The server under clients that are slow, unauthenticated, or send large requests all at once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use baton_store::StoreError;
use baton_testkit::binary::{Home, RELAY_KEY, ServerProcess};
use serde_json::json;

use crate::served::{Served, refusal};

const MIB: usize = 1024 * 1024;

fn connect(server: &ServerProcess) -> TcpStream {
    TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap()
}

/// Opens a connection and sends a part of a request.
fn send_part(server: &ServerProcess, part: &str) -> TcpStream {
    let mut stream = connect(server);
    stream.write_all(part.as_bytes()).unwrap();
    stream
}

#[test]
fn slow_clients_do_not_keep_others_out() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).with_ulimit("-n 256");
    let server = home.serve();
    let slow_head = "POST /sod HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let slow_body = "POST /sod HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    // A connection kept open from the round before would be the oldest idle one, which the server closes first.
    let get = |path| server.send("GET", path, &[("connection", "close")], b"").status;
    for part in [slow_head, slow_body, ""] {
        let slow: Vec<TcpStream> = (0..500).map(|_| send_part(&server, part)).collect();
        assert_eq!((get("/healthz"), get("/active?venture=v")), (200, 200), "{part}");
        drop(slow);
    }
    let metrics = server.get("/metrics").text;
    assert!(metrics.contains("baton_connections_closed_total{reason=\"limit\"}"), "{metrics}");
}

#[test]
fn server_stops_while_requests_are_half_sent() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve();
    let _head = send_part(&server, "POST /sod HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    let head =
        format!("POST /sod HTTP/1.1\r\nHost: localhost\r\nX-Relay-Key: {RELAY_KEY}\r\nContent-Length: 9");
    let _body = send_part(&server, &format!("{head}\r\n\r\n{{"));
    let mut idle = send_part(&server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(idle.read(&mut [0; 512]).unwrap() > 0);
    assert_eq!(server.stop(), 0);
}

#[test]
fn request_head_over_64_kib_is_rejected() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve();
    let mut stream = connect(&server);
    // The server may close the connection before everything is sent.
    let _ = write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(100_000));
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn address_with_many_failed_authentications_gets_429_but_valid_credentials_work() {
    for served in Served::each() {
        let token =
            served.home.run(&["token", "create", "--name", "ci", "--access", "read", "--format", "json"]);
        let token = token.json()["data"]["token"].as_str().unwrap().to_owned();
        let served = served.restarted(&[("BATON_RATE_LIMIT_FAILED_PER_MINUTE", "5")]);
        let by = |key: &str| served.send("GET", "/active?venture=v", &[("x-relay-key", key)], b"");
        assert_eq!(by(&token).status, 200);
        for _ in 0..5 {
            refusal(&by("wrong"), 401, "unauthorized");
        }
        for key in ["wrong", "", "bt_0000000000000000_wrong"] {
            let limited = by(key);
            refusal(&limited, 429, "rate_limited");
            let seconds: u64 = limited.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=61).contains(&seconds), "{seconds}");
        }
        assert_eq!((by(&token).status, served.get("/active?venture=v").status), (200, 200));
        assert_eq!(served.get("/healthz").status, 200);
    }
}

#[test]
fn requests_without_a_credential_leave_few_records_in_the_log() {
    for served in Served::each() {
        for _ in 0..500 {
            let status = served.send("POST", "/sod", &[("x-relay-key", "wrong")], b"{}").status;
            assert!(matches!(status, 401 | 429), "{status}");
        }
        for _ in 0..500 {
            let foreign = [("x-relay-key", "wrong"), ("host", "evil.example")];
            assert_eq!(served.send("GET", "/active?venture=v", &foreign, b"").status, 403);
        }
        let (store, home) = (served.store(), served.stop());
        let records = store.read::<_, StoreError, _>(|tx| tx.requests(2_000)).wait().unwrap();
        drop(home);
        let anonymous: Vec<_> = records.iter().filter(|record| record.actor_key_id.is_none()).collect();
        // Two records for each status, and two more if an interval ends meanwhile.
        assert!(anonymous.len() <= 12, "{}", anonymous.len());
        assert_eq!(anonymous.iter().map(|record| record.request_count).sum::<u32>(), 1_000);
    }
}

/// Returns the peak memory of a process in bytes.
fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// Returns a context of 16 MB with 500,000 keys, most of them in small objects.
fn context_with_many_objects() -> String {
    let items: Vec<String> = (0..250_000)
        .map(|number| format!(r#"{{"path":"crates/module/src/file_number_{number:06}.rs","id":{number}}}"#))
        .collect();
    format!(r#"{{"items":[{}],"goal":"g"}}"#, items.join(","))
}

/// Returns a context of 15 MB with 500,000 keys in one object, each of which gets a layer of its own.
fn context_with_many_keys() -> String {
    let keys: Vec<String> =
        (0..500_000).map(|number| format!(r#""file_{number:06}":"crates/{number}""#)).collect();
    format!(r#"{{{},"goal":"g"}}"#, keys.join(","))
}

#[test]
fn context_with_500_000_keys_needs_less_than_128_mb() {
    const LIMIT: usize = 128 * MIB;
    for context in [context_with_many_objects(), context_with_many_keys()] {
        assert!((14_000_000..16 * MIB).contains(&context.len()), "{}", context.len());
        let home = Home::new(env!("CARGO_BIN_EXE_baton"));
        // Each request goes to a server of its own: a server keeps memory that it freed for later requests.
        let peak_of = |method: &str, path: &str, body: &str| {
            let server = home.serve_as(&["--no-worker"], &[]);
            let answer = server.send(method, path, &[("content-type", "application/json")], body.as_bytes());
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            let peak = peak_memory(server.id());
            assert!(peak < LIMIT, "the server held {peak} bytes for {method} {path}");
            answer
        };
        for goal in ["g", "h"] {
            let context = context.replace(r#""goal":"g""#, &format!(r#""goal":"{goal}""#));
            peak_of("POST", "/api/checkpoints", &format!(r#"{{"context":{context},"sessionId":"w"}}"#));
        }
        let get = |path: &str| peak_of("GET", &format!("/api/checkpoints/{path}"), "");
        let loaded = get("load?sessionId=w");
        assert!(loaded.text.contains("249999"), "{} bytes", loaded.text.len());
        for budget in ["maxTokens=4000", "maxBytes=20000", "maxBytes=8000000"] {
            let answer = get(&format!("load?sessionId=w&{budget}")).json();
            assert_eq!(answer["context"]["goal"], "h");
            assert!(
                answer["view"]["omissions"].as_array().is_some_and(|list| (1..=1_000).contains(&list.len()))
            );
        }
        let explained = get("explain?sessionId=w");
        assert_eq!(explained.json()["layers"]["CRITICAL"], 3, "{}", explained.text);
        assert_eq!(get("diff?sessionId=w").json()["changes"][0]["path"], "goal");
        let marked = peak_of("POST", "/api/checkpoints/critical", r#"{"sessionId":"w","contextKey":"goal"}"#);
        assert_eq!(marked.json()["status"], "SUCCESS", "{}", marked.text);

        let home = home.with_ulimit(&format!("-d {}", LIMIT / 1024));
        let saved = home.run_with_input(&["checkpoint", "save", "--session", "cli"], context.as_bytes());
        assert_eq!(saved.code, 0, "{}", saved.stderr);
        let loaded = home.run(&["checkpoint", "load", "--session", "cli"]);
        assert_eq!(loaded.code, 0, "{}", loaded.stderr);
        assert!(loaded.stdout.contains("249999"), "{} bytes", loaded.stdout.len());
        for budget in [["--max-tokens", "4000"], ["--max-bytes", "20000"]] {
            let viewed = home.run(&[&["checkpoint", "load", "--session", "cli"], budget.as_slice()].concat());
            assert_eq!(viewed.code, 0, "{}", viewed.stderr);
        }
    }
}

#[test]
fn concurrent_large_requests_stay_within_the_memory_budget() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve_as(&["--no-worker"], &[("BATON_BODY_MEMORY_MB", "32")]);
    let notes = "the quick brown fox jumps over the lazy dog. ".repeat(8 * MIB / 45);
    let save = |number: usize| {
        let context = json!({ "goal": format!("goal {number}"), "notes": notes });
        json!({ "sessionId": format!("wf-{number}"), "context": context }).to_string()
    };
    let call = |number: usize| {
        let arguments: serde_json::Value = serde_json::from_str(&save(number)).unwrap();
        let params = json!({ "name": "workflow_checkpoint_save", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
    };
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let requests: Vec<_> = (0..16)
            .map(|number| {
                let (server, save, call) = (&server, &save, &call);
                scope.spawn(move || {
                    let (path, body) = if number % 4 == 0 {
                        ("/mcp", call(number))
                    } else {
                        ("/api/checkpoints", save(number))
                    };
                    let answer = server.send("POST", path, &headers, body.as_bytes());
                    if answer.status == 503 {
                        assert!(answer.header("retry-after").is_some(), "{}", answer.text);
                        assert_eq!(answer.json()["error"], "overloaded", "{}", answer.text);
                    }
                    answer.status
                })
            })
            .collect();
        while requests.iter().any(|request| !request.is_finished()) {
            assert_eq!(server.get("/active?venture=v").status, 200, "small requests are answered meanwhile");
        }
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    let peak = peak_memory(server.id());
    assert!(peak < 192 * MIB, "{peak} bytes");
    assert_eq!(server.send("POST", "/api/checkpoints", &headers, save(99).as_bytes()).status, 200);
}
