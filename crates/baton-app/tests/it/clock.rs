//! Rows stored after the clock was set back and the process restarted still count as newer.

use baton_app::App;
use serde_json::{Value, json};

use crate::observing::{bash, report};
use crate::outbox::Outage;
use crate::stage::{HOUR, NOW, Stage, ok, operation, who};

/// Sets the clock back and returns a process that was started afterwards.
fn restart_an_hour_earlier(stage: &Stage) -> App {
    stage.clock.set(NOW.minus(HOUR));
    stage.another()
}

fn call(stage: &Stage, app: &App, name: &str, params: Value) -> Value {
    ok(&app.call_blocking(operation(name), stage.envelope(None), params))
}

#[test]
fn latest_handoff_is_the_one_stored_last() {
    for stage in Stage::each() {
        let handoff = |session: &Value, summary: &str| json!({ "session_id": session["session_id"], "handoff": { "summary": summary, "status_label": "done" } });
        let first = ok(&stage.call("session.start", who("a")));
        ok(&stage.call("handoff.create", handoff(&first, "older")));
        let restarted = restart_an_hour_earlier(&stage);
        let second = call(&stage, &restarted, "session.start", who("b"));
        call(&stage, &restarted, "session.end", handoff(&second, "newer"));
        let latest = call(&stage, &restarted, "handoff.latest", json!({ "venture": "v", "repo": "o/r" }));
        assert_eq!(latest["handoff"]["summary"], "newer");
        let next = call(&stage, &restarted, "session.start", who("c"));
        assert_eq!(next["last_handoff"]["summary"], "newer");
    }
}

#[test]
fn session_stored_last_is_listed_first() {
    for stage in Stage::each() {
        ok(&stage.call("session.start", who("older")));
        let restarted = restart_an_hour_earlier(&stage);
        call(&stage, &restarted, "session.start", who("newer"));
        let listed = call(&stage, &restarted, "session.list", json!({ "venture": "v" }));
        let agents: Vec<&Value> =
            listed["sessions"].as_array().unwrap().iter().map(|one| &one["agent"]).collect();
        assert_eq!(agents, ["newer", "older"]);
    }
}

#[test]
fn observation_stored_last_is_listed_first() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", bash("older", "done"));
        let restarted = restart_an_hour_earlier(&stage);
        call(&stage, &restarted, "hook.report", report("post-tool-use", bash("newer", "done")));
        stage.clock.set(NOW);
        assert_eq!(stage.work(), 2);
        let titles: Vec<String> =
            stage.observations().iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect();
        assert!(titles[0].contains("newer") && titles[1].contains("older"), "{titles:?}");
    }
}

#[test]
fn latest_checkpoint_is_the_one_stored_last() {
    for stage in Stage::each() {
        let save = |step: u32| json!({ "sessionId": "s", "context": { "step": step } });
        ok(&stage.call("checkpoint.save", save(1)));
        let restarted = restart_an_hour_earlier(&stage);
        call(&stage, &restarted, "checkpoint.save", save(2));
        let latest = call(&stage, &restarted, "checkpoint.load", json!({ "sessionId": "s" }));
        assert_eq!(latest["context"]["step"], 2);
    }
}

#[test]
fn checkpoints_in_the_outbox_are_replayed_in_the_order_they_were_saved() {
    let outage = Outage::new();
    let save = |step: u32| json!({ "sessionId": "s", "context": { "step": step } });
    outage.call(&outage.without_database(), "checkpoint.save", save(1));
    outage.stage.clock.set(NOW.minus(HOUR));
    outage.call(&outage.without_database(), "checkpoint.save", save(2));
    let latest = outage.call(&outage.recovered(), "checkpoint.load", json!({ "sessionId": "s" }));
    assert_eq!((&latest["context"]["step"], &latest["degraded"]), (&2.into(), &false.into()));
}
