//! Text over HTTP: text is returned byte for byte, and control characters are rejected.

use baton_store::StoreError;
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::served::{Served, encode, id, refusal, who, with};

/// Text that breaks if it is truncated by bytes, case-folded, normalised or not escaped.
const AWKWARD: &str = "naïve e\u{301} ☕ 接力棒 👩‍💻 \u{202e}rtl \"q\" 'q' \\ $1 ?1 %00 \u{fffd}\u{10ffff}";
const CONTROL: [char; 4] = ['\0', '\u{7}', '\u{1b}', '\u{7f}'];

#[test]
fn unicode_is_returned_byte_for_byte() {
    for served in Served::each() {
        let chat = "a.b-c_d/!\"#$%&'()*+,:;<=>?@[\\]^`{|}~";
        let start = json!({
            "agent": "0.a-b_c", "venture": "v.1_2-3", "repo": "o.w-n_er/.na-me_.rs", "branch": AWKWARD,
            "host": AWKWARD, "client": AWKWARD, "client_version": AWKWARD, "commit_sha": AWKWARD,
            "client_session_id": chat, "meta": { AWKWARD: [AWKWARD, { "line\nbreak\ttab": "a\r\nb" }] },
        });
        let started = served.ok("/sod", &start);
        for (name, value) in start.as_object().unwrap() {
            assert_eq!(started["session"][name], *value, "{name}");
        }
        let session_id = id(&started["session_id"]);
        assert_eq!(served.found(&format!("/sessions/{session_id}"))["session"], started["session"]);
        assert_eq!(
            served.ok("/sod", &start)["session_id"],
            session_id.as_str(),
            "the same identity must resume the session"
        );
        let summary = format!("{AWKWARD}\n\tsecond line\r\n");
        let handoff = json!({
            "summary": summary, "status_label": AWKWARD, "work_completed": [AWKWARD], AWKWARD: { AWKWARD: AWKWARD },
        });
        let ended = served.ok("/eod", &json!({ "session_id": session_id, "handoff": handoff }));
        let shown = served.found(&format!("/handoffs/{}", id(&ended["handoff_id"])))["handoff"].clone();
        let head = json!({ "summary": shown["summary"], "status_label": shown["status_label"] });
        assert_eq!(with(shown["payload"].clone(), head), handoff);
        let query = format!("venture={}&repo={}", encode("v.1_2-3"), encode("o.w-n_er/.na-me_.rs"));
        assert_eq!(served.found(&format!("/handoffs?{query}"))["handoffs"][0], shown);
    }
}

/// Returns every request with a text field, with `HERE` in place of the text.
fn requests_with_placeholder(session_id: &str, handoff_id: &str) -> Vec<(String, Value)> {
    let mut requests_with_placeholder = Vec::new();
    let mut sod = |more: Value| requests_with_placeholder.push(("/sod".to_owned(), with(who("x"), more)));
    for name in ["agent", "venture", "repo", "schema_version", "client_session_id"] {
        sod(json!({ name: "o/rHERE" }));
    }
    for name in ["client", "client_version", "host", "branch", "commit_sha"] {
        sod(json!({ name: "HERE" }));
    }
    sod(json!({ "meta": { "a": [{ "b": "HERE" }] } }));
    sod(json!({ "meta": { "HERE": 1 } }));
    let session = json!({ "session_id": session_id });
    let mut update =
        |more: Value| requests_with_placeholder.push(("/update".to_owned(), with(session.clone(), more)));
    update(json!({ "branch": "HERE" }));
    update(json!({ "commit_sha": "HERE" }));
    update(json!({ "meta": { "a": "HERE" } }));
    update(json!({ "meta": { "aHERE": null } }));
    let good = json!({ "summary": "s" });
    for handoff in [
        json!({ "summary": "HERE" }),
        json!({ "status_label": "HERE" }),
        json!({ "to_agent": "HERE" }),
        json!({ "work_completed": ["HERE"] }),
        json!({ "blockers": ["b", "HERE"] }),
        json!({ "next_actions": ["HERE"] }),
        json!({ "own": { "deep": ["HERE"] } }),
        json!({ "HERE": 1 }),
    ] {
        let handoff = with(good.clone(), handoff);
        requests_with_placeholder.push(("/eod".into(), with(session.clone(), json!({ "handoff": handoff }))));
        requests_with_placeholder
            .push(("/handoffs".into(), with(session.clone(), json!({ "handoff": handoff }))));
    }
    for flat in [
        json!({ "summary": "HERE" }),
        json!({ "status_label": "HERE" }),
        json!({ "to_agent": "HERE" }),
        json!({ "payload": { "x": "HERE" } }),
        json!({ "end_reason": "manualHERE" }),
        json!({ "session_id": "HERE" }),
    ] {
        requests_with_placeholder.push(("/eod".into(), with(with(session.clone(), good.clone()), flat)));
    }
    requests_with_placeholder.push(("/heartbeat".into(), json!({ "session_id": "HERE" })));
    requests_with_placeholder.push((format!("/handoffs/{handoff_id}/ack"), json!({ "agent": "HERE" })));
    requests_with_placeholder
}

