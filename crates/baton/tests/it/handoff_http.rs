//! Handoffs over HTTP: latest, list, show, create during a session, acknowledge.

use baton_core::ActorKeyId;
use baton_testkit::binary::{Home, RELAY_KEY};
use serde_json::{Value, json};

use crate::served::{Served, id, refusal, time, who, with};

const UNKNOWN: &str = "ho_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

fn ids(page: &Value) -> Vec<String> {
    page["handoffs"].as_array().unwrap().iter().map(|handoff| id(&handoff["id"])).collect()
}

#[test]
fn a_handoff_contains_all_fields_and_absent_ones_are_null() {
    for served in Served::each() {
        assert_eq!(served.found("/handoffs/latest?venture=v"), json!({ "handoff": null }));
        let nothing = json!({ "handoffs": [], "pagination": { "next_cursor": null } });
        assert_eq!(served.found("/handoffs?venture=v"), nothing);
        let (session_id, handoff_id) = served.relay(&who("a"), &json!({ "summary": "bare" }));
        let shown = served.found(&format!("/handoffs/{handoff_id}"));
        let handoff = &shown["handoff"];
        time(&handoff["created_at"]);
        let expected = json!({
            "id": handoff_id, "session_id": session_id, "venture": "v", "repo": "o/r", "track": null,
            "issue_number": null, "branch": null, "commit_sha": null, "from_agent": "a", "to_agent": null,
            "status_label": null, "summary": "bare", "payload": {},
            "payload_hash": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "payload_size_bytes": 2, "schema_version": "1.0", "ends_session": true, "late": false,
            "written_by": "agent", "workflow_id": null, "checkpoint_id": null, "automatic": null,
            "incomplete": false, "withdrawn_at": null,
            "acknowledged_at": null, "acknowledged_by": null, "acknowledged_session_id": null,
            "created_at": handoff["created_at"],
            "actor_key_id": ActorKeyId::of(RELAY_KEY).as_str(),
            "creation_correlation_id": handoff["creation_correlation_id"],
        });
        assert_eq!(*handoff, expected);
        assert_eq!(served.found("/handoffs/latest?venture=v"), shown);
        assert_eq!(served.found("/handoffs?venture=v")["handoffs"], json!([expected]));
        let facts = json!({ "track": 3, "issue_number": 7, "branch": "topic", "commit_sha": "abc" });
        let (_, second) = served.relay(&with(who("a"), facts.clone()), &json!({ "summary": "with facts" }));
        let second = served.found(&format!("/handoffs/{second}"))["handoff"].clone();
        for (name, value) in facts.as_object().unwrap() {
            assert_eq!(second[name], *value, "{name}");
        }
    }
}

#[test]
fn filters_apply_to_the_list_and_to_latest() {
    for served in Served::each() {
        let leave = |start: Value, to: Option<&str>| {
            served.relay(&start, &json!({ "summary": "s", "to_agent": to })).1
        };
        let plain = leave(who("a"), None);
        let zero = leave(with(who("a"), json!({ "track": 0 })), Some("qa"));
        let issue = leave(with(who("b"), json!({ "issue_number": 9, "track": 1 })), None);
        let repo = leave(with(who("a"), json!({ "repo": "o/r.2", "issue_number": 9 })), Some("qa"));
        let venture = leave(with(who("a"), json!({ "venture": "w" })), Some("qa"));
        let cases: [(&str, &[&String]); 11] = [
            ("venture=v", &[&repo, &issue, &zero, &plain]),
            ("venture=w", &[&venture]),
            ("venture=none", &[]),
            ("venture=v&repo=o/r", &[&issue, &zero, &plain]),
            ("venture=v&track=0", &[&zero]),
            ("venture=v&repo=o/r&track=1", &[&issue]),
            ("venture=v&issue_number=9", &[&repo, &issue]),
            ("venture=v&repo=o/r.2&issue_number=9", &[&repo]),
            ("venture=v&from_agent=b", &[&issue]),
            ("venture=v&to_agent=qa", &[&repo, &zero]),
            ("venture=v&to_agent=qa&from_agent=a&track=0", &[&zero]),
        ];
        for (query, expected) in cases {
            let page = served.found(&format!("/handoffs?{query}"));
            assert_eq!(ids(&page).iter().collect::<Vec<_>>(), expected, "{query}, newest first");
            let latest = served.found(&format!("/handoffs/latest?{query}"));
            let first = page["handoffs"].get(0).cloned().unwrap_or(Value::Null);
            assert_eq!(latest, json!({ "handoff": first }), "{query}");
        }
        for path in ["/handoffs", "/handoffs/latest", "/handoffs?repo=o/r", "/handoffs/latest?to_agent=qa"] {
            let refused = refusal(&served.get(path), 400, "invalid_request");
            assert!(refused["message"].as_str().unwrap().contains("venture"), "{path}");
        }
        for bad in ["venture=", "venture=v&repo=o", "venture=v&track=-1", "venture=v&to_agent=a%20b"] {
            refusal(&served.get(&format!("/handoffs?{bad}")), 400, "invalid_request");
            refusal(&served.get(&format!("/handoffs/latest?{bad}")), 400, "invalid_request");
        }
    }
}

