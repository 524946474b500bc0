//! What a worker answers over its socket: nobody is asked for a key, for only its owner can open it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_testkit::model_server::Behaviour;
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::workplace::Workplace;

fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Waits until no UTC midnight comes within the next minutes: the worker counts by UTC day.
fn wait_until_midnight_is_far() {
    const DAY: u64 = 86_400;
    const MARGIN: u64 = 180;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % DAY;
    if now > DAY - MARGIN {
        std::thread::sleep(Duration::from_secs(DAY - now));
    }
}

#[test]
fn a_worker_tells_how_it_is() {
    for place in Workplace::each() {
        place.start();
        let answer = place.asked("GET", "/api/health", &Value::Null);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let health = answer.json();
        let expected = [
            "budget_used_up",
            "compressor",
            "cost_today_usd",
            "daily_token_budget",
            "errors",
            "model",
            "model_trouble",
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

/// What `baton doctor` finds about observations: how bad it is, and what it says.
fn diagnosis(place: &Workplace) -> (String, String) {
    let told = place.json(&["doctor"]).json();
    let findings = told["data"]["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "observations").unwrap();
    let text = |field: &str| finding[field].as_str().unwrap().to_owned();
    (text("level"), text("message"))
}

#[test]
fn a_model_that_refuses_us_is_told_of_by_everybody_who_is_asked() {
    for place in Workplace::each() {
        assert_eq!(diagnosis(&place).0, "ok");
        place.model.behave(Behaviour::Unauthorized);
        place.start();
        place.capture(1);
        let health = || place.asked("GET", "/api/health", &Value::Null).json();
        wait_until("the worker knows", || health()["model_trouble"].is_object());
        let told = health();
        let trouble = &told["model_trouble"];
        assert_eq!(
            (&told["status"], &trouble["needs_attention"]),
            (&json!("degraded"), &json!(true)),
            "{told}"
        );
        assert!(trouble["error"].as_str().unwrap().contains("401"), "{told}");
        let status = place.run(&["worker", "status"]).stdout;
        assert!(status.contains("the model cannot be asked since") && status.contains("401"), "{status}");
        let (level, message) = diagnosis(&place);
        assert!(level == "warning" && message.contains("401"), "{level} {message}");
        place.ok(&["worker", "stop"]);
        place.model.behave(Behaviour::Good);
        place.start();
        place.titles_when(1);
        let told = health();
        assert_eq!((&told["status"], &told["model_trouble"]), (&json!("ok"), &Value::Null), "{told}");
        place.model.behave(Behaviour::MissingTitle);
        place.capture(2);
        wait_until("it is given up", || place.stats()["error"] == 1);
        let (level, message) = diagnosis(&place);
        assert!(
            level == "warning" && message.contains("1 captured tool uses were given up"),
            "{level} {message}"
        );
        let log = std::fs::read_to_string(place.data_dir().join("logs/worker.log")).unwrap();
        assert!(log.contains("compress.done") && log.contains("duration_ms="), "{log}");
    }
}

#[test]
fn a_budget_that_is_used_up_is_told_of() {
    let place = Workplace::sqlite_with(|home| home.with("BATON_WORKER_DAILY_TOKEN_BUDGET", "1"));
    place.start();
    place.capture(1);
    place.titles_when(1);
    let told = place.asked("GET", "/api/health", &Value::Null).json();
    assert_eq!((&told["compressor"], &told["budget_used_up"]), (&json!("anthropic"), &json!(true)), "{told}");
    assert!(place.run(&["worker", "status"]).stdout.contains("used up"));
    assert_eq!(diagnosis(&place).0, "warning");
    place.capture(2);
    place.titles_when(2);
    let made = place.ok(&["observation", "list"])["observations"][0]["provenance"].clone();
    assert_eq!((&made["compressor"], &made["model"]), (&json!("offline"), &Value::Null));
}

#[test]
fn a_secret_that_a_model_writes_is_stored_nowhere() {
    let secret = format!("gh{}_{}", "p", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A");
    let place = Workplace::sqlite();
    let observation = json!({
        "title": "Find it", "summary": "It was found.", "detail": secret, "files_touched": [secret],
        "functions_changed": [{ "file": secret, "name": secret, "action": "new" }],
    });
    let summary = json!({ "summary": secret, "key_files": [secret], "key_decisions": [secret] });
    place.model.behave(Behaviour::Says(observation.to_string()));
    place.capture(1);
    place.ok(&["worker", "run", "--once"]);
    let session = place.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
    place.model.behave(Behaviour::Says(summary.to_string()));
    place.hook("stop", json!({}));
    place.ok(&["worker", "run", "--once"]);
    place.capture(2);
    place.model.behave(Behaviour::Says(format!("{secret} is no JSON")));
    let run = place.run(&["worker", "run", "--once"]);
    assert!(!run.stderr.contains(&secret), "{}", run.stderr);
    assert_eq!(place.stats()["error"], 1);
    place.ok(&["summarize", session.as_str().unwrap()]);
    for arguments in [
        &["observation", "list"][..],
        &["session", "show", session.as_str().unwrap()],
        &["queue", "list", "--errors"],
    ] {
        let told = place.ok(arguments).to_string();
        assert!(!told.contains(&secret), "{arguments:?}: {told}");
    }
    let database = std::fs::read(place.data_dir().join("baton.db")).unwrap();
    let log = std::fs::read(place.data_dir().join("baton.db-wal")).unwrap_or_default();
    for bytes in [database, log] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
}

#[test]
fn summaries_that_wait_again_are_counted() {
    let place = Workplace::sqlite();
    place.capture(1);
    place.ok(&["worker", "run", "--once"]);
    place.hook("stop", json!({}));
    place.model.behave(Behaviour::ServerError);
    let done = place.ok(&["worker", "run", "--once"]);
    assert_eq!((&done["summaries"], &done["summaries_returned"]), (&json!(0), &json!(1)), "{done}");
    assert!(done["model_trouble"]["error"].as_str().unwrap().contains("500"), "{done}");
}

#[test]
fn a_folder_that_no_worker_can_listen_in_is_told_of() {
    let long = "x".repeat(120);
    let place = Workplace::sqlite();
    let folder = place.path().join(long);
    let told = place.json(&["doctor", "--data-dir", folder.to_str().unwrap()]).json();
    let findings = told["data"]["findings"].as_array().unwrap();
    let worker = findings.iter().find(|finding| finding["check"] == "worker").unwrap();
    assert_eq!(worker["level"], "warning", "{worker}");
    assert!(worker["fix"].as_str().unwrap().contains("shorter"), "{worker}");
}
