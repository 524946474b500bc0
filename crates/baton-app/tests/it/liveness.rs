//! Silence: when a session is stale, when it is given up, and what may still come from it.

use baton_core::{EndReason, SessionStatus};
use serde_json::{Value, json};

use crate::stage::{DAY, HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, refused, session_id, who};

fn active(stage: &Stage) -> usize {
    let listed = ok(&stage.call("session.list", json!({ "venture": "v" })));
    listed["sessions"].as_array().unwrap().len()
}

#[test]
fn a_session_is_stale_after_45_minutes_of_silence() {
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
        assert_eq!((active(&stage), seen_by("c")), (1, false), "only the one that just looked");
        assert_eq!(stage.session(id).status, SessionStatus::Active, "nobody has given it up");
        ok(&stage.call("session.heartbeat", json!({ "session_id": id })));
        assert!(seen_by("c"), "a sign of life brings it back");
    }
}

#[test]
fn a_start_resumes_within_45_minutes_and_gives_up_after() {
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
        assert_eq!(gone.ended_at, Some(NOW.plus(45 * MINUTE)), "it was over at its last sign of life");
        let left = created["active_sessions"].as_array().unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn the_sweeper_gives_up_24_hours_after_staleness() {
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
        assert_eq!(stage.session(alive).status, SessionStatus::Active, "a minute younger");
        assert_eq!(sweep(due + 2 * MILLISECOND)["sessions_abandoned"], 0, "once");
    }
}

#[test]
fn an_abandoned_session_takes_no_sign_of_life_but_its_handoff() {
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
        assert_eq!(ok(&stage.at(4 * DAY, "session.end", end)), late, "again is the same answer");
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
        assert_eq!(next["last_handoff"]["id"], late["handoff_id"], "the next agent hears of it");
        assert_eq!(next["open_blockers"], json!(["b"]));
    }
}

#[test]
fn a_session_given_up_by_a_start_can_still_hand_over_late() {
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
fn nothing_moves_back_when_the_clock_does() {
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
        assert_eq!(ended["ended_at"], latest.to_string(), "over not before its last sign of life");
        // Ids still go up, so that lists stay in order.
        let next = ok(&stage.call("session.start", who("a")));
        assert!(session_id(&next) > id);
    }
}
