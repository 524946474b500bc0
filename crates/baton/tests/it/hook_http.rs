//! Hooks over HTTP: the same events and items as on the command line, with authentication.

use baton_testkit::binary::RELAY_KEY;
use serde_json::{Value, json};

use crate::hooked::{CHAT, Hooked};
use crate::served::{Served, expect, refusal, with};

/// Returns the fields of queue items that do not depend on time or machine.
fn items(listed: &Value) -> Vec<Value> {
    let listed = listed["items"].as_array().unwrap();
    listed
        .iter()
        .map(|item| {
            json!([item["tool_name"], item["files_touched"], item["raw_bytes"], item["status"], item["repo"]])
        })
        .collect()
}

fn report(event: &str) -> Value {
    let report = json!({
        "session_id": CHAT, "transcript_path": "/home/dev/.claude/projects/shop/c.jsonl", "cwd": "/home/dev/shop",
        "repo": "o/shop", "hook_event_name": event,
    });
    let more = match event {
        "user-prompt-submit" => json!({ "prompt": "Make it fast" }),
        "post-tool-use" => json!({
            "tool_name": "Edit", "tool_use_id": "toolu_1", "tool_input": { "file_path": "/home/dev/shop/src/a.rs" },
            "tool_response": { "ok": true, "text": "naïve ☕ \u{1b}[0m" },
        }),
        _ => json!({}),
    };
    with(report, more)
}

#[test]
fn events_over_http_store_the_same_as_on_the_command_line() {
    for served in Served::each_without_worker() {
        let hooked = Hooked::new();
        for event in
            ["session-start", "user-prompt-submit", "post-tool-use", "post-tool-use", "stop", "pre-compact"]
        {
            let answer = served.post(&format!("/hooks/{event}"), &report(event));
            assert_eq!(expect(&answer, 200), json!({}), "{event}");
            hooked.hook(event, &report(event));
        }
        let here = hooked.data(&["queue", "list", "--status", "raw"]);
        let there = served.found("/api/queue?status=raw");
        assert_eq!((items(&here), items(&here).len()), (items(&there), 1));
        let session = served.found("/active?repo=o/shop")["sessions"][0].clone();
        let same = hooked.sessions().remove(0);
        for field in ["agent", "client", "repo", "venture", "client_session_id"] {
            assert_eq!(session[field], same[field], "{field}");
        }
        let saved = served.found(&format!("/api/checkpoints/load?sessionId={CHAT}"));
        assert_eq!(saved["context"]["prompts"], json!(["Make it fast"]));
        expect(&served.post("/hooks/session-end", &report("session-end")), 200);
        let response = expect(&served.post("/hooks/session-start", &report("session-start")), 200);
        assert_eq!(response["hookSpecificOutput"]["hookEventName"], "SessionStart", "{response}");
    }
}

#[test]
fn tool_uses_of_baton_itself_are_not_captured() {
    let hooked = Hooked::new();
    let (mut tool, mut command) = (report("post-tool-use"), report("post-tool-use"));
    tool["tool_name"] = json!("mcp__baton__handoff_latest");
    command["tool_input"] = json!({ "command": "baton handoff latest" });
    for own in [tool, command] {
        hooked.hook("post-tool-use", &own);
    }
    assert_eq!(hooked.queue(), [0, 0, 0, 0]);
    assert_eq!(hooked.sessions().len(), 1, "they still count as heartbeats");
    hooked.hook("post-tool-use", &report("post-tool-use"));
    assert_eq!(hooked.queue(), [1, 0, 0, 0]);
}

