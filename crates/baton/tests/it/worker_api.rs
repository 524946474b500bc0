//! HTTP API on the socket of a worker. It needs no key, because only the owner can open the socket.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_testkit::model_server::Behaviour;
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::worker_fixture::WorkerFixture;

fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Waits if UTC midnight is near, because the worker counts per UTC day.
fn wait_until_midnight_is_far() {
    const DAY: u64 = 86_400;
    const MARGIN: u64 = 180;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % DAY;
    if now > DAY - MARGIN {
        std::thread::sleep(Duration::from_secs(DAY - now));
    }
}

#[test]
fn health_reports_counters_and_errors() {
    for fixture in WorkerFixture::each() {
        fixture.start();
        let answer = fixture.request("GET", "/api/health", &Value::Null);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let health = answer.json();
        let expected = [
            "budget_used_up",
            "compressor",
            "cost_by_day",
            "cost_by_session",
            "cost_today_usd",
            "daily_token_budget",
            "errors",
            "model",
            "model_trouble",
            "observations_by_hour",
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

        wait_until_midnight_is_far();
        fixture.capture(1);
        fixture.capture(2);
        fixture.titles_when(2);
        fixture.model.behave(Behaviour::Garbage);
        fixture.capture(3);
        baton_testkit::processes::wait_until("one item fails", || fixture.stats()["error"] == 1);
        let health = fixture.request("GET", "/api/health", &Value::Null).json();
        assert_eq!(
            (&health["queue_depth"], &health["observations_today"]),
            (&json!(0), &json!(2)),
            "{health}"
        );
        let hours = health["observations_by_hour"].as_array().unwrap();
        let created: i64 = hours.iter().map(|hour| hour["observations"].as_i64().unwrap()).sum();
        assert_eq!(created, 2, "{health}");
        assert_eq!(health["errors"], 1);
        assert!(health["tokens_today"].as_u64().unwrap() > 0, "{health}");
        let status = fixture.run(&["worker", "status"]).stdout;
        assert!(status.contains(" 2 observations today, 1 failed, compressor anthropic"), "{status}");
    }
}

#[test]
fn queue_stats_and_context_are_available_on_the_socket() {
    for fixture in WorkerFixture::each() {
        fixture.model.behave(Behaviour::Hang);
        fixture.start();
        fixture.capture(1);
        fixture.model.wait_for_requests(1);
        let stats = fixture.request("GET", "/api/queue/stats", &Value::Null);
        assert_eq!(stats.json(), json!({ "raw": 0, "processing": 1, "done": 0, "error": 0 }));
        let depth = fixture.request("GET", "/api/health", &Value::Null).json()["queue_depth"].clone();
        assert_eq!(depth, 1, "items in progress count as queued");
        let context = fixture.request("GET", "/api/context?repo=local/none", &Value::Null);
        assert_eq!(context.status, 200);
        assert!(fields(&context.json()).is_superset(&["context", "tokens"].into()), "{}", context.text);
        assert_eq!(fixture.request("GET", "/api/nothing", &Value::Null).status, 404);
    }
}

#[test]
fn summarize_ends_the_session_and_is_not_repeated() {
    for fixture in WorkerFixture::each() {
        fixture.start();
        fixture.capture(1);
        fixture.capture(2);
        fixture.titles_when(2);
        let session = fixture.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
        let made = fixture.request("POST", "/api/summarize", &json!({ "session_id": session }));
        assert_eq!(made.status, 200, "{}", made.text);
        let made = made.json();
        assert_eq!(made["summary"], "Summary of item-1", "{made}");
        assert!(made["tokens"].as_u64().unwrap() > 0, "{made}");
        assert_eq!((&made["observations"], &made["session_status"]), (&json!(2), &json!("ended")));

        let again = fixture.request("POST", "/api/summarize", &json!({ "session_id": session })).json();
        assert_eq!(
            (&again["summary"], &again["tokens"]),
            (&made["summary"], &json!(0)),
            "a repeated summary must not call the model again"
        );
        let unknown = json!({ "session_id": "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV" });
        assert_eq!(fixture.request("POST", "/api/summarize", &unknown).status, 404);
        assert_eq!(fixture.request("POST", "/api/summarize", &json!({})).status, 400);
    }
}

/// Returns level and message of the observations finding of `baton doctor`.
fn diagnosis(fixture: &WorkerFixture) -> (String, String) {
    let answer = fixture.json(&["doctor"]).json();
    let findings = answer["data"]["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "observations").unwrap();
    let text = |field: &str| finding[field].as_str().unwrap().to_owned();
    (text("level"), text("message"))
}

#[test]
fn model_errors_are_reported_by_health_status_and_doctor() {
    for fixture in WorkerFixture::each() {
        assert_eq!(diagnosis(&fixture).0, "ok");
        fixture.model.behave(Behaviour::Unauthorized);
        fixture.start();
        fixture.capture(1);
        let health = || fixture.request("GET", "/api/health", &Value::Null).json();
        wait_until("the worker reports the model error", || health()["model_trouble"].is_object());
        let answer = health();
        let trouble = &answer["model_trouble"];
        assert_eq!(
            (&answer["status"], &trouble["needs_attention"]),
            (&json!("degraded"), &json!(true)),
            "{answer}"
        );
        assert!(trouble["error"].as_str().unwrap().contains("401"), "{answer}");
        let status = fixture.run(&["worker", "status"]).stdout;
        assert!(
            status.contains("the model has been unavailable since") && status.contains("401"),
            "{status}"
        );
        let (level, message) = diagnosis(&fixture);
        assert!(level == "warning" && message.contains("401"), "{level} {message}");
        fixture.ok(&["worker", "stop"]);
        fixture.model.behave(Behaviour::Good);
        fixture.start();
        fixture.titles_when(1);
        let answer = health();
        assert_eq!((&answer["status"], &answer["model_trouble"]), (&json!("ok"), &Value::Null), "{answer}");
        fixture.model.behave(Behaviour::MissingTitle);
        fixture.capture(2);
        wait_until("the item fails", || fixture.stats()["error"] == 1);
        let (level, message) = diagnosis(&fixture);
        assert!(level == "warning" && message.contains("1 captured tool uses failed"), "{level} {message}");
        let log = std::fs::read_to_string(fixture.data_dir().join("logs/worker.log")).unwrap();
        assert!(log.contains("compress.done") && log.contains("duration_ms="), "{log}");
    }
}

#[test]
fn a_used_up_budget_is_reported_and_work_continues_offline() {
    let fixture = WorkerFixture::sqlite_with(|home| home.with("BATON_WORKER_DAILY_TOKEN_BUDGET", "1"));
    fixture.start();
    fixture.capture(1);
    fixture.titles_when(1);
    let answer = fixture.request("GET", "/api/health", &Value::Null).json();
    assert_eq!(
        (&answer["compressor"], &answer["budget_used_up"]),
        (&json!("anthropic"), &json!(true)),
        "{answer}"
    );
    assert!(fixture.run(&["worker", "status"]).stdout.contains("used up"));
    assert_eq!(diagnosis(&fixture).0, "warning");
    fixture.capture(2);
    fixture.titles_when(2);
    let made = fixture.ok(&["observation", "list"])["observations"][0]["provenance"].clone();
    assert_eq!((&made["compressor"], &made["model"]), (&json!("offline"), &Value::Null));
}

#[test]
fn secrets_in_model_output_are_not_stored() {
    let secret = format!("gh{}_{}", "p", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A");
    let fixture = WorkerFixture::sqlite();
    let observation = json!({
        "title": "Find it", "summary": "It was found.", "detail": secret, "files_touched": [secret],
        "functions_changed": [{ "file": secret, "name": secret, "action": "new" }],
    });
    let summary = json!({ "summary": secret, "key_files": [secret], "key_decisions": [secret] });
    fixture.model.behave(Behaviour::Says(observation.to_string()));
    fixture.capture(1);
    fixture.ok(&["worker", "run", "--once"]);
    let session = fixture.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
    fixture.model.behave(Behaviour::Says(summary.to_string()));
    fixture.hook("stop", json!({}));
    fixture.ok(&["worker", "run", "--once"]);
    fixture.capture(2);
    fixture.model.behave(Behaviour::Says(format!("{secret} is no JSON")));
    let run = fixture.run(&["worker", "run", "--once"]);
    assert!(!run.stderr.contains(&secret), "{}", run.stderr);
    assert_eq!(fixture.stats()["error"], 1);
    fixture.ok(&["summarize", session.as_str().unwrap()]);
    for arguments in [
        &["observation", "list"][..],
        &["session", "show", session.as_str().unwrap()],
        &["queue", "list", "--errors"],
    ] {
        let answer = fixture.ok(arguments).to_string();
        assert!(!answer.contains(&secret), "{arguments:?}: {answer}");
    }
    let database = std::fs::read(fixture.data_dir().join("baton.db")).unwrap();
    let log = std::fs::read(fixture.data_dir().join("baton.db-wal")).unwrap_or_default();
    for bytes in [database, log] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
}

#[test]
fn a_single_run_counts_its_results() {
    let fixture = WorkerFixture::sqlite();
    fixture.capture(1);
    let done = fixture.run(&["worker", "run", "--once"]).stdout;
    assert_eq!(done, "1 observation, 0 summaries, 0 to retry, 0 failed\n");
    fixture.hook("stop", json!({}));
    let done = fixture.run(&["worker", "run", "--once"]).stdout;
    assert_eq!(done, "0 observations, 1 summary, 0 to retry, 0 failed\n");
}

#[test]
fn summaries_to_retry_are_counted() {
    let fixture = WorkerFixture::sqlite();
    fixture.capture(1);
    fixture.ok(&["worker", "run", "--once"]);
    fixture.hook("stop", json!({}));
    fixture.model.behave(Behaviour::ServerError);
    let done = fixture.ok(&["worker", "run", "--once"]);
    assert_eq!((&done["summaries"], &done["summaries_returned"]), (&json!(0), &json!(1)), "{done}");
    assert!(done["model_trouble"]["error"].as_str().unwrap().contains("500"), "{done}");
}

#[test]
fn doctor_reports_a_data_folder_path_that_is_too_long() {
    let long = "x".repeat(120);
    let fixture = WorkerFixture::sqlite();
    let folder = fixture.path().join(long);
    let answer = fixture.json(&["doctor", "--data-dir", folder.to_str().unwrap()]).json();
    let findings = answer["data"]["findings"].as_array().unwrap();
    let worker = findings.iter().find(|finding| finding["check"] == "worker").unwrap();
    assert_eq!(worker["level"], "warning", "{worker}");
    assert!(worker["fix"].as_str().unwrap().contains("shorter"), "{worker}");
}
