//! Liveness: stale and abandoned sessions, and late handoffs.

use baton_core::{EndReason, SessionStatus};
use serde_json::{Value, json};

use crate::stage::{DAY, HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, refused, session_id, who};

fn active(stage: &Stage) -> usize {
    let listed = ok(&stage.call("session.list", json!({ "venture": "v" })));
    listed["sessions"].as_array().unwrap().len()
}

#[test]
fn session_is_stale_45_minutes_after_its_last_heartbeat() {
    for stage in Stage::each() {
        let id = session_id(&ok(&stage.call("session.start", who("a"))));
        let seen_by = |agent: &str| {
            let bundle = ok(&stage.call("session.start", who(agent)));
            let others = bundle["active_sessions"].as_array().unwrap();
            others.iter().any(|other| other["id"] == id.to_string())
        };
        stage.clock.set(NOW.plus(45 * MINUTE));
        assert_eq!((active(&stage), seen_by("b")), (1, true));
        stage.clock.set(NOW.plus(45 * MINUTE + MILLISECOND));
        assert_eq!((active(&stage), seen_by("c")), (1, false), "only the session that was just started");
        assert_eq!(stage.session(id).status, SessionStatus::Active, "a stale session is not abandoned yet");
        ok(&stage.call("session.heartbeat", json!({ "session_id": id })));
        assert!(seen_by("c"), "a heartbeat makes the session live again");
    }
}

