//! Idempotency keys over HTTP: one effect and one response per key, endpoint and credential.

use std::sync::Barrier;

use baton_testkit::binary::Answer;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, refusal, who, with};

/// Returns every endpoint that writes, with a valid body and a different one.
fn writes(served: &Served) -> Vec<(String, Value, Value)> {
    let (alive, first, second) = (served.start("alive"), served.start("first"), served.start("second"));
    let (_, left) = served.relay(&who("relay"), &json!({ "summary": "left" }));
    let end = |session_id: &str, summary: &str| json!({ "session_id": session_id, "handoff": { "summary": summary } });
    let update = |branch: &str| json!({ "session_id": alive, "branch": branch });
    vec![
        ("/sod".into(), who("new-1"), who("new-2")),
        ("/sos".into(), who("new-3"), who("new-4")),
        ("/heartbeat".into(), json!({ "session_id": alive }), json!({ "session_id": first })),
        ("/update".into(), update("one"), update("two")),
        ("/handoffs".into(), end(&alive, "one"), end(&alive, "two")),
        (format!("/handoffs/{left}/ack"), json!({ "agent": "a" }), json!({ "agent": "b" })),
        ("/eod".into(), end(&first, "one"), end(&first, "two")),
        ("/eos".into(), end(&second, "one"), end(&second, "two")),
    ]
}

#[track_caller]
fn assert_replay(first: &Answer, again: &Answer) {
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!((first.header("x-idempotency-hit"), again.header("x-idempotency-hit")), (None, Some("true")));
    assert_eq!(again.header("x-idempotency-truncated"), None);
    assert_eq!(again.header("content-type"), first.header("content-type"));
    assert_ne!(
        again.header("x-correlation-id"),
        first.header("x-correlation-id"),
        "each call has its own correlation id"
    );
}

#[test]
fn every_write_is_replayed_byte_for_byte_and_rejects_another_body() {
    for served in Served::each() {
        for (path, body, other) in writes(&served) {
            let key = format!("key-of-{}", path.replace('/', "."));
            let first = served.keyed(&path, &key, &body);
            expect(&first, 200);
            assert_replay(&first, &served.keyed(&path, &key, &body));
            refusal(&served.keyed(&path, &key, &other), 422, "idempotency_mismatch");
            assert_replay(&first, &served.keyed(&path, &key, &body));
            // The same JSON with other whitespace is the same request.
            let spelt = body.to_string().replace('{', " {\n ").replace(':', " : ");
            let again = served.send("POST", &path, &[("idempotency-key", &key)], spelt.as_bytes());
            assert_replay(&first, &again);
        }
    }
}

#[test]
fn a_replay_has_no_effect() {
    for served in Served::each() {
        let session_id = served.start("a");
        let body = json!({ "session_id": session_id, "handoff": { "summary": "once" } });
        let first = served.keyed("/handoffs", "once", &body);
        let beat = served.found(&format!("/sessions/{session_id}"));
        for _ in 0..5 {
            assert_replay(&first, &served.keyed("/handoffs", "once", &body));
        }
        assert_eq!(served.found("/handoffs?venture=v")["handoffs"].as_array().unwrap().len(), 1);
        assert_eq!(
            served.found(&format!("/sessions/{session_id}")),
            beat,
            "a replay must not count as a heartbeat"
        );
        let another = served.keyed("/handoffs", "twice", &body);
        assert_ne!(another.json()["handoff_id"], first.json()["handoff_id"]);
    }
}

#[test]
fn keys_are_scoped_by_endpoint_and_credential() {
    for served in Served::each() {
        let session_id = served.start("a");
        let beat = json!({ "session_id": session_id });
        let update = with(beat.clone(), json!({ "branch": "b" }));
        let end = with(beat.clone(), json!({ "summary": "s" }));
        for (path, body) in [("/sod", &who("b")), ("/heartbeat", &beat), ("/update", &update), ("/eod", &end)]
        {
            let answer = served.keyed(path, "shared", body);
            assert_eq!((answer.status, answer.header("x-idempotency-hit")), (200, None), "{path}");
        }
        let token = served.home.run(&["token", "create", "--name", "t", "--format", "json"]).json();
        let token = id(&token["data"]["token"]);
        let headers = [("idempotency-key", "shared"), ("x-relay-key", token.as_str())];
        let by_token = served.send("POST", "/sod", &headers, who("c").to_string().as_bytes());
        assert_eq!(expect(&by_token, 200)["session"]["agent"], "c");
        let bearer = format!("Bearer {token}");
        let headers =
            [("idempotency-key", "shared"), ("x-relay-key", ""), ("authorization", bearer.as_str())];
        let empty = served.send("POST", "/sod", &headers, who("c").to_string().as_bytes());
        refusal(&empty, 401, "unauthorized");
        assert_replay(
            &by_token,
            &served.send("POST", "/sod", &headers_of(&token), who("c").to_string().as_bytes()),
        );
        let by_key = served.keyed("/sod", "shared", &who("b"));
        assert_eq!(by_key.json()["session"]["agent"], "b", "the relay key has its own scope");
    }
}

