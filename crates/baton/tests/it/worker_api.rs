//! What a worker answers over its socket: nobody is asked for a key, for only its owner can open it.

use std::collections::BTreeSet;

use baton_testkit::model_server::Behaviour;
use serde_json::{Value, json};

use crate::workplace::Workplace;

fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_worker_tells_how_it_is() {
    for place in Workplace::each() {
        place.start();
        let answer = place.asked("GET", "/api/health", &Value::Null);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let health = answer.json();
        let expected = [
            "compressor",
            "cost_today_usd",
            "daily_token_budget",
            "errors",
            "model",
            "observations_today",
            "queue_depth",
            "status",
            "tokens_today",
            "uptime_s",
        ];
        assert_eq!(fields(&health), expected.into());
        assert_eq!(health["status"], "ok");
        assert!(health["uptime_s"].as_u64().unwrap() < 60, "{health}");
        assert_eq!((&health["queue_depth"], &health["observations_today"]), (&json!(0), &json!(0)));
        assert_eq!((&health["compressor"], &health["errors"]), (&json!("anthropic"), &json!(0)));

        place.capture(1);
        place.capture(2);
        place.titles_when(2);
        place.model.behave(Behaviour::Garbage);
        place.capture(3);
        baton_testkit::processes::wait_until("one is given up", || place.stats()["error"] == 1);
        let health = place.asked("GET", "/api/health", &Value::Null).json();
        assert_eq!(
            (&health["queue_depth"], &health["observations_today"]),
            (&json!(0), &json!(2)),
            "{health}"
        );
        assert_eq!(health["errors"], 1);
        assert!(health["tokens_today"].as_u64().unwrap() > 0, "{health}");
        let status = place.run(&["worker", "status"]).stdout;
        assert!(status.contains(" 2 observations today, 1 given up, compressor anthropic"), "{status}");
    }
}

#[test]
fn a_worker_counts_its_queue_and_gives_the_context() {
    for place in Workplace::each() {
        place.model.behave(Behaviour::Hang);
        place.start();
        place.capture(1);
        place.model.wait_for_requests(1);
        let stats = place.asked("GET", "/api/queue/stats", &Value::Null);
        assert_eq!(stats.json(), json!({ "raw": 0, "processing": 1, "done": 0, "error": 0 }));
        let depth = place.asked("GET", "/api/health", &Value::Null).json()["queue_depth"].clone();
        assert_eq!(depth, 1, "what is worked on is not done");
        let context = place.asked("GET", "/api/context", &Value::Null);
        assert_eq!(context.status, 200);
        assert!(fields(&context.json()).is_superset(&["context", "tokens"].into()), "{}", context.text);
        assert_eq!(place.asked("GET", "/api/nothing", &Value::Null).status, 404);
    }
}

#[test]
fn a_worker_sums_a_session_up() {
    for place in Workplace::each() {
        place.start();
        place.capture(1);
        place.capture(2);
        place.titles_when(2);
        let session = place.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
        let made = place.asked("POST", "/api/summarize", &json!({ "session_id": session }));
        assert_eq!(made.status, 200, "{}", made.text);
        let made = made.json();
        assert_eq!(made["summary"], "Summary of item-1", "{made}");
        assert!(made["tokens"].as_u64().unwrap() > 0, "{made}");
        assert_eq!((&made["observations"], &made["session_status"]), (&json!(2), &json!("ended")));

        let again = place.asked("POST", "/api/summarize", &json!({ "session_id": session })).json();
        assert_eq!(
            (&again["summary"], &again["tokens"]),
            (&made["summary"], &json!(0)),
            "it is not paid twice"
        );
        let unknown = json!({ "session_id": "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV" });
        assert_eq!(place.asked("POST", "/api/summarize", &unknown).status, 404);
        assert_eq!(place.asked("POST", "/api/summarize", &json!({})).status, 400);
    }
}
