//! The request log: `GET /api/requests`, `baton requests` and `--follow`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, refusal, who, with};

/// Reads the request log until it has as many records as expected.
fn logged(served: &Served, query: &str, count: usize) -> Vec<Value> {
    let list = || served.found(&format!("/api/requests?{query}"))["requests"].as_array().unwrap().clone();
    wait_until("the request log is written", || list().len() >= count);
    list()
}

fn endpoints(requests: &[Value]) -> Vec<(&str, u64)> {
    requests
        .iter()
        .map(|one| (one["endpoint"].as_str().unwrap(), one["status_code"].as_u64().unwrap()))
        .collect()
}

#[test]
fn requests_are_listed_by_session_status_actor_and_endpoint() {
    for served in Served::each() {
        let session = id(&served.ok("/sod", &with(who("claude"), json!({ "track": 2 })))["session_id"]);
        served.start("codex");
        served.ok("/heartbeat", &json!({ "session_id": session }));
        expect(&served.keyed("/update", "k", &json!({ "session_id": session, "branch": "b" })), 200);
        served.found(&format!("/sessions/{session}"));
        served.refused("/update", &json!({ "session_id": session }), 400, "missing_idempotency_key");
        let by_session = logged(&served, &format!("session_id={session}"), 5);
        let path = format!("/sessions/{session}");
        let expected =
            [("/update", 400), (path.as_str(), 200), ("/update", 200), ("/heartbeat", 200), ("/sod", 200)];
        assert_eq!(endpoints(&by_session), expected);
        for one in &by_session {
            let names = [&one["agent"], &one["venture"], &one["repo"], &one["track"]];
            assert_eq!(json!(names), json!(["claude", "v", "o/r", 2]), "{one}");
        }
        assert_eq!(endpoints(&logged(&served, "status=error", 1)), [("/update", 400)]);
        assert_eq!(endpoints(&logged(&served, "status=4xx&endpoint=/update", 1)), [("/update", 400)]);
        assert_eq!(endpoints(&logged(&served, "status=404", 0)), []);
        assert_eq!(endpoints(&logged(&served, "endpoint=/heartbeat&since=1h", 1)), [("/heartbeat", 200)]);
        assert_eq!(endpoints(&logged(&served, "since=2100-01-01T00:00:00Z", 0)), []);
        let actor = id(&by_session[0]["actor_key_id"]);
        assert!(logged(&served, &format!("actor={actor}&limit=200"), 6).len() >= 6);
        assert_eq!(endpoints(&logged(&served, "actor=0123456789abcdef", 0)), []);
        for bad in
            ["status=6xx", "actor=me", "session_id=x", "since=yesterday", "limit=0", "before=x", "endpoint="]
        {
            refusal(&served.get(&format!("/api/requests?{bad}")), 400, "invalid_request");
        }
    }
}

#[test]
fn service_pages_are_logged_and_repetitions_counted() {
    let served = Served::sqlite();
    for _ in 0..20 {
        served.found("/healthz");
    }
    for page in ["/readyz", "/openapi.json"] {
        served.found(page);
    }
    assert_eq!(served.get("/metrics").status, 200);
    for page in ["/healthz", "/readyz", "/openapi.json", "/metrics"] {
        let records = logged(&served, &format!("endpoint={page}"), 1);
        assert_eq!(records[0]["status_code"], 200, "{page}");
        assert_eq!(records[0]["actor_key_id"].is_string(), page == "/metrics", "{page}");
    }
    let (home, _) = served.stop();
    let listed = home.run(&["requests", "--endpoint", "/healthz", "--format", "json"]).json();
    let records = listed["data"]["requests"].as_array().unwrap();
    assert!(records.len() <= 4, "{records:?}");
    let counted: u64 = records.iter().map(|one| one["request_count"].as_u64().unwrap()).sum();
    assert!(counted >= 20, "{records:?}");
}

#[test]
fn command_line_lists_pages_and_json_lines() {
    let served = Served::sqlite();
    let session = served.start("claude");
    for _ in 0..250 {
        served.ok("/heartbeat", &json!({ "session_id": session }));
    }
    // All records are written before the server has stopped.
    let (home, _) = served.stop();
    let run = |arguments: &[&str]| {
        let finished = home.run(&[&["requests"], arguments].concat());
        assert_eq!(finished.code, 0, "{finished:?}");
        finished.stdout
    };
    let lines = run(&["--json", "--session", &session, "--limit", "300"]);
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 251);
    assert!(records.iter().all(|one| one["agent"] == "claude" && one["session_id"] == session.as_str()));
    let text = run(&["--endpoint", "/sod"]);
    assert!(text.contains("200  POST /sod") && text.contains(&format!("session={session}")), "{text}");
    let first = run(&["--endpoint", "/heartbeat", "--limit", "240"]);
    let more = first.lines().last().unwrap().strip_prefix("more: --before ").unwrap();
    assert_eq!(run(&["--endpoint", "/heartbeat", "--before", more]).lines().count(), 10);
    assert_eq!(run(&["--status", "5xx"]).trim(), "no requests match");
    assert!(run(&["--session", &session[..20], "--limit", "1"]).contains(&session), "a short id");
    assert_eq!(home.run(&["requests", "--session", "x"]).code, 7);
    for bad in [["--status", "6xx"], ["--since", "soon"], ["--actor", "x"], ["--limit", "0"]] {
        assert_eq!(home.run(&[&["requests"][..], &bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn followers_see_new_requests_in_order_and_stop_with_their_reader() {
    for served in Served::each() {
        let session = served.start("claude");
        logged(&served, "endpoint=/sod", 1);
        let mut command = served.home.command();
        command.args(["requests", "--follow", "--json", "--session", &session]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["endpoint"], "/sod");
        served.ok("/heartbeat", &json!({ "session_id": session }));
        assert_eq!(next()["endpoint"], "/heartbeat");
        served.refused("/update", &json!({ "session_id": session }), 400, "missing_idempotency_key");
        assert_eq!(next()["status_code"], 400);
        drop(lines);
        served.ok("/heartbeat", &json!({ "session_id": session }));
        wait_until("the follower ends with its reader", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success());
    }
}
