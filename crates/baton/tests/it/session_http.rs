//! Sessions over HTTP: start and resume, update, heartbeat, show.

use std::collections::BTreeSet;

use baton_core::ActorKeyId;
use baton_testkit::binary::RELAY_KEY;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, names, refusal, time, who, with};

const UNKNOWN: &str = "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

/// Returns a start request with all parameters.
fn everything() -> Value {
    json!({
        "schema_version": "1.0", "agent": "cc-cli-host", "client": "cc-cli", "client_version": "1.2.3",
        "client_session_id": "chat-1", "host": "crane1", "venture": "dfg", "repo": "owner/dfg-console",
        "track": 1, "issue_number": 185, "branch": "feature/185", "commit_sha": "abc123", "meta": { "a": [1] },
    })
}

/// Returns the expected session: the sent values, and the generated values of the response.
fn session(sent: &Value, answer: &Value) -> Value {
    let known = &answer["session"];
    let mut expected = json!({
        "id": answer["session_id"], "agent": null, "client": null, "client_version": null,
        "client_session_id": null, "host": null, "venture": "local", "repo": null, "track": null,
        "issue_number": null, "branch": null, "commit_sha": null, "status": "active",
        "created_at": known["created_at"], "started_at": known["created_at"],
        "last_heartbeat_at": known["created_at"], "ended_at": null, "end_reason": null,
        "schema_version": "1.0", "actor_key_id": ActorKeyId::of(RELAY_KEY).as_str(),
        "creation_correlation_id": answer["correlation_id"], "meta": null,
    });
    expected = with(expected, sent.clone());
    with_meta_json(expected)
}

/// Adds `meta_json`, the text of `meta`.
fn with_meta_json(mut session: Value) -> Value {
    let text = session.get("meta").filter(|meta| meta.is_object()).map(Value::to_string);
    session["meta_json"] = text.into();
    session
}

#[test]
fn a_start_returns_all_fields_and_absent_ones_are_null() {
    for served in Served::each() {
        for sent in [everything(), json!({ "agent": "a", "repo": "o/r" })] {
            let raw = served.post("/sod", &sent);
            let answer = expect(&raw, 200);
            let interval = answer["heartbeat_interval_seconds"].as_u64().unwrap();
            assert!((480..=720).contains(&interval), "{interval}");
            let next = time(&answer["next_heartbeat_at"]).as_millis();
            let beat = time(&answer["session"]["last_heartbeat_at"]).as_millis();
            assert_eq!(next - beat, i64::try_from(interval).unwrap() * 1000);
            assert_eq!(answer["correlation_id"].as_str(), raw.header("x-correlation-id"));
            assert!(id(&answer["session_id"]).starts_with("sess_"));
            let expected = json!({
                "session_id": answer["session_id"], "status": "created", "session": session(&sent, &answer),
                "last_handoff": null, "agent_handoff": null, "warning": null, "active_sessions": [], "open_blockers": [],
                "next_heartbeat_at": answer["next_heartbeat_at"], "heartbeat_interval_seconds": interval,
                "correlation_id": answer["correlation_id"],
            });
            assert_eq!(answer, expected);
        }
    }
}

#[test]
fn resuming_updates_given_fields_and_keeps_the_rest() {
    for served in Served::each() {
        let first = served.ok("/sod", &everything());
        let newer = json!({
            "agent": "cc-cli-host", "client_session_id": "chat-1", "venture": "dfg", "repo": "owner/dfg-console",
            "track": 1, "issue_number": 186, "branch": "feature/186", "commit_sha": "def456", "host": "crane2",
        });
        let second = served.ok("/sos", &newer);
        assert_eq!((&second["session_id"], &second["status"]), (&first["session_id"], &"resumed".into()));
        let mut expected = with(first["session"].clone(), newer);
        expected["last_heartbeat_at"] = second["session"]["last_heartbeat_at"].clone();
        assert_eq!(second["session"], expected);
        assert!(time(&expected["last_heartbeat_at"]) >= time(&first["session"]["last_heartbeat_at"]));
        let shown = served.found(&format!("/sessions/{}", id(&first["session_id"])));
        assert_eq!(shown["session"], expected, "the stored session must equal the response");
    }
}