#[test]
fn control_characters_are_rejected_in_every_text_field() {
    for served in Served::each() {
        let (_, handoff_id) = served.relay(&who("a"), &json!({ "summary": "before" }));
        let session_id = served.start("b");
        let before = (served.found("/handoffs?venture=v"), served.found(&format!("/sessions/{session_id}")));
        for (path, body) in requests_with_placeholder(&session_id, &handoff_id) {
            for control in CONTROL {
                let escaped = format!("a\\u{:04x}b", u32::from(control));
                let body = body.to_string().replace("HERE", &escaped);
                let answer = served.send("POST", &path, &[("idempotency-key", "control")], body.as_bytes());
                assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text);
                let code = answer.json()["error"].clone();
                assert!(
                    code == "invalid_request" || code == "unsupported_schema_version",
                    "{path} {body}: {code}"
                );
            }
        }
        for path in ["/active?venture=", "/active?agent=", "/active?repo=o/r", "/active?venture=v&cursor="] {
            for control in CONTROL {
                let path = format!("{path}a{}", encode(&control.to_string()));
                refusal(&served.get(&path), 400, "invalid_request");
            }
        }
        let after = (served.found("/handoffs?venture=v"), served.found(&format!("/sessions/{session_id}")));
        assert_eq!(before, after, "nothing was stored");
    }
}

#[test]
fn rejected_text_does_not_prevent_logging_of_other_calls() {
    for served in Served::each() {
        let own = |number: usize| format!("own-{number}");
        let nul = "\0".repeat(3);
        let bodies = [
            who("a"),
            with(who("a"), json!({ "agent": nul, "venture": nul, "repo": nul })),
            json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ", "summary": "s", "end_reason": nul }),
            with(who("a"), json!({ "schema_version": nul })),
            who("b"),
        ];
        for (number, body) in bodies.iter().enumerate() {
            let path = if number == 2 { "/eod" } else { "/sod" };
            let headers = [("x-correlation-id", own(number))];
            let headers = [(headers[0].0, headers[0].1.as_str())];
            served.send("POST", path, &headers, body.to_string().as_bytes());
        }
        // The server writes the log after the response.
        let store = served.store();
        for number in 0..bodies.len() {
            wait_until(&format!("call {number} is in the log"), || {
                let found = store.read::<_, StoreError, _>(|tx| tx.requests(100)).wait().unwrap();
                found.iter().any(|call| call.correlation_id.as_str() == own(number))
            });
        }
    }
}

#[test]
fn nul_in_any_text_is_rejected_with_the_field() {
    for served in Served::each() {
        let task = json!({ "task_id": "TASK-1", "checkout": "/c", "host": "h\0", "title": "t" });
        let answers =
            [served.post("/api/tasks", &task), served.get("/api/observations?venture=v&tool=%00&limit=3")];
        for (answer, field) in answers.iter().zip(["host", "tool"]) {
            refusal(answer, 400, "invalid_request");
            assert_eq!(answer.json()["details"]["fields"][0]["field"], field, "{}", answer.text);
        }
        let kept = json!({ "sessionId": "w", "context": { "raw": "a\0b" } });
        assert_eq!(served.post("/api/checkpoints", &kept).status, 200, "a context may hold any text");
        assert_eq!(served.found("/api/checkpoints/load?sessionId=w")["context"], kept["context"]);
    }
}