fn headers_of(token: &str) -> [(&'static str, &str); 2] {
    [("idempotency-key", "shared"), ("x-relay-key", token)]
}

#[test]
fn an_oversized_response_is_replayed_in_compact_form() {
    for served in Served::each() {
        let small = with(who("a"), json!({ "meta": { "text": "x".repeat(28 * 1024) } }));
        let first = served.keyed("/sod", "small", &small);
        assert_replay(&first, &served.keyed("/sod", "small", &small));

        let large = with(who("b"), json!({ "meta": { "text": "x".repeat(100 * 1024) } }));
        let first = served.keyed("/sod", "large", &large);
        assert_eq!((first.status, first.header("x-idempotency-truncated")), (200, None));
        assert!(first.text.len() > 100 * 1024);
        let again = served.keyed("/sod", "large", &large);
        assert_eq!((again.status, again.header("x-idempotency-hit")), (200, Some("true")));
        assert_eq!(again.header("x-idempotency-truncated"), Some("true"));
        let expected = json!({ "session_id": first.json()["session_id"], "status": "created" });
        assert_eq!(again.json(), expected);
        refusal(&served.keyed("/sod", "large", &who("b")), 422, "idempotency_mismatch");
    }
}

#[test]
fn errors_after_validation_are_replayed_and_validation_errors_are_not() {
    for served in Served::each() {
        let session_id = served.start("a");
        served.ok("/eod", &json!({ "session_id": session_id, "summary": "done" }));
        let beat = json!({ "session_id": session_id });
        let conflict = json!({ "session_id": session_id, "summary": "other" });
        let unknown = json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" });
        for (path, key, body, status) in [
            ("/heartbeat", "ended", &beat, 409),
            ("/eod", "conflict", &conflict, 409),
            ("/heartbeat", "unknown", &unknown, 404),
        ] {
            let first = served.keyed(path, key, body);
            assert_eq!(first.status, status, "{}", first.text);
            assert_replay(&first, &served.keyed(path, key, body));
        }
        // A request that fails validation does not use up its key.
        let good = who("b").to_string();
        let key = ("idempotency-key", "free");
        let post = |headers: &[(&str, &str)], body: &[u8]| served.send("POST", "/sod", headers, body);
        refusal(&post(&[key, ("x-relay-key", "wrong")], good.as_bytes()), 401, "unauthorized");
        refusal(&post(&[key], b"{"), 400, "invalid_json");
        refusal(&post(&[key], b"{\"agent\":\"a b\",\"repo\":\"o/r\"}"), 400, "invalid_request");
        refusal(
            &post(&[key], b"{\"agent\":\"a\",\"repo\":\"o/r\",\"schema_version\":\"7\"}"),
            400,
            "unsupported_schema_version",
        );
        refusal(&post(&[key], &vec![b' '; 1024 * 1024 + 1]), 413, "payload_too_large");
        let secret = json!({ "agent": "a", "repo": "o/r", "branch": format!("AKIA{}", "A1B2C3D4E5F6G7H8") });
        refusal(&post(&[key], secret.to_string().as_bytes()), 422, "secret_found");
        let taken = post(&[key], good.as_bytes());
        assert_eq!((taken.status, taken.header("x-idempotency-hit")), (200, None), "{}", taken.text);
    }
}

#[test]
fn concurrent_requests_with_one_key_have_one_effect() {
    const CALLERS: usize = 32;
    for served in Served::each() {
        let session_id = served.start("a");
        let body = json!({ "session_id": session_id, "handoff": { "summary": "once" } });
        let barrier = Barrier::new(CALLERS);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        served.keyed("/handoffs", "at-once", &body)
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        for answer in &answers {
            assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
        }
        let fresh = answers.iter().filter(|answer| answer.header("x-idempotency-hit").is_none()).count();
        assert_eq!(fresh, 1, "one call must execute, the others must replay");
        assert_eq!(served.found("/handoffs?venture=v")["handoffs"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn keys_are_one_to_255_visible_characters() {
    for served in Served::each() {
        let visible: String = ('!'..='~').collect();
        for (number, key) in ["k", &visible, &"x".repeat(255)].into_iter().enumerate() {
            let body = who(&format!("agent-{number}"));
            let first = served.keyed("/sod", key, &body);
            expect(&first, 200);
            assert_replay(&first, &served.keyed("/sod", key, &body));
        }
        for key in ["", " ", "a b", "a\tb", &"x".repeat(256)] {
            let refused = refusal(&served.keyed("/sod", key, &who("a")), 400, "invalid_request");
            assert_eq!(refused["details"]["fields"][0]["field"], "Idempotency-Key", "{key:?}");
        }
        let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
        refusal(&served.send("POST", "/sod", &twice, b"{}"), 400, "invalid_request");
        let wrong = served.send("GET", "/active?venture=none", &[("idempotency-key", "a b")], b"");
        refusal(&wrong, 400, "invalid_request");
        assert_eq!(served.found("/active?agent=a")["sessions"], json!([]));
    }
}