#[test]
fn any_difference_in_the_identity_starts_another_session() {
    for served in Served::each() {
        let starts = [
            who("a"),
            who("A"),
            with(who("a"), json!({ "venture": "w" })),
            with(who("a"), json!({ "repo": "o/r2" })),
            with(who("a"), json!({ "repo": "o/R" })),
            with(who("a"), json!({ "track": 0 })),
            with(who("a"), json!({ "track": 1 })),
            with(who("a"), json!({ "client_session_id": "chat-1" })),
            with(who("a"), json!({ "client_session_id": "chat-2" })),
            with(who("a"), json!({ "client_session_id": "chat-2", "track": 0 })),
        ];
        let started: Vec<String> =
            starts.iter().map(|start| id(&served.ok("/sod", start)["session_id"])).collect();
        assert_eq!(
            started.iter().collect::<BTreeSet<_>>().len(),
            starts.len(),
            "each request must start its own session"
        );
        for (start, first) in starts.iter().zip(&started) {
            let again = served.ok("/sod", start);
            assert_eq!((again["session_id"].as_str(), &again["status"]), (Some(&**first), &"resumed".into()));
        }
        let explicit = with(who("a"), json!({ "track": null, "client_session_id": null }));
        assert_eq!(id(&served.ok("/sod", &explicit)["session_id"]), started[0], "null must count as absent");
    }
}

#[test]
fn start_returns_the_last_handoff_of_the_same_track_only() {
    for served in Served::each() {
        let plain = json!({ "summary": "without", "blockers": ["no key", "no door"], "next_actions": ["look for both"] });
        let (first_session, first) = served.relay(&who("a"), &plain);
        let tracked = json!({ "summary": "on track 0", "status_label": "ready", "to_agent": "qa" });
        let (_, on_zero) = served.relay(&with(who("a"), json!({ "track": 0 })), &tracked);
        served.relay(&with(who("a"), json!({ "repo": "o/other" })), &json!({ "summary": "elsewhere" }));
        served.relay(&with(who("a"), json!({ "venture": "w" })), &json!({ "summary": "other venture" }));

        let untracked = served.ok("/sod", &who("b"));
        let last = &untracked["last_handoff"];
        let expected = json!({
            "id": first, "session_id": first_session, "from_agent": "a", "to_agent": null, "summary": "without",
            "status_label": null, "goal": null, "state": null, "work_completed": [], "decisions": [], "rejected": [],
            "gotchas": [], "constraints": [], "blockers": ["no key", "no door"], "next_actions": ["look for both"],
            "references": {
                "workflow": null, "checkpoint": null, "task": null, "branch": null, "commit": null,
                "uncommitted_files": [],
            },
            "written_by": "agent", "automatic_summary": null, "incomplete": false, "created_at": last["created_at"],
        });
        assert_eq!(*last, expected);
        assert_eq!(untracked["open_blockers"], plain["blockers"]);
        let zero = served.ok("/sod", &with(who("b"), json!({ "track": 0 })));
        assert_eq!(zero["last_handoff"]["id"], on_zero.as_str());
        assert_eq!(zero["last_handoff"]["status_label"], "ready");
        assert_eq!(zero["last_handoff"]["to_agent"], "qa");
        assert_eq!(zero["open_blockers"], json!([]));
        let one = served.ok("/sod", &with(who("b"), json!({ "track": 1 })));
        assert_eq!((&one["last_handoff"], &one["open_blockers"]), (&Value::Null, &json!([])));
        let newer = json!({ "summary": "solved", "blockers": [] });
        let (_, newest) = served.relay(&who("c"), &newer);
        let again = served.ok("/sod", &who("b"));
        assert_eq!(
            again["last_handoff"]["id"],
            newest.as_str(),
            "a resumed session must return the newest handoff"
        );
        assert_eq!(again["open_blockers"], json!([]));
    }
}

#[test]
fn start_lists_other_active_sessions_of_the_repository() {
    for served in Served::each() {
        let busy = with(who("b"), json!({ "track": 2, "issue_number": 200, "branch": "topic" }));
        let other = served.ok("/sod", &busy);
        served.ok("/sod", &with(who("c"), json!({ "repo": "o/other" })));
        served.ok("/sod", &with(who("d"), json!({ "venture": "w" })));
        served.relay(&who("e"), &json!({ "summary": "gone home" }));
        let mine = served.ok("/sod", &who("a"));
        let expected = json!([{
            "id": other["session_id"], "agent": "b", "track": 2, "issue_number": 200, "branch": "topic",
            "last_heartbeat_at": other["session"]["last_heartbeat_at"],
        }]);
        assert_eq!(
            mine["active_sessions"], expected,
            "only other active sessions of the repository must be listed"
        );
    }
}