#[test]
fn start_resumes_within_45_minutes_and_abandons_after() {
    for stage in Stage::each() {
        let first = ok(&stage.call("session.start", who("a")));
        let resumed = ok(&stage.at(45 * MINUTE, "session.start", who("a")));
        assert_eq!((&resumed["session_id"], &resumed["status"]), (&first["session_id"], &"resumed".into()));
        let since = 90 * MINUTE + MILLISECOND;
        let created = ok(&stage.at(since, "session.start", who("a")));
        assert_ne!(created["session_id"], first["session_id"]);
        assert_eq!(created["status"], "created");
        let gone = stage.session(session_id(&first));
        assert_eq!((gone.status, gone.end_reason), (SessionStatus::Abandoned, Some(EndReason::Stale)));
        assert_eq!(gone.ended_at, Some(NOW.plus(45 * MINUTE)), "it ended at its last heartbeat");
        let left = created["active_sessions"].as_array().unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn cleanup_abandons_sessions_24_hours_after_they_became_stale() {
    for stage in Stage::each() {
        let silent = session_id(&ok(&stage.call("session.start", who("a"))));
        let alive = session_id(&ok(&stage.at(MINUTE, "session.start", who("b"))));
        let sweep = |since| ok(&stage.at(since, "maintenance.cleanup", json!({})));
        let due = DAY + 45 * MINUTE;
        assert_eq!(sweep(due)["sessions_abandoned"], 0);
        assert_eq!(stage.session(silent).status, SessionStatus::Active);
        let done = sweep(due + MILLISECOND);
        assert_eq!(done["sessions_abandoned"], 1);
        assert_eq!((&done["ran"], &done["more"]), (&true.into(), &false.into()));
        let gone = stage.session(silent);
        assert_eq!((gone.status, gone.end_reason), (SessionStatus::Abandoned, Some(EndReason::Stale)));
        assert_eq!(gone.ended_at, Some(NOW));
        assert_eq!(stage.session(alive).status, SessionStatus::Active, "its heartbeat is a minute later");
        assert_eq!(sweep(due + 2 * MILLISECOND)["sessions_abandoned"], 0, "a session is abandoned once");
    }
}

#[test]
fn abandoned_session_rejects_heartbeats_but_accepts_a_late_handoff() {
    for stage in Stage::each() {
        let started = ok(&stage.call("session.start", who("a")));
        let id = session_id(&started);
        ok(&stage.at(2 * DAY, "maintenance.cleanup", json!({})));
        let answer = stage.call("session.heartbeat", json!({ "session_id": id }));
        let details = refused(&answer, "session_ended")["details"].clone();
        assert_eq!((&details["status"], &details["end_reason"]), (&"abandoned".into(), &"stale".into()));
        let update = json!({ "session_id": id, "branch": "b" });
        refused(&stage.keyed("k", "session.update", update), "session_ended");
        let create = json!({ "session_id": id, "handoff": { "summary": "s" } });
        refused(&stage.call("handoff.create", create), "session_ended");

        let end = json!({ "session_id": id, "summary": "what I knew", "payload": { "blockers": ["b"] } });
        let late = ok(&stage.at(3 * DAY, "session.end", end.clone()));
        assert_eq!((&late["late"], &late["ended_at"]), (&true.into(), &NOW.to_string().into()));
        let session = stage.session(id);
        assert_eq!((session.status, session.end_reason), (SessionStatus::Abandoned, Some(EndReason::Stale)));
        assert_eq!(
            ok(&stage.at(4 * DAY, "session.end", end)),
            late,
            "repeating the call returns the same output"
        );
        let other = stage.call("session.end", json!({ "session_id": id, "summary": "other" }));
        let details = refused(&other, "handoff_conflict")["details"].clone();
        assert_eq!(details["handoff_id"], late["handoff_id"]);
        let shown = ok(&stage.call("handoff.show", json!({ "handoff_id": late["handoff_id"] })));
        assert_eq!(
            (&shown["handoff"]["late"], &shown["handoff"]["ends_session"]),
            (&true.into(), &true.into())
        );
        assert_eq!(shown["handoff"]["created_at"], NOW.plus(3 * DAY).to_string());
        let next = ok(&stage.call("session.start", who("b")));
        assert_eq!(
            next["last_handoff"]["id"], late["handoff_id"],
            "the next session receives the late handoff"
        );
        assert_eq!(next["open_blockers"], json!(["b"]));
    }
}

#[test]
fn session_abandoned_by_a_start_accepts_a_late_handoff() {
    for stage in Stage::each() {
        let old = session_id(&ok(&stage.call("session.start", who("a"))));
        let new = session_id(&ok(&stage.at(HOUR, "session.start", who("a"))));
        assert_ne!(old, new);
        let late =
            ok(&stage.call("session.end", json!({ "session_id": old, "summary": "from the old one" })));
        assert_eq!(late["late"], true);
        let end = ok(&stage.call("session.end", json!({ "session_id": new, "summary": "from the new one" })));
        assert_eq!(end["late"], false);
        let listed = ok(&stage.call("handoff.list", json!({ "venture": "v" })));
        assert_eq!(listed["handoffs"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn session_times_never_move_backwards_with_the_clock() {
    for stage in Stage::each() {
        let started = ok(&stage.at(HOUR, "session.start", who("a")));
        let id = session_id(&started);
        let latest = NOW.plus(HOUR + 10 * MINUTE);
        ok(&stage.at(HOUR + 10 * MINUTE, "session.heartbeat", json!({ "session_id": id })));
        let back = HOUR + 5 * MINUTE;
        let last = |answer: &Value| answer["last_heartbeat_at"].as_str().unwrap().to_owned();
        let beat = ok(&stage.at(back, "session.heartbeat", json!({ "session_id": id })));
        assert_eq!(last(&beat), latest.to_string());
        let resumed = ok(&stage.call("session.start", who("a")));
        assert_eq!(last(&resumed["session"]), latest.to_string());
        ok(&stage.keyed("k", "session.update", json!({ "session_id": id, "branch": "b" })));
        let create = json!({ "session_id": id, "handoff": { "summary": "s" } });
        ok(&stage.call("handoff.create", create));
        assert_eq!(stage.session(id).last_heartbeat_at, latest);
        let ended = ok(&stage.call("session.end", json!({ "session_id": id, "summary": "s" })));
        assert_eq!(ended["ended_at"], latest.to_string(), "a session does not end before its last heartbeat");
        // Ids keep increasing, so lists stay in order.
        let next = ok(&stage.call("session.start", who("a")));
        assert!(session_id(&next) > id);
    }
}
