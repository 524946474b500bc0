//! Cleanup: retention, batches, and coordination between processes.

use baton_core::{RequestRecord, Timestamp};
use baton_testkit::contract::{read, write};
use serde_json::{Value, json};

use crate::stage::{DAY, HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, who};

fn request(number: u32, timestamp: Timestamp) -> RequestRecord {
    RequestRecord {
        timestamp,
        correlation_id: format!("corr_{number}").parse().unwrap(),
        endpoint: "/sod".into(),
        method: "POST".into(),
        actor_key_id: None,
        session_id: None,
        agent: None,
        venture: None,
        repo: None,
        track: None,
        issue_number: None,
        status_code: 200,
        duration_ms: 0,
        error_message: None,
        idempotency_key: None,
        idempotency_hit: false,
        request_count: 1,
    }
}

fn log(stage: &Stage, records: Vec<RequestRecord>) {
    write(&stage.store, move |tx| records.iter().try_for_each(|record| tx.log_request(record)));
}

fn sweep(stage: &Stage) -> Value {
    ok(&stage.call("maintenance.cleanup", json!({})))
}

#[test]
fn request_log_records_are_deleted_after_seven_days() {
    for stage in Stage::each() {
        log(&stage, vec![request(1, NOW), request(2, NOW.plus(MILLISECOND))]);
        stage.clock.set(NOW.plus(7 * DAY));
        assert_eq!(sweep(&stage)["requests_deleted"], 0);
        stage.clock.set(NOW.plus(7 * DAY + MILLISECOND));
        assert_eq!(sweep(&stage)["requests_deleted"], 1);
        let left = read(&stage.store, |tx| tx.requests(10));
        let is_left = |id: &str| left.iter().any(|record| record.correlation_id.as_str() == id);
        assert!(!is_left("corr_1") && is_left("corr_2"), "{left:?}");
    }
}

#[test]
fn request_log_is_trimmed_to_its_maximum_number_of_records() {
    for stage in Stage::each() {
        log(&stage, (1..=10_500).map(|number| request(number, NOW)).collect());
        let done = sweep(&stage);
        assert_eq!((&done["requests_deleted"], &done["more"]), (&500.into(), &false.into()));
        let left = read(&stage.store, |tx| tx.requests(20_000));
        assert_eq!(left.last().unwrap().correlation_id.as_str(), "corr_501");
    }
}

#[test]
fn only_expired_keys_are_deleted() {
    for stage in Stage::each() {
        ok(&stage.keyed("early", "session.start", who("a")));
        stage.clock.set(NOW.plus(MINUTE));
        let late = stage.keyed("late", "session.start", who("b"));
        stage.clock.set(NOW.plus(HOUR));
        assert_eq!(sweep(&stage)["keys_deleted"], 1);
        assert_eq!(sweep(&stage)["keys_deleted"], 0);
        assert_eq!(stage.keyed("late", "session.start", who("b")).body, late.body);
    }
}

#[test]
fn cleanup_deletes_in_batches() {
    for stage in Stage::each() {
        log(&stage, (1..=2_500).map(|number| request(number, NOW)).collect());
        stage.clock.set(NOW.plus(8 * DAY));
        let portions: Vec<Value> = (0..3).map(|_| sweep(&stage)).collect();
        let deleted: Vec<_> =
            portions.iter().map(|done| done["requests_deleted"].as_u64().unwrap()).collect();
        assert_eq!(deleted, [1_000, 1_000, 500]);
        let more: Vec<_> = portions.iter().map(|done| done["more"].as_bool().unwrap()).collect();
        assert_eq!(more, [true, true, false]);
    }
}

#[test]
fn only_one_process_cleans_up_within_the_interval() {
    for stage in Stage::each() {
        let other = stage.another();
        let turn = |app: &baton_app::App| {
            let operation = crate::stage::operation("maintenance.cleanup");
            ok(&app.call_blocking(operation, stage.envelope(None), json!({ "unless_within_seconds": 50 })))
        };
        let ran = |done: &Value| done["ran"].as_bool().unwrap();
        assert!(ran(&turn(&stage.app)));
        assert!(
            !ran(&turn(&other)) && !ran(&turn(&stage.app)),
            "no process cleans up again within 50 seconds"
        );
        stage.clock.set(NOW.plus(MINUTE));
        log(&stage, vec![request(1, Timestamp::EPOCH)]);
        let done = turn(&other);
        assert_eq!((ran(&done), &done["requests_deleted"]), (true, &1.into()));
        assert!(!ran(&turn(&stage.app)), "the other process cleaned up already");
        assert!(ran(&sweep(&stage)), "without an interval it always runs");
    }
}