#[test]
fn an_update_requires_a_key_and_patches_given_fields() {
    for served in Served::each() {
        let started = served.ok("/sod", &with(everything(), json!({ "meta": { "a": 1, "b": { "c": 2 } } })));
        let session_id = id(&started["session_id"]);
        let patch = json!({
            "schema_version": "1.0", "session_id": session_id, "commit_sha": "fff",
            "meta": { "a": null, "b": { "d": [3] }, "e": "ü" },
        });
        served.refused("/update", &patch, 400, "missing_idempotency_key");
        let answer = expect(&served.keyed("/update", "k-1", &patch), 200);
        assert_eq!(answer, json!({ "session_id": session_id, "updated_at": answer["updated_at"] }));
        let shown = served.found(&format!("/sessions/{session_id}"));
        let mut expected = with(started["session"].clone(), json!({ "commit_sha": "fff" }));
        expected["meta"] = json!({ "b": { "c": 2, "d": [3] }, "e": "ü" });
        expected = with_meta_json(expected);
        expected["last_heartbeat_at"] = answer["updated_at"].clone();
        assert_eq!(shown, json!({ "session": expected, "handoff": null, "summary": null }));
        let unknown = json!({ "session_id": UNKNOWN, "branch": "x" });
        refusal(&served.keyed("/update", "k-2", &unknown), 404, "session_not_found");
        served.ok("/eod", &json!({ "session_id": session_id, "summary": "done" }));
        let refused = refusal(&served.keyed("/update", "k-3", &patch), 409, "session_ended");
        assert_eq!(refused["details"]["status"], "ended");
        assert_eq!(served.found(&format!("/sessions/{session_id}"))["session"]["meta"], expected["meta"]);
    }
}

#[test]
fn heartbeat_intervals_are_randomized() {
    let served = Served::sqlite();
    let session_id = served.start("a");
    let mut seen = BTreeSet::new();
    let mut last = None;
    for _ in 0..200 {
        let answer = served.ok("/heartbeat", &json!({ "session_id": session_id }));
        let interval = answer["heartbeat_interval_seconds"].as_i64().unwrap();
        assert!((480..=720).contains(&interval), "{interval}");
        let beat = time(&answer["last_heartbeat_at"]);
        assert_eq!(time(&answer["next_heartbeat_at"]).as_millis() - beat.as_millis(), interval * 1000);
        assert!(Some(beat) >= last, "heartbeat times must not go backwards");
        assert_eq!(names(&answer).len(), 4);
        assert_eq!(answer["session_id"], session_id.as_str());
        last = Some(beat);
        seen.insert(interval);
    }
    // With 241 equally likely intervals, fewer than 50 different ones in 200 draws are practically impossible.
    assert!(seen.len() > 50, "{seen:?}");
    let stored = served.found(&format!("/sessions/{session_id}"))["session"]["last_heartbeat_at"].clone();
    assert_eq!(Some(time(&stored)), last);
}

#[test]
fn configured_heartbeat_intervals_are_used() {
    let home = baton_testkit::binary::Home::new(env!("CARGO_BIN_EXE_baton"));
    let environment = [("HEARTBEAT_INTERVAL_SECONDS", "60"), ("HEARTBEAT_JITTER_SECONDS", "1")];
    let server = home.serve_with(&environment);
    let session_id = id(&server.post("/sod", &who("a")).json()["session_id"]);
    let beat = json!({ "session_id": session_id });
    let seen: BTreeSet<i64> = (0..100)
        .map(|_| server.post("/heartbeat", &beat).json()["heartbeat_interval_seconds"].as_i64().unwrap())
        .collect();
    assert_eq!(seen, [59, 60, 61].into(), "both limits are included");
}

#[test]
fn ended_and_unknown_sessions_reject_heartbeats() {
    for served in Served::each() {
        let session_id = served.start("a");
        served.ok("/eod", &json!({ "session_id": session_id, "summary": "done", "end_reason": "error" }));
        let before = served.found(&format!("/sessions/{session_id}"));
        assert_eq!(before["session"]["end_reason"], "error");
        let refused =
            served.refused("/heartbeat", &json!({ "session_id": session_id }), 409, "session_ended");
        assert_eq!(refused["details"]["status"], "ended");
        let create = json!({ "session_id": session_id, "handoff": { "summary": "more" } });
        served.refused("/handoffs", &create, 409, "session_ended");
        assert_eq!(served.found(&format!("/sessions/{session_id}")), before, "the session must not change");
        served.refused("/heartbeat", &json!({ "session_id": UNKNOWN }), 404, "session_not_found");
        let handoff_id = before["handoff"]["id"].as_str().unwrap();
        served.refused("/heartbeat", &json!({ "session_id": handoff_id }), 400, "invalid_request");
        refusal(&served.get(&format!("/sessions/{UNKNOWN}")), 404, "session_not_found");
        for bad in ["x", "sess_", "%00", "%ff", "sess_01HQXV3NK8"] {
            refusal(&served.get(&format!("/sessions/{bad}")), 400, "invalid_request");
        }
        let again = served.ok("/sod", &who("a"));
        assert_eq!(again["status"], "created", "a start after the end must create a session");
    }
}