#[test]
fn pages_neither_skip_nor_repeat_handoffs() {
    for served in Served::each() {
        let session_id = served.start("a");
        let leave = |number: usize| {
            let body = json!({ "session_id": session_id, "handoff": { "summary": format!("{number}") } });
            id(&served.ok("/handoffs", &body)["handoff_id"])
        };
        let left: Vec<String> = (0..120).map(leave).collect();
        assert_eq!(ids(&served.found("/handoffs?venture=v")).len(), 50, "the default limit is 50");
        let mut seen = Vec::new();
        let mut query = "/handoffs?venture=v&limit=40".to_owned();
        for page_number in 0.. {
            let page = served.found(&query);
            leave(1_000 + page_number);
            seen.extend(ids(&page));
            match page["pagination"]["next_cursor"].as_str() {
                Some(cursor) => query = format!("/handoffs?venture=v&limit=40&cursor={cursor}"),
                None => break,
            }
        }
        let newest_first: Vec<String> = left.into_iter().rev().collect();
        assert_eq!(seen, newest_first, "handoffs created meanwhile must not appear on later pages");
        for limit in ["0", "201", "-3", "x"] {
            refusal(&served.get(&format!("/handoffs?venture=v&limit={limit}")), 400, "invalid_request");
        }
    }
}

#[test]
fn creating_a_handoff_keeps_the_session_active() {
    for served in Served::each() {
        let started = served.ok("/sod", &who("a"));
        let session_id = id(&started["session_id"]);
        let handoff =
            json!({ "summary": "please review", "to_agent": "qa-1", "blockers": ["nobody looked"] });
        let body = json!({ "session_id": session_id, "handoff": handoff });
        let first = served.ok("/handoffs", &body);
        let expected = json!({
            "session_id": session_id, "handoff_id": first["handoff_id"], "created_at": first["created_at"],
        });
        assert_eq!(first, expected);
        let second = served.ok("/handoffs", &body);
        assert_ne!(
            first["handoff_id"], second["handoff_id"],
            "without an idempotency key each call creates a handoff"
        );
        let shown = served.found(&format!("/sessions/{session_id}"));
        assert_eq!((&shown["session"]["status"], &shown["handoff"]), (&"active".into(), &Value::Null));
        assert_eq!(
            shown["session"]["last_heartbeat_at"], second["created_at"],
            "creating a handoff counts as a heartbeat"
        );
        let stored = served.found(&format!("/handoffs/{}", id(&first["handoff_id"])))["handoff"].clone();
        assert_eq!((&stored["ends_session"], &stored["late"]), (&false.into(), &false.into()));
        let other = served.ok("/sod", &who("b"));
        assert_eq!(other["last_handoff"]["id"], second["handoff_id"]);
        assert_eq!(other["open_blockers"], handoff["blockers"]);
        served.ok("/eod", &json!({ "session_id": session_id, "summary": "done" }));
        let refused = json!({ "session_id": session_id, "handoff": { "status_label": "x" } });
        served.refused("/handoffs", &refused, 400, "invalid_request");
        served.refused("/handoffs", &json!({ "session_id": session_id }), 400, "invalid_request");
    }
}

