//! Ending a session over HTTP: both request forms, repeated, conflicting, oversized and invalid requests.

use baton_core::{MAX_PAYLOAD_BYTES, Sha256Hash, canonicalize};
use serde_json::{Value, json};

use crate::served::{Served, id, time, who, with};

fn whole(session_id: &str, handoff: Value) -> Value {
    json!({ "session_id": session_id, "handoff": handoff })
}

#[test]
fn nested_and_flat_requests_are_equivalent() {
    for served in Served::each() {
        let payload =
            json!({ "work_completed": ["a"], "blockers": [], "next_actions": ["b"], "more": { "n": 1.5 } });
        let head = json!({ "summary": "done", "status_label": "ready", "to_agent": "qa-1" });
        let (nested, flat) = (served.start("a"), served.start("b"));
        let first = served.ok(
            "/eod",
            &with(whole(&nested, with(head.clone(), payload.clone())), json!({ "schema_version": "1.0" })),
        );
        let body = with(head, json!({ "session_id": flat, "payload": payload, "end_reason": "manual" }));
        let second = served.ok("/eos", &body);
        for (answer, session_id) in [(&first, &nested), (&second, &flat)] {
            assert_eq!(
                *answer,
                json!({
                    "session_id": session_id, "handoff_id": answer["handoff_id"], "ended_at": answer["ended_at"],
                    "late": false,
                })
            );
            let shown = served.found(&format!("/sessions/{session_id}"));
            assert_eq!(shown["session"]["status"], "ended");
            assert_eq!(shown["session"]["end_reason"], "manual");
            assert_eq!(shown["session"]["ended_at"], answer["ended_at"]);
            assert_eq!(shown["handoff"]["id"], answer["handoff_id"]);
            let handoff =
                served.found(&format!("/handoffs/{}", id(&answer["handoff_id"])))["handoff"].clone();
            assert_eq!(handoff["payload"], payload);
            let canonical = canonicalize(&payload).unwrap();
            assert_eq!(handoff["payload_size_bytes"], canonical.len());
            assert_eq!(handoff["payload_hash"], Sha256Hash::of(canonical.as_bytes()).to_string());
            assert_eq!((&handoff["summary"], &handoff["to_agent"]), (&"done".into(), &"qa-1".into()));
            assert_eq!((&handoff["status_label"], &handoff["ends_session"]), (&"ready".into(), &true.into()));
        }
    }
}

#[test]
fn handoff_with_keep_session_open_leaves_the_session_active() {
    for served in Served::each() {
        let session_id = served.start("a");
        let handoff =
            json!({ "summary": "half done", "status_label": "in-progress", "end_reason": "manual" });
        let flat = with(handoff, json!({ "session_id": session_id, "keep_session_open": true }));
        let left = served.ok("/eos", &flat);
        let expected = json!({
            "session_id": session_id, "handoff_id": left["handoff_id"], "ended_at": null, "late": false,
        });
        assert_eq!(left, expected);
        assert_eq!(served.ok("/eos", &flat), left, "repeating the request must return the same handoff");
        let shown = served.found(&format!("/sessions/{session_id}"));
        assert_eq!((&shown["session"]["status"], &shown["handoff"]), (&"active".into(), &Value::Null));
        let active = served.found("/active?venture=v")["sessions"].clone();
        assert_eq!(active[0]["id"], session_id.as_str());
        let stored = served.found("/handoffs/latest?venture=v")["handoff"].clone();
        assert_eq!((&stored["id"], &stored["ends_session"]), (&left["handoff_id"], &false.into()));
        served.ok("/heartbeat", &json!({ "session_id": session_id }));
        // Another handoff during the session, then the end.
        let second = whole(&session_id, json!({ "summary": "nearly done" }));
        let second = served.ok("/eod", &with(second, json!({ "keep_session_open": true })));
        assert_ne!(second["handoff_id"], left["handoff_id"]);
        let end = whole(&session_id, json!({ "summary": "done" }));
        let ended = served.ok("/eod", &with(end.clone(), json!({ "keep_session_open": false })));
        assert!(ended["ended_at"].is_string(), "{ended}");
        let late = whole(&session_id, json!({ "summary": "too late" }));
        served.refused("/eod", &with(late, json!({ "keep_session_open": true })), 409, "handoff_conflict");
        assert_eq!(served.ok("/eod", &with(end, json!({ "keep_session_open": true }))), ended);
        let count = served.found("/handoffs?venture=v")["handoffs"].as_array().unwrap().len();
        assert_eq!(count, 3);
    }
}

