//! `/metrics`: counts of stored records, errors and worker activity.

use baton_testkit::processes::wait_until;
use serde_json::json;

use crate::served::{Served, expect, id, refusal, who};

/// Reads the value of a metric, with its labels as Prometheus writes them.
fn metric(served: &Served, name: &str) -> Option<f64> {
    let answer = served.get("/metrics");
    assert_eq!(answer.status, 200, "{}", answer.text);
    let line = answer.text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
    line.map(|value| value.parse().unwrap())
}

#[test]
fn metrics_count_sessions_keys_queue_items_and_blobs() {
    for served in Served::each_without_worker() {
        let session = served.start("a");
        served.relay(&who("b"), &json!({ "summary": "done" }));
        expect(&served.keyed("/update", "k", &json!({ "session_id": session, "branch": "b" })), 200);
        let report = json!({
            "session_id": "chat", "repo": "o/r", "agent": "c", "venture": "v", "tool_name": "Bash",
            "tool_response": "done",
        });
        served.ok("/hooks/post-tool-use", &report);
        for (name, value) in [
            (r#"baton_sessions{status="active"}"#, 2.0),
            (r#"baton_sessions{status="ended"}"#, 1.0),
            (r#"baton_sessions{status="abandoned"}"#, 0.0),
            (r#"baton_queue_items{state="raw"}"#, 1.0),
            (r#"baton_queue_items{state="processing"}"#, 0.0),
            (r#"baton_queue_items{state="done"}"#, 0.0),
            (r#"baton_queue_items{state="error"}"#, 0.0),
            ("baton_idempotency_keys", 1.0),
            (r#"baton_store_errors_total{kind="unavailable"}"#, 0.0),
            ("baton_worker_running", 0.0),
        ] {
            assert_eq!(metric(&served, name), Some(value), "{name}");
        }
        assert_eq!(metric(&served, "baton_worker_last_activity_timestamp_seconds"), None);
        assert!(metric(&served, "baton_store_counts_age_seconds").is_some());
    }
    let served = Served::sqlite();
    assert_eq!((metric(&served, "baton_blobs"), metric(&served, "baton_blob_bytes")), (Some(0.0), Some(0.0)));
}

#[test]
fn metrics_follow_the_worker() {
    let served = Served::sqlite();
    assert_eq!(metric(&served, "baton_worker_running"), Some(1.0));
    let report = json!({
        "session_id": "chat", "repo": "o/r", "agent": "c", "tool_name": "Bash", "tool_response": "done",
    });
    served.ok("/hooks/post-tool-use", &report);
    let worked = || metric(&served, "baton_worker_last_activity_timestamp_seconds");
    wait_until("the worker has worked", || worked().is_some_and(|at| at > 1.7e9));
    wait_until("the item is counted as done", || {
        metric(&served, r#"baton_queue_items{state="done"}"#) == Some(1.0)
    });
}

#[test]
fn metrics_need_a_credential_for_every_venture() {
    let served = Served::sqlite();
    let made = served.home.run(&["token", "create", "--format", "json", "--name", "t", "--venture", "v"]);
    let token = id(&made.json()["data"]["token"]);
    let scraped = served.send("GET", "/metrics", &[("X-Relay-Key", token.as_str())], b"");
    refusal(&scraped, 403, "forbidden");
    let made = served.home.run(&["token", "create", "--format", "json", "--name", "u", "--access", "read"]);
    let token = id(&made.json()["data"]["token"]);
    assert_eq!(served.send("GET", "/metrics", &[("X-Relay-Key", token.as_str())], b"").status, 200);
}