#[test]
fn a_handoff_is_acknowledged_by_one_agent() {
    for served in Served::each() {
        let (_, handoff_id) = served.relay(&who("a"), &json!({ "summary": "yours" }));
        let path = format!("/handoffs/{handoff_id}/ack");
        let first = served.ok(&path, &json!({ "agent": "qa-1", "schema_version": "1.0" }));
        let expected = json!({
            "handoff_id": handoff_id, "acknowledged_by": "qa-1", "acknowledged_at": first["acknowledged_at"],
        });
        assert_eq!(first, expected);
        assert_eq!(
            served.ok(&path, &json!({ "agent": "qa-1" })),
            first,
            "the same agent gets the same answer"
        );
        let refused = served.refused(&path, &json!({ "agent": "qa-2" }), 409, "handoff_conflict");
        assert_eq!(refused["details"], expected);
        let shown = served.found(&format!("/handoffs/{handoff_id}"))["handoff"].clone();
        assert_eq!(shown["acknowledged_by"], "qa-1");
        assert_eq!(shown["acknowledged_at"], first["acknowledged_at"]);
        for body in [json!({}), json!({ "agent": "a b" }), json!({ "agent": null }), json!([])] {
            served.refused(&path, &body, 400, "invalid_request");
        }
        let twice = json!({ "agent": "qa-1", "handoff_id": handoff_id });
        served.refused(&path, &twice, 400, "invalid_request");
        let unknown = format!("/handoffs/{UNKNOWN}/ack");
        served.refused(&unknown, &json!({ "agent": "qa-1" }), 404, "handoff_not_found");
        refusal(&served.get(&format!("/handoffs/{UNKNOWN}")), 404, "handoff_not_found");
        for bad in ["x", "ho_", "%00", "%ff"] {
            refusal(&served.get(&format!("/handoffs/{bad}")), 400, "invalid_request");
            served.refused(
                &format!("/handoffs/{bad}/ack"),
                &json!({ "agent": "qa-1" }),
                400,
                "invalid_request",
            );
        }
    }
}

#[test]
fn pages_of_large_handoffs_are_limited_by_size() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve();
    let note = "x".repeat(700 * 1024);
    for number in 0..8 {
        let body = json!({ "agent": format!("a-{number}"), "venture": "v", "repo": "o/r" });
        let id = server.post("/sod", &body).json()["session_id"].clone();
        let handoff = json!({ "summary": number.to_string(), "note": note });
        assert_eq!(server.post("/eod", &json!({ "session_id": id, "handoff": handoff })).status, 200);
    }
    let (mut seen, mut path, mut pages) = (Vec::new(), "/handoffs?venture=v".to_owned(), 0);
    loop {
        let page = server.get(&path);
        assert!(page.text.len() < 5 * 1024 * 1024, "{} bytes", page.text.len());
        let page = page.json();
        seen.extend(page["handoffs"].as_array().unwrap().iter().map(|handoff| handoff["summary"].clone()));
        pages += 1;
        let Some(cursor) = page["pagination"]["next_cursor"].as_str() else { break };
        path = format!("/handoffs?venture=v&cursor={cursor}");
    }
    assert!(pages > 1, "all handoffs were in one page");
    assert_eq!(seen, ["7", "6", "5", "4", "3", "2", "1", "0"]);
}

