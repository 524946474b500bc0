//! Input validation and error bodies that all interfaces share: integers, invalid fields, the order of fields in an
//! error.

use serde_json::{Value, json};

use crate::served::{Served, expect, refusal, who, with};

fn fields(refused: &Value) -> Vec<&str> {
    let fields = refused["details"]["fields"].as_array().unwrap();
    fields.iter().map(|field| field["field"].as_str().unwrap()).collect()
}

/// Returns the text of a tool error.
fn text(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn error_bodies_begin_with_the_code_and_the_message() {
    let served = Served::sqlite();
    let answer = served.post("/sod", &json!({}));
    assert_eq!(answer.status, 400);
    assert!(answer.text.starts_with(r#"{"error":"invalid_request","message":""#), "{}", answer.text);
    let unauthorized = served.send("GET", "/active?venture=v", &[("x-relay-key", "wrong")], b"");
    assert!(unauthorized.text.starts_with(r#"{"error":"unauthorized","message":""#), "{}", unauthorized.text);
    let mut mcp = served.home.mcp();
    let refused = text(&mcp.call("session_start", &json!({ "track": "none" })));
    assert!(refused.starts_with(r#"{"code":"INVALID_REQUEST","message":""#), "{refused}");
    for arguments in [
        ["handoff", "show", "nothing", "--format", "json"],
        ["handoff", "show", "--nothing", "--format", "json"],
    ] {
        let shown = served.home.run(&arguments).stdout;
        assert!(shown.starts_with(r#"{"success":false,"data":null,"error":{"code":""#), "{shown}");
        assert!(shown.split(',').nth(3).unwrap().starts_with(r#""message":"#), "{shown}");
    }
}

#[test]
fn integral_floats_are_accepted_as_integers_and_others_are_not() {
    for served in Served::each() {
        let started = served.ok("/sod", &with(who("a"), json!({ "track": 2.0 })));
        assert_eq!(started["session"]["track"], 2);
        let raw = br#"{"agent":"a","venture":"v","repo":"o/r","track":1e2}"#;
        assert_eq!(expect(&served.send("POST", "/sod", &[], raw), 200)["session"]["track"], 100);
        for path in ["/active?venture=v&limit=1.0", "/active?venture=v&limit=1e0"] {
            assert_eq!(served.found(path)["sessions"].as_array().unwrap().len(), 1, "{path}");
        }
        for track in [json!(1.5), json!(1e300), json!("2.0")] {
            let refused =
                served.refused("/sod", &with(who("a"), json!({ "track": track })), 400, "invalid_request");
            assert_eq!(fields(&refused), ["track"]);
        }
        refusal(&served.get("/active?venture=v&limit=1.5"), 400, "invalid_request");
        let payload = json!({ "ratio": 1.0 });
        let context = json!({ "sessionId": "w", "context": payload });
        served.ok("/api/checkpoints", &context);
        assert_eq!(served.found("/api/checkpoints/load?sessionId=w")["context"], json!({ "ratio": 1 }));
    }
    let served = Served::sqlite();
    let mut mcp = served.home.mcp();
    let saved = json!({ "sessionId": "w", "context": { "a": 1 } });
    assert_ne!(mcp.call("workflow_checkpoint_save", &saved)["isError"], true);
    let load = |budget: Value| json!({ "sessionId": "w", "maxBytes": budget });
    let loaded = mcp.call("workflow_checkpoint_load", &load(json!(1000.0)));
    assert_eq!(loaded["structuredContent"]["view"]["budgetBytes"], 1000, "{loaded}");
    assert!(text(&mcp.call("workflow_checkpoint_load", &load(json!(1.5)))).contains("maxBytes"));
}

#[test]
fn every_invalid_field_is_reported_at_once() {
    for served in Served::each() {
        let body = json!({ "agent": "not a name", "venture": 7, "track": "x", "repo": "o/r" });
        let refused = served.refused("/sod", &body, 400, "invalid_request");
        assert_eq!(fields(&refused), ["agent", "track", "venture"], "{refused}");
        let refused = served.refused("/sod", &json!({ "track": "x" }), 400, "invalid_request");
        assert_eq!(fields(&refused), ["track", "agent", "repo"], "{refused}");
        let refused = served.refused("/sod", &json!({ "agent": "a" }), 400, "invalid_request");
        assert_eq!((fields(&refused), &refused["message"]), (vec!["repo"], &json!("repo: is missing")));
        let refused = refusal(&served.get("/active?limit=0&cursor=nonsense"), 400, "invalid_request");
        assert_eq!(fields(&refused), ["venture", "limit", "cursor"], "{refused}");
        let refused =
            refusal(&served.get("/active?venture=v&limit=x&stale=maybe&track=y"), 400, "invalid_request");
        assert!(fields(&refused).contains(&"limit"), "{refused}");
    }
    let served = Served::sqlite();
    let refused: Value = serde_json::from_str(&text(
        &served.home.mcp().call("session_start", &json!({ "agent": "not a name", "repo": 1 })),
    ))
    .unwrap();
    assert_eq!(fields(&refused), ["agent", "repo"]);
}

#[test]
fn fields_outside_their_limits_are_reported_together_with_wrong_types() {
    let tags: Vec<String> = (0..33).map(|number| format!("tag-{number}")).collect();
    let checkpoint = json!({ "sessionId": 7, "context": {}, "metadata": { "tags": tags } });
    let note = json!({ "text": "x".repeat(2_001), "kind": 7, "repo": "o/r", "venture": "v" });
    let end = json!({ "session_id": 3, "handoff": { "status_label": "", "blockers": "none" } });
    let end_fields = ["session_id", "handoff.summary", "handoff.blockers", "handoff.status_label"];
    for served in Served::each() {
        let refused = served.refused("/api/checkpoints", &checkpoint, 400, "invalid_request");
        assert_eq!(fields(&refused), ["sessionId", "metadata.tags"], "{refused}");
        let refused = served.refused("/api/notes", &note, 400, "invalid_request");
        assert_eq!(fields(&refused), ["kind", "text"], "{refused}");
        let refused = served.refused("/eod", &end, 400, "invalid_request");
        assert_eq!(fields(&refused), end_fields, "{refused}");
        let refused =
            refusal(&served.get("/active?venture=v&limit=500&track=x&stale=maybe"), 400, "invalid_request");
        assert!(["limit", "track"].iter().all(|field| fields(&refused).contains(field)), "{refused}");
    }
    let served = Served::sqlite();
    let mut mcp = served.home.mcp();
    for (tool, arguments, expected) in [
        ("workflow_checkpoint_save", &checkpoint, &["sessionId", "metadata.tags"][..]),
        ("note", &note, &["kind", "text"]),
        ("session_end", &end, &end_fields),
    ] {
        let refused: Value = serde_json::from_str(&text(&mcp.call(tool, arguments))).unwrap();
        assert_eq!(fields(&refused), expected, "{refused}");
    }
}