#[test]
fn ending_twice_returns_the_same_response_and_another_handoff_is_a_conflict() {
    for served in Served::each() {
        let session_id = served.start("a");
        let handoff = json!({ "summary": "done", "status_label": "ready", "next_actions": ["b"], "n": 1 });
        let first = served.ok("/eod", &whole(&session_id, handoff.clone()));
        // The same handoff in another form: other key order, flat request, another number format.
        let again = served.ok("/eod", &whole(&session_id, handoff.clone()));
        let flat = format!(
            "{{\"payload\":{{\"n\":1.0,\"next_actions\":[\"b\"]}},\"status_label\":\"ready\",\
             \"session_id\":\"{session_id}\",\"summary\":\"done\"}}"
        );
        let spelt = served.send("POST", "/eod", &[], flat.as_bytes());
        assert_eq!((&again, &spelt.json()), (&first, &first), "{}", spelt.text);
        for other in [
            json!({ "summary": "done" }),
            with(handoff.clone(), json!({ "summary": "Done" })),
            with(handoff.clone(), json!({ "status_label": "blocked" })),
            with(handoff.clone(), json!({ "to_agent": "qa" })),
            with(handoff.clone(), json!({ "n": 2 })),
        ] {
            let refused = served.refused("/eod", &whole(&session_id, other), 409, "handoff_conflict");
            assert_eq!(refused["details"]["handoff_id"], first["handoff_id"]);
            assert_eq!(refused["details"]["status"], "ended");
        }
        let stored = served.found("/handoffs?venture=v");
        assert_eq!(stored["handoffs"].as_array().unwrap().len(), 1, "only the first handoff may be stored");
        assert_eq!(stored["handoffs"][0]["payload"], json!({ "n": 1, "next_actions": ["b"] }));
        let missing = whole("sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ", handoff);
        served.refused("/eod", &missing, 404, "session_not_found");
    }
}

#[test]
fn ended_at_is_not_before_the_last_heartbeat() {
    let served = Served::sqlite();
    let session_id = served.start("a");
    let beat = served.ok("/heartbeat", &json!({ "session_id": session_id }));
    let ended = served.ok("/eod", &whole(&session_id, json!({ "summary": "done" })));
    assert!(time(&ended["ended_at"]) >= time(&beat["last_heartbeat_at"]));
}