#[test]
fn reports_without_a_valid_key_return_401() {
    for served in Served::each_without_worker() {
        let body = report("post-tool-use").to_string();
        for key in ["", "wrong", &RELAY_KEY[1..]] {
            let answer =
                served.send("POST", "/hooks/post-tool-use", &[("x-relay-key", key)], body.as_bytes());
            refusal(&answer, 401, "unauthorized");
        }
        assert_eq!(served.found("/api/queue/stats")["raw"], 0);
        let first = served.keyed(
            "/hooks/post-tool-use",
            "k-1",
            &with(report("post-tool-use"), json!({ "tool_use_id": null })),
        );
        let again = served.keyed(
            "/hooks/post-tool-use",
            "k-1",
            &with(report("post-tool-use"), json!({ "tool_use_id": null })),
        );
        assert_eq!((first.status, again.status), (200, 200), "{}", again.text);
        assert!(first.header("x-idempotency-hit").is_none() && again.header("x-idempotency-hit").is_some());
        assert_eq!(
            served.found("/api/queue/stats")["raw"],
            1,
            "a request repeated with its key must be stored once"
        );
    }
}

#[test]
fn invalid_reports_over_http_return_400_and_store_nothing() {
    for served in Served::each_without_worker() {
        for event in ["notification", "Stop%20it", "post_tool_use"] {
            let answer = served.post(&format!("/hooks/{event}"), &report("stop"));
            assert_eq!(answer.status, 400, "{event}: {}", answer.text);
        }
        assert_eq!(served.post("/hooks/", &report("stop")).status, 404);
        assert_eq!(served.get("/hooks/stop").status, 405);
        let cases: [(&str, &[u8]); 6] = [
            ("post-tool-use", b""),
            ("post-tool-use", b"{\"tool_name\""),
            ("post-tool-use", b"[]"),
            ("post-tool-use", b"{}"),
            ("post-tool-use", br#"{"tool_name": "Bash"}"#),
            ("user-prompt-submit", br#"{"repo": "o/r"}"#),
        ];
        for (event, body) in cases {
            let answer = served.send(
                "POST",
                &format!("/hooks/{event}"),
                &[("content-type", "application/json")],
                body,
            );
            assert_eq!(answer.status, 400, "{event} {}: {}", String::from_utf8_lossy(body), answer.text);
        }
        assert_eq!(
            served.found("/api/queue/stats"),
            json!({ "raw": 0, "processing": 0, "done": 0, "error": 0 })
        );
        assert_eq!(served.found("/active?repo=o/r")["sessions"], json!([]));
    }
}

#[test]
fn malformed_json_of_agents_is_repaired_over_http_as_on_the_command_line() {
    let served = Served::each_without_worker().next().unwrap();
    let hooked = Hooked::new();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let responses = [
        r#""half \ud83d""#.as_bytes().to_vec(),
        b"\"no UTF-8 \xff\"".to_vec(),
        br#"{"a":1,"a":2}"#.to_vec(),
        br#"{"id":9007199254740993}"#.to_vec(),
        br#"[1e400,NaN]"#.to_vec(),
        deep.into_bytes(),
        br#"1,"tool_use_id":7,"error":{"code":3},"session_id":"x y","branch":"","event":"mine","schema_version":9"#.to_vec(),
    ];
    for response in &responses {
        let body =
            [br#"{"repo":"o/shop","tool_name":"T","tool_response":"#.as_slice(), response, b"}"].concat();
        let answer =
            served.send("POST", "/hooks/PostToolUseFailure", &[("content-type", "application/json")], &body);
        expect(&answer, 200);
        let finished = hooked.call(&["PostToolUseFailure"], &body);
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    }
    assert_eq!(hooked.troubles(), Vec::<Value>::new());
    let here = hooked.data(&["queue", "list", "--status", "raw"]);
    let there = served.found("/api/queue?status=raw");
    assert_eq!((items(&here), items(&here).len()), (items(&there), responses.len()));
}

#[test]
fn a_large_output_is_accepted_over_http() {
    let served = Served::each_without_worker().next().unwrap();
    // Larger than the body limit of other requests.
    let text = "lorem ipsum ".repeat(90_000);
    let body = with(report("post-tool-use"), json!({ "tool_response": text }));
    expect(&served.post("/hooks/post-tool-use", &body), 200);
    assert_eq!(served.found("/api/queue?status=raw")["items"][0]["raw_bytes"], text.len());
}