#[test]
fn named_fields_are_returned_at_session_start_and_wrong_types_are_rejected() {
    for served in Served::each() {
        let handoff = json!({
            "summary": "half done", "goal": "Users stay signed in", "state": "Login works; test_logout fails",
            "decisions": ["Cookies: the proxy drops headers", { "decision": "WAL", "reason": "readers" }],
            "rejected": ["Local storage: readable by scripts"], "gotchas": ["The clock is in UTC"],
            "constraints": ["No new dependency"], "blockers": ["Staging is down"], "next_actions": ["Fix logout"],
            "references": { "task": "TASK-1", "branch": "topic", "uncommitted_files": ["src/a.rs"] },
        });
        served.relay(&who("a"), &handoff);
        let last = served.ok("/sod", &who("b"))["last_handoff"].clone();
        for name in ["goal", "state", "rejected", "gotchas", "constraints", "blockers", "next_actions"] {
            assert_eq!(last[name], handoff[name], "{name}");
        }
        assert_eq!(last["decisions"], json!(["Cookies: the proxy drops headers", "WAL (reason: readers)"]));
        let references = json!({
            "workflow": null, "checkpoint": null, "task": "TASK-1", "branch": "topic", "commit": null,
            "uncommitted_files": ["src/a.rs"],
        });
        assert_eq!(last["references"], references);

        let session_id = served.start("c");
        for wrong in [json!({ "goal": ["x"] }), json!({ "rejected": "x" }), json!({ "references": ["x"] })] {
            let body = json!({ "session_id": session_id, "handoff": with(json!({ "summary": "s" }), wrong) });
            served.refused("/handoffs", &body, 400, "invalid_request");
        }
    }
}

#[test]
fn a_withdrawn_handoff_is_not_listed_and_can_be_replaced() {
    for served in Served::each() {
        let (_, first) = served.relay(&who("a"), &json!({ "summary": "right" }));
        let (session_id, wrong) = served.relay(&who("a"), &json!({ "summary": "wrong" }));
        let path = format!("/handoffs/{wrong}/withdraw");
        let withdrawn = served.ok(&path, &json!({}));
        assert_eq!(served.ok(&path, &json!({})), withdrawn, "a repeated withdrawal returns the same");
        assert_eq!(ids(&served.found("/handoffs?venture=v")), std::slice::from_ref(&first));
        assert_eq!(served.ok("/sod", &who("b"))["last_handoff"]["id"], first.as_str());
        let shown = served.found(&format!("/handoffs/{wrong}"));
        assert_eq!(shown["handoff"]["withdrawn_at"], withdrawn["withdrawn_at"]);
        let corrected = json!({ "session_id": session_id, "handoff": { "summary": "corrected" } });
        let replaced = served.ok("/eod", &corrected);
        assert_eq!((&replaced["late"], served.ok("/eod", &corrected)), (&true.into(), replaced.clone()));
        assert_eq!(served.found("/handoffs/latest?venture=v")["handoff"]["summary"], "corrected");
        served.refused(
            "/handoffs/ho_01HQXV3NK8ZZZZZZZZZZZZZZZZ/withdraw",
            &json!({}),
            404,
            "handoff_not_found",
        );
    }
}

#[test]
fn a_handoff_of_a_person_does_not_hide_the_one_of_an_agent() {
    for served in Served::each() {
        let start = || served.ok("/sod", &with(who("next"), json!({ "include_context": true })));
        let shown = |started: &Value| {
            let context = id(&started["context"]);
            ["Handoff of a,", "Handoff of alice (a person),", "Handoff of next,"]
                .map(|text| context.contains(text))
        };
        let (_, by_agent) = served.relay(&who("a"), &json!({ "summary": "Login works" }));
        let left = json!({ "author": "alice", "venture": "v", "repo": "o/r",
            "handoff": { "summary": "Ask before you migrate" } });
        let by_person = id(&served.ok("/handoffs/leave", &left)["handoff_id"]);
        let started = start();
        assert_eq!(
            (&started["last_handoff"]["id"], &started["agent_handoff"]["id"]),
            (&json!(by_person), &json!(by_agent))
        );
        assert_eq!(shown(&started), [true, true, false], "{}", started["context"]);
        served.relay(&who("next"), &json!({ "summary": "Logout works" }));
        let started = start();
        assert_eq!(started["agent_handoff"], json!(null));
        assert_eq!(
            shown(&started),
            [false, false, true],
            "an agent replaces what it received: {}",
            started["context"]
        );
    }
}
