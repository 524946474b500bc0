//! Checkpoints over HTTP: round trips, rejected requests, idempotency keys, and storage of large contexts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use baton_testkit::binary::tool_answer;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, names, refusal, time, with};

const UNKNOWN: &str = "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ";
const SAVE: &str = "/api/checkpoints";

/// Returns text that does not compress to less than half.
pub(crate) fn noise(bytes: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state >> 40) as u8 % 26)
    });
    // Without the spaces the text would look like a secret.
    letters.enumerate().map(|(at, letter)| if at % 9 == 8 { ' ' } else { letter }).take(bytes).collect()
}

fn save(served: &Served, workflow: &str, context: &Value) -> Value {
    served.ok(SAVE, &json!({ "sessionId": workflow, "context": context }))
}

#[test]
fn checkpoints_can_be_saved_loaded_listed_marked_compared_explained_and_deleted() {
    for served in Served::each() {
        let contexts = [json!({ "goal": "接力棒 ☕", "n": 1 }), json!({ "goal": "接力棒 ☕", "n": 2 })];
        let saved = contexts.each_ref().map(|context| save(&served, "w", context));
        let keys = ["checkpointId", "degraded", "sessionId", "sizeBytes", "status", "storedBytes", "warning"];
        assert_eq!(names(&saved[0]), keys.into());
        let [first, second] = saved.each_ref().map(|saved| id(&saved["checkpointId"]));
        assert!(first.starts_with("ckpt_"));
        let by_path = served.found(&format!("/api/checkpoints/{first}"));
        assert_eq!(by_path, served.found(&format!("/api/checkpoints/load?checkpointId={first}")));
        assert_eq!(by_path["context"], contexts[0]);
        time(&by_path["metadata"]["createdAt"]);
        assert_eq!(served.found("/api/checkpoints/load?sessionId=w")["checkpointId"], *second);
        let listed = served.found("/api/checkpoints?sessionId=w&limit=1")["checkpoints"].clone();
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["checkpointId"]), (1, &json!(second)));
        let marked = served.ok("/api/checkpoints/critical", &json!({ "sessionId": "w", "contextKey": "n" }));
        assert_eq!(marked["status"], "SUCCESS");
        let diff = served.found(&format!("/api/checkpoints/diff?from={first}&to={second}"));
        assert_eq!(diff["changes"], json!([{ "path": "n", "kind": "changed", "old": 1, "new": 2 }]));
        assert_eq!(served.found("/api/checkpoints/diff?sessionId=w"), diff);
        let explained = served.found(&format!("/api/checkpoints/explain?checkpointId={first}&contextKey=n"));
        assert_eq!(explained["keys"][0]["rule"], "override");
        assert_eq!(served.found("/api/workflows")["workflows"][0]["checkpointCount"], 2);
        let view = served.found(&format!("/api/checkpoints/{first}?maxBytes=1"));
        assert_eq!(view["view"]["overflow"]["budgetBytes"], 1);
        let gone = served.send("DELETE", &format!("/api/checkpoints/{first}"), &[], b"");
        assert_eq!(names(&expect(&gone, 200)), ["checkpointId", "freedBytes"].into());
        refusal(&served.get(&format!("/api/checkpoints/{first}")), 404, "checkpoint_not_found");
        assert_eq!(served.found("/api/checkpoints?sessionId=w")["checkpoints"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn invalid_requests_are_rejected_with_the_field_and_store_nothing() {
    for served in Served::each() {
        let context = |context: Value| json!({ "sessionId": "w", "context": context });
        let long = "x".repeat(129);
        let cases = [
            (json!({}), "context"),
            (json!({ "sessionId": "w" }), "context"),
            (context(Value::Null), "context"),
            (context(json!([])), "context"),
            (context(json!("{}")), "context"),
            (context(json!(7)), "context"),
            (context(json!({ "a": [{ "b": 9_007_199_254_740_993_u64 }] })), "a[0].b"),
            (with(context(json!({})), json!({ "sessionId": "../x" })), "sessionId"),
            (with(context(json!({})), json!({ "sessionId": "a/b" })), "sessionId"),
            (with(context(json!({})), json!({ "sessionId": "%2e%2e" })), "sessionId"),
            (with(context(json!({})), json!({ "sessionId": "" })), "sessionId"),
            (with(context(json!({})), json!({ "sessionId": long })), "sessionId"),
            (with(context(json!({})), json!({ "session_id": "w" })), "session_id"),
            (with(context(json!({})), json!({ "metadata": { "nmae": "x" } })), "nmae"),
            (with(context(json!({})), json!({ "force": "true" })), "force"),
        ];
        for (body, named) in cases {
            let refused = served.refused(SAVE, &body, 400, "invalid_request");
            assert!(refused.to_string().contains(named), "{body}: {refused}");
        }
        let deep =
            format!(r#"{{"sessionId":"w","context":{}1{}}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
        let twice = r#"{"sessionId":"w","context":{"a":{"b":1,"b":2}}}"#;
        let huge = r#"{"sessionId":"w","context":{"a":1e999}}"#;
        for body in ["", "{", twice, &deep, huge, r#"{"context":{}} x"#] {
            refusal(&served.send("POST", SAVE, &[], body.as_bytes()), 400, "invalid_json");
        }
        for path in [
            "/api/checkpoints/load",
            "/api/checkpoints/load?checkpointId=a&sessionId=b",
            "/api/checkpoints/load?checkpointId=..%2Fx",
            "/api/checkpoints/load?sessionId=a%2Fb",
            "/api/checkpoints/load?sessionId=%252e%252e",
            "/api/checkpoints/load?sessionId=w&maxBytes=0",
            "/api/checkpoints/load?sessionId=w&maxBytes=ten",
            "/api/checkpoints/load?sessionId=w&maxBytes=1&maxTokens=1",
            "/api/checkpoints/load?sessionId=w&depth=1",
            "/api/checkpoints/a%2Fb",
            "/api/checkpoints/%252e%252e",
            "/api/checkpoints",
            "/api/checkpoints?sessionId=w&limit=0",
            "/api/checkpoints?sessionId=w&limit=101",
            "/api/checkpoints?sessionId=w&offset=-1",
            "/api/checkpoints/diff",
            "/api/checkpoints/diff?from=a",
            "/api/checkpoints/diff?from=a&to=b&sessionId=w",
            "/api/workflows?limit=0",
            "/api/workflows?repo=nope",
        ] {
            let refused = refusal(&served.get(path), 400, "invalid_request");
            assert!(!refused["message"].as_str().unwrap().is_empty(), "{path}");
        }
        for (path, status, code) in [
            (format!("/api/checkpoints/{UNKNOWN}"), 404, "checkpoint_not_found"),
            ("/api/checkpoints/cp_1".to_owned(), 404, "checkpoint_not_found"),
            (format!("/api/checkpoints/explain?checkpointId={UNKNOWN}"), 404, "checkpoint_not_found"),
            ("/api/checkpoints/load?sessionId=w".to_owned(), 404, "session_not_found"),
            ("/api/checkpoints?sessionId=w".to_owned(), 404, "session_not_found"),
        ] {
            let refused = refusal(&served.get(&path), status, code);
            assert!(refused["hint"].is_string(), "{path}: {refused}");
        }
        assert_eq!(
            served.found("/api/workflows")["workflows"],
            json!([]),
            "invalid requests must store nothing"
        );
    }
}

#[test]
fn oversized_requests_return_413_and_the_server_keeps_serving() {
    let served = Served::sqlite();
    let fits = noise(15 * 1024 * 1024);
    let over = format!(r#"{{"sessionId":"w","context":{{"s":"{fits}{}"}}}}"#, noise(1024 * 1024 + 64));
    let refused = refusal(&served.send("POST", SAVE, &[], over.as_bytes()), 413, "payload_too_large");
    assert_eq!(refused["details"]["allowed_bytes"], 16 * 1024 * 1024, "{refused}");
    let far_over = vec![b' '; 64 * 1024 * 1024];
    refusal(&served.send("POST", SAVE, &[], &far_over), 413, "payload_too_large");
    let elsewhere = served.send("POST", "/sod", &[], &vec![b' '; 2 * 1024 * 1024]);
    refusal(&elsewhere, 413, "payload_too_large");
    assert_eq!(save(&served, "w", &json!({ "a": 1 }))["status"], "SAVED");
}

#[test]
fn a_secret_is_rejected_with_its_path_or_redacted_on_request() {
    for served in Served::each() {
        let secret = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
        let body = json!({ "sessionId": "w", "context": { "env": [{ "aws": secret }] } });
        let refused = served.refused(SAVE, &body, 422, "secret_found");
        assert!(refused.to_string().contains("context.env[0].aws"), "{refused}");
        assert!(!refused.to_string().contains(&secret));
        assert!(refused["hint"].as_str().unwrap().contains("redactSecrets: true"), "{refused}");
        refusal(&served.get("/api/checkpoints?sessionId=w"), 404, "session_not_found");

        let mut redacted = body;
        redacted["redactSecrets"] = true.into();
        served.ok(SAVE, &redacted);
        let shown = served.found("/api/checkpoints/load?sessionId=w");
        assert_eq!(shown["context"]["env"][0]["aws"], "[redacted:aws-access-key]");
    }
}

#[test]
fn a_save_is_executed_once_per_idempotency_key() {
    for served in Served::each() {
        let body = |n: u32| json!({ "sessionId": "w", "context": { "n": n }, "force": true });
        let first = served.keyed(SAVE, "k", &body(1));
        expect(&first, 200);
        for _ in 0..3 {
            let again = served.keyed(SAVE, "k", &body(1));
            assert_eq!((again.status, &again.text), (200, &first.text));
            assert_eq!(again.header("x-idempotency-hit"), Some("true"));
        }
        refusal(&served.keyed(SAVE, "k", &body(2)), 422, "idempotency_mismatch");
        served.keyed(SAVE, "other", &body(1));
        assert_eq!(served.found("/api/checkpoints?sessionId=w")["checkpoints"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_large_context_is_stored_as_a_private_blob() {
    let served = Served::sqlite();
    let context = json!({ "s": noise(5 * 1024 * 1024) });
    let saved = save(&served, "w", &context);
    let blobs = served.home.data_dir().join("blobs");
    let files: Vec<_> = std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&blobs), mode(&files[0])), (0o700, 0o600));
    assert_eq!(std::fs::metadata(&files[0]).unwrap().len(), saved["storedBytes"].as_u64().unwrap());
    let loaded = served.found(&format!("/api/checkpoints/{}", id(&saved["checkpointId"])));
    assert!(loaded["context"] == context, "the context must be returned unchanged");
    std::fs::remove_file(&files[0]).unwrap();
    let lost = refusal(&served.get("/api/checkpoints/load?sessionId=w"), 410, "checkpoint_corrupt");
    assert_eq!(lost["details"]["newestReadable"], Value::Null);
    assert!(
        !lost.to_string().contains(served.home.path().to_str().unwrap()),
        "an error must not contain local paths: {lost}"
    );
    assert_eq!(save(&served, "w", &json!({ "a": 1 }))["status"], "SAVED");
}

#[test]
fn every_interface_warns_that_the_latest_loadable_checkpoint_is_older_than_a_damaged_one() {
    let served = Served::sqlite();
    let older = save(&served, "w", &json!({ "step": 1 }));
    let newer = save(&served, "w", &json!({ "s": noise(1024 * 1024) }));
    let blobs = served.home.data_dir().join("blobs");
    let blob = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&blob, b"damaged").unwrap();
    refusal(&served.get("/api/checkpoints/load?sessionId=w"), 410, "checkpoint_corrupt");
    let assert_warned = |loaded: &Value| {
        assert_eq!(loaded["checkpointId"], older["checkpointId"]);
        assert_eq!(loaded["newerDamaged"], json!([newer["checkpointId"]]), "{loaded}");
        assert!(loaded["warning"].as_str().unwrap().contains("older checkpoint"), "{loaded}");
    };
    let mut mcp = served.home.mcp();
    for budget in [Value::Null, json!(10_000)] {
        let query = if budget.is_null() { "" } else { "&maxTokens=10000" };
        assert_warned(&served.found(&format!("/api/checkpoints/load?sessionId=w{query}")));
        let arguments = json!({ "sessionId": "w", "maxTokens": budget });
        assert_warned(&tool_answer(&mcp.call("workflow_checkpoint_load", &arguments)));
        let mut arguments = vec!["checkpoint", "load", "--session", "w"];
        if !budget.is_null() {
            arguments.extend(["--max-tokens", "10000"]);
        }
        let shown = served.home.run(&arguments);
        assert!(shown.stderr.contains("older checkpoint"), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), json!({ "step": 1 }));
        arguments.extend(["--format", "json"]);
        assert_warned(&served.home.run(&arguments).json()["data"]);
    }
}