#[test]
fn invalid_fields_are_all_listed() {
    let served = Served::sqlite();
    let session_id = served.start("a");
    let bad = json!({ "summary": "", "status_label": 7, "to_agent": "a b", "blockers": "none", "work_completed": [1] });
    let refused = served.refused("/eod", &whole(&session_id, bad), 400, "invalid_request");
    let mut fields: Vec<&str> = refused["details"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    let expected = [
        "handoff.blockers",
        "handoff.status_label",
        "handoff.summary",
        "handoff.to_agent",
        "handoff.work_completed[0]",
    ];
    assert_eq!(fields, expected);
    assert_eq!(refused["details"]["schema_version"], "1.0");
    for body in [
        json!({ "session_id": session_id, "keep_session_open": true }),
        json!({ "session_id": session_id, "handoff": {} }),
        json!({ "session_id": session_id, "handoff": [] }),
        json!({ "session_id": session_id, "handoff": "done" }),
        json!({ "session_id": session_id, "payload": {} }),
        json!({ "session_id": session_id, "summary": 3 }),
        json!({ "session_id": session_id, "summary": "x".repeat(20_001) }),
        json!({ "session_id": session_id, "summary": "x", "end_reason": "tired" }),
        json!({ "session_id": session_id, "summary": "x", "payload": { "summary": "y" } }),
        json!({ "session_id": session_id, "summary": "x", "handoff": { "summary": "y" } }),
        json!({ "session_id": null, "summary": "x" }),
        json!({ "session_id": 3, "summary": "x" }),
        json!({ "summary": "x" }),
    ] {
        served.refused("/eod", &body, 400, "invalid_request");
    }
    let body = json!({ "session_id": session_id, "summary": "x", "schema_version": "2.0" });
    let refused = served.refused("/eod", &body, 400, "unsupported_schema_version");
    assert_eq!(refused["details"]["supported"], json!(["1.0"]));
    assert_eq!(served.found("/handoffs?venture=v")["handoffs"], json!([]), "nothing was stored");
    assert_eq!(served.found(&format!("/sessions/{session_id}"))["session"]["status"], "active");
}

#[test]
fn a_payload_of_800_kib_is_accepted_and_one_byte_more_is_rejected() {
    for served in Served::each() {
        let session_id = served.start("a");
        let of_size = |bytes: usize| {
            // `{"x":"…"}` adds eight bytes to the text.
            let text = "y".repeat(bytes - 8);
            whole(&session_id, json!({ "summary": "large", "x": text }))
        };
        for size in [MAX_PAYLOAD_BYTES + 1, 801 * 1024] {
            let refused = served.refused("/eod", &of_size(size), 413, "payload_too_large");
            let sizes = json!({ "actual_bytes": size, "allowed_bytes": MAX_PAYLOAD_BYTES });
            assert_eq!(refused["details"], sizes);
        }
        assert_eq!(served.found(&format!("/sessions/{session_id}"))["session"]["status"], "active");
        let body = of_size(MAX_PAYLOAD_BYTES);
        let ended = served.ok("/eod", &body);
        let handoff = served.found(&format!("/handoffs/{}", id(&ended["handoff_id"])))["handoff"].clone();
        assert_eq!(handoff["payload_size_bytes"], MAX_PAYLOAD_BYTES);
        assert_eq!(handoff["payload"]["x"], body["handoff"]["x"]);
        let more = vec![b' '; 1024 * 1024 + 1];
        let answer = served.send("POST", "/eod", &[], &more);
        assert_eq!((answer.status, &answer.json()["details"]["allowed_bytes"]), (413, &1_048_576.into()));
    }
}

#[test]
fn numbers_that_would_lose_precision_are_rejected_with_their_path() {
    for served in Served::each() {
        let session_id = served.start("a");
        let end = |number: &str, key: Option<&str>| {
            let body = format!(
                "{{\"session_id\":\"{session_id}\",\"handoff\":{{\"summary\":\"s\",\"run\":{{\"id\":[{number}]}}}}}}"
            );
            let headers: Vec<(&str, &str)> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
            served.send("POST", "/eod", &headers, body.as_bytes())
        };
        for number in ["9007199254740993", "-9007199254740993", "18446744073709551615"] {
            for key in [None, Some(number)] {
                let answer = end(number, key);
                assert_eq!(answer.status, 400, "{number}: {}", answer.text);
                let field = &answer.json()["details"]["fields"][0]["field"];
                assert_eq!(field, "handoff.run.id[0]", "{key:?} {}", answer.text);
                assert!(answer.text.contains(number), "{}", answer.text);
            }
        }
        // A number beyond 64 bits is rejected by the JSON parser.
        let huge = end("123456789012345678901234567890", None);
        assert_eq!(huge.status, 400);
        assert_eq!(huge.json()["details"]["path"], "handoff.run.id[0]", "{}", huge.text);
        let exact = end("9007199254740992", None);
        assert_eq!(exact.status, 200, "{}", exact.text);
        let stored = served.found("/handoffs/latest?venture=v");
        assert_eq!(stored["handoff"]["payload"]["run"]["id"], json!([9_007_199_254_740_992_u64]));
    }
}

#[test]
fn a_session_without_a_handoff_ends_without_creating_one() {
    for served in Served::each() {
        let (_, previous) = served.relay(&who("a"), &json!({ "summary": "still the latest" }));
        for body in [json!({}), json!({ "handoff": null })] {
            let session_id = served.start("b");
            let body = with(body, json!({ "session_id": session_id, "end_reason": "error" }));
            let ended = served.ok("/eod", &body);
            time(&ended["ended_at"]);
            let expected = json!({
                "session_id": session_id, "handoff_id": null, "ended_at": ended["ended_at"], "late": false,
            });
            assert_eq!(
                (&ended, &served.ok("/eod", &body)),
                (&expected, &expected),
                "a repeated end is the same"
            );
            let shown = served.found(&format!("/sessions/{session_id}"));
            assert_eq!((&shown["session"]["status"], &shown["handoff"]), (&"ended".into(), &json!(null)));
            assert_eq!(shown["session"]["end_reason"], "error");
        }
        assert_eq!(served.ok("/sod", &who("c"))["last_handoff"]["id"], previous.as_str());
    }
}
