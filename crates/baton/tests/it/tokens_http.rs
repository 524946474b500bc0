//! Access tokens: created, listed and revoked locally, and limited to their scope on every route.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use baton_testkit::binary::{Answer, Home};
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::served::{Served, expect, id, names, refusal, who, with};

/// Creates a token with `baton token create` and returns it with its description.
pub(crate) fn token(home: &Home, arguments: &[&str]) -> (String, Value) {
    let made = home.run(&[&["token", "create", "--format", "json"], arguments].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let data = made.json()["data"].clone();
    assert_eq!(names(&data), ["info", "token"].into());
    (id(&data["token"]), data["info"].clone())
}

fn by(served: &Served, token: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    static KEYS: AtomicU32 = AtomicU32::new(0);
    let key = format!("key-{}", KEYS.fetch_add(1, Ordering::Relaxed));
    let bearer = format!("Bearer {token}");
    // The test client omits its own key if this header is present, in any case.
    let mut headers = vec![("X-Relay-Key", token), ("authorization", bearer.as_str())];
    if method == "POST" {
        headers.push(("idempotency-key", key.as_str()));
    }
    served.send(method, path, &headers, body.map(Value::to_string).unwrap_or_default().as_bytes())
}

/// A request of a documented operation on records of venture `b`.
struct VentureRequest {
    method: &'static str,
    path: String,
    body: Option<Value>,
}

/// Texts that occur only in records of venture `b`.
const VENTURE_B_TEXTS: [&str; 7] = [
    "b-only-branch",
    "b-only-summary",
    "b-only-meta",
    "b-only-blocker",
    "b-only-goal",
    "b-only-tag",
    "b-only-tool",
];

/// Routes that require access to all ventures.
const REQUIRE_ALL_VENTURES: [&str; 5] =
    ["/api/queue/stats", "/api/queue/retry", "/api/queue/purge", "/api/health", "/api/agents"];

/// Routes that omit records of other ventures.
const OMIT_OTHER_VENTURES: [&str; 4] = ["/api/queue", "/api/requests", "/api/search", "/api/ids"];

/// Records that were stored in venture `b`.
struct VentureRecords {
    session_id: String,
    handoff_id: String,
    workflow_id: String,
    checkpoint_ids: [String; 2],
    observation_id: String,
    turn_id: String,
    note_id: String,
}

/// Stores a session, a handoff, a workflow with two checkpoints and an observation in venture `b`.
fn fill_venture_b(served: &Served) -> VentureRecords {
    static WORKFLOWS: AtomicU32 = AtomicU32::new(0);
    let start = json!({
        "agent": "b-agent", "venture": "b", "repo": "b/repo", "branch": "b-only-branch", "meta": { "m": "b-only-meta" },
    });
    let session_id = id(&served.ok("/sod", &start)["session_id"]);
    let handoff = json!({ "summary": "b-only-summary", "blockers": ["b-only-blocker"] });
    let left = served.ok("/handoffs", &json!({ "session_id": session_id, "handoff": handoff }));
    let workflow_id = format!("flow-{}", WORKFLOWS.fetch_add(1, Ordering::Relaxed));
    let checkpoint_ids = [1, 2].map(|step| {
        let saved = served.ok(
            "/api/checkpoints",
            &json!({
                "sessionId": workflow_id, "venture": "b", "context": { "goal": "b-only-goal", "step": step },
                "metadata": { "tags": ["b-only-tag"] },
            }),
        );
        id(&saved["checkpointId"])
    });
    let observation_id = observe_in_venture_b(served, &workflow_id);
    let turn_id = ask_in_venture_b(served, &workflow_id);
    let task = json!({ "task_id": "TASK-1", "host": "b-host", "checkout": "/b", "venture": "b", "status": "waiting",
        "title": "b-only-goal" });
    served.ok("/api/tasks", &task);
    let note = json!({ "session_id": session_id, "text": "b-only-note" });
    let note_id = id(&served.ok("/api/notes", &note)["note"]["id"]);
    VentureRecords {
        session_id,
        handoff_id: id(&left["handoff_id"]),
        workflow_id,
        checkpoint_ids,
        observation_id,
        turn_id,
        note_id,
    }
}

/// Reports a request of the user to venture `b` and returns its turn.
fn ask_in_venture_b(served: &Served, chat: &str) -> String {
    let report = json!({
        "session_id": chat, "venture": "b", "repo": "b/repo", "agent": "b-observer", "prompt": "b-only-goal",
    });
    served.ok("/hooks/user-prompt-submit", &report);
    let sessions = served.found("/active?venture=b&agent=b-observer&limit=200")["sessions"].clone();
    let of_chat = |session: &&Value| session["client_session_id"] == chat;
    let session = id(&sessions.as_array().unwrap().iter().find(of_chat).unwrap()["id"]);
    id(&served.found(&format!("/api/turns?session_id={session}"))["turns"][0]["id"])
}

/// Reports a tool use to venture `b` and waits until the worker has created its observation.
fn observe_in_venture_b(served: &Served, chat: &str) -> String {
    let report = json!({
        "session_id": chat, "venture": "b", "repo": "b/repo", "agent": "b-observer", "tool_name": "b-only-tool",
        "tool_response": "done",
    });
    let before =
        served.found("/api/observations?venture=b&limit=200")["observations"].as_array().unwrap().len();
    served.ok("/hooks/post-tool-use", &report);
    let list = || served.found("/api/observations?venture=b&limit=200")["observations"].clone();
    wait_until("the worker makes an observation", || list().as_array().unwrap().len() > before);
    id(&list()[0]["id"])
}

/// Returns requests of a documented operation: for a write, its example changed to venture `b`; for a read, all
/// queries.
fn requests(path: &str, method: &str, operation: &Value, records: &VentureRecords) -> Vec<VentureRequest> {
    let VentureRecords {
        session_id,
        handoff_id,
        workflow_id,
        checkpoint_ids: [earlier, later],
        observation_id,
        turn_id,
        note_id,
    } = records;
    let wanted = path
        .replace("{observation_id}", observation_id)
        .replace("{turn_id}", turn_id)
        .replace("{note_id}", note_id)
        .replace("{event}", "post-tool-use")
        .replace("{session_id}", session_id)
        .replace("{handoff_id}", handoff_id)
        .replace("{checkpointId}", earlier);
    assert!(!wanted.contains('{'), "a new kind of path needs a value here: {path}");
    match method {
        "post" => {
            let mut body = operation["requestBody"]["content"]["application/json"]["example"].clone();
            assert!(body.is_object(), "{path} has no example");
            for (name, value) in [
                ("session_id", session_id.as_str()),
                ("sessionId", workflow_id),
                ("venture", "b"),
                ("repo", "b/repo"),
                ("agent", "b-agent"),
                ("id", note_id),
                ("by", observation_id),
            ] {
                if body.get(name).is_some() {
                    body[name] = value.into();
                }
            }
            return vec![VentureRequest { method: "POST", path: wanted, body: Some(body) }];
        }
        "delete" => return vec![VentureRequest { method: "DELETE", path: wanted, body: None }],
        other => assert_eq!(other, "get", "a new kind of method needs a request here"),
    }
    let latest = format!("sessionId={workflow_id}&venture=b");
    let queries = match path {
        "/active" => vec!["venture=b".into(), "repo=b/repo".into(), "agent=b-agent".into()],
        "/handoffs" | "/handoffs/latest" | "/api/workflows" | "/api/observations" | "/api/tasks"
        | "/api/notes" | "/api/memory" | "/sessions" | "/api/overview" | "/api/activity" => {
            vec!["venture=b".into()]
        }
        "/api/tasks/show" => vec!["id=b/TASK-1@b-host:/b".into()],
        "/api/context" => vec!["venture=b&repo=b/repo".into()],
        "/api/ids" => vec![format!("prefix={}", &session_id[..session_id.len() - 1])],
        "/api/queue" => vec!["status=done".into()],
        "/api/search" => vec!["q=b-only-summary+b-only-goal".into()],
        "/api/timeline" => vec![format!("id={turn_id}")],
        "/api/items" => vec![format!("ids={observation_id}"), format!("ids={turn_id},{handoff_id}")],
        "/api/turns" => vec![format!("session_id={session_id}")],
        "/api/checkpoints" => vec![latest],
        "/api/checkpoints/load" | "/api/checkpoints/explain" => {
            vec![format!("checkpointId={earlier}"), latest]
        }
        "/api/checkpoints/diff" => vec![format!("from={earlier}&to={later}"), latest],
        _ => vec![String::new()],
    };
    let paths = queries.iter().map(|query| format!("{wanted}?{query}"));
    paths.map(|path| VentureRequest { method: "GET", path, body: None }).collect()
}

/// Returns every documented operation on stored records.
fn operations(served: &Served) -> Vec<(String, String, Value)> {
    let document = served.found("/openapi.json");
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"] != json!(["server"]) {
                found.push((path.clone(), method.clone(), operation.clone()));
            }
        }
    }
    assert!(found.len() >= 34, "every route must be found");
    found
}

#[test]
fn a_token_cannot_read_or_change_another_venture_on_any_route() {
    for served in Served::each() {
        let (outsider, _) = token(&served.home, &["--name", "outsider", "--venture", "a"]);
        let (insider, _) = token(&served.home, &["--name", "insider", "--venture", "a", "--venture", "b"]);
        let mut records = fill_venture_b(&served);
        for (path, method, operation) in operations(&served) {
            let look = || {
                [
                    format!("/sessions/{}", records.session_id),
                    format!("/handoffs/{}", records.handoff_id),
                    "/handoffs?venture=b".into(),
                    format!("/api/checkpoints?sessionId={}&venture=b", records.workflow_id),
                    "/api/workflows?venture=b".into(),
                ]
                .map(|path| served.found(&path))
            };
            for VentureRequest { method, path, body } in requests(&path, &method, &operation, &records) {
                let before = look();
                let answer = by(&served, &outsider, method, &path, body.as_ref());
                for secret in VENTURE_B_TEXTS {
                    assert!(!answer.text.contains(secret), "{method} {path}: {}", answer.text);
                }
                let route = path.split('?').next().unwrap();
                if OMIT_OTHER_VENTURES.contains(&route) {
                    expect(&answer, 200);
                    continue;
                }
                if REQUIRE_ALL_VENTURES.contains(&route) {
                    refusal(&answer, 403, "forbidden");
                    continue;
                }
                if path.starts_with("/active?") && !path.contains("venture=") {
                    assert_eq!(expect(&answer, 200)["sessions"], json!([]), "{path}");
                } else {
                    assert!([403, 404].contains(&answer.status), "{method} {path}: {}", answer.text);
                }
                assert_eq!(look(), before, "{method} {path} changed something");
                // The same request succeeds with access to both ventures.
                expect(&by(&served, &insider, method, &path, body.as_ref()), 200);
            }
            if method != "get" {
                records = fill_venture_b(&served);
            }
        }
    }
}

#[test]
fn a_read_only_token_cannot_write_on_any_route() {
    for served in Served::each() {
        let (reader, _) = token(&served.home, &["--name", "reader", "--access", "read"]);
        let records = fill_venture_b(&served);
        for (path, method, operation) in operations(&served) {
            let look = || {
                [
                    format!("/sessions/{}", records.session_id),
                    format!("/api/checkpoints?sessionId={}&venture=b", records.workflow_id),
                ]
                .map(|path| served.found(&path))
            };
            for VentureRequest { method, path, body } in requests(&path, &method, &operation, &records) {
                let before = look();
                let answer = by(&served, &reader, method, &path, body.as_ref());
                if method != "GET" {
                    refusal(&answer, 403, "forbidden");
                    assert_eq!(look(), before, "{path}");
                } else {
                    expect(&answer, 200);
                }
            }
        }
        let held = served.found("/handoffs?venture=b&limit=200")["handoffs"].as_array().unwrap().len();
        assert_eq!(held, 1, "only handoffs of the relay key may exist");
    }
}

#[test]
fn without_a_credential_only_service_endpoints_are_available() {
    let served = Served::sqlite();
    let document = served.found("/openapi.json");
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = ["{session_id}", "{handoff_id}", "{checkpointId}", "{observation_id}", "{event}"]
            .into_iter()
            .fold(path.clone(), |path, name| path.replace(name, "x"));
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let open = operation["security"] == json!([]);
            for header in [("x-relay-key", ""), ("X-Relay-Key", "wrong")] {
                let answer =
                    served.send(&method, &path, &[header], if method == "POST" { b"{}" } else { b"" });
                assert_eq!(answer.status, if open { 200 } else { 401 }, "{method} {path}");
                assert!(answer.header("x-correlation-id").is_some());
            }
        }
    }
    // Without a credential, unknown paths and methods also return 401.
    refusal(&served.send("GET", "/nothing", &[("x-relay-key", "wrong")], b""), 401, "unauthorized");
    refusal(&served.send("DELETE", "/sod", &[("x-relay-key", "wrong")], b""), 401, "unauthorized");
}

#[test]
fn a_server_rejects_a_revoked_token() {
    for served in Served::each() {
        let (credential, info) = token(&served.home, &["--name", "short lived"]);
        let call = || by(&served, &credential, "POST", "/sod", Some(&who("a")));
        expect(&call(), 200);
        let token_id = id(&info["id"]);
        let revoked = served.home.run(&["token", "revoke", &token_id, "--format", "json"]);
        assert!(revoked.json()["data"]["info"]["revoked_at"].is_string(), "{revoked:?}");
        // A server checks a token again after two seconds; that time is tested with a clock in baton-app.
        wait_until("the server rejects the token", || call().status != 200);
        refusal(&call(), 401, "unauthorized");
        let again = served.home.run(&["token", "revoke", &token_id, "--format", "json"]).json();
        assert_eq!(again["data"], revoked.json()["data"], "revoking again must have no effect");
        assert_eq!(served.home.run(&["token", "revoke", "0123456789abcdef"]).code, 3);
        assert_eq!(served.home.run(&["token", "revoke", "x"]).code, 3);
    }
}

#[test]
fn a_token_must_match_completely() {
    let served = Served::sqlite();
    let (one, _) = token(&served.home, &["--name", "one", "--venture", "a"]);
    let (two, _) = token(&served.home, &["--name", "two", "--venture", "b"]);
    let (one_id, two_secret) = (&one[..20], &two[20..]);
    for wrong in [
        format!("{one_id}{two_secret}"),
        one[..one.len() - 1].to_owned(),
        format!("{one}0"),
        one.to_uppercase(),
    ] {
        refusal(&by(&served, &wrong, "GET", "/active?venture=a", None), 401, "unauthorized");
    }
    expect(&by(&served, &one, "GET", "/active?venture=a", None), 200);
    let started =
        expect(&by(&served, &one, "POST", "/sod", Some(&with(who("a"), json!({ "venture": "a" })))), 200);
    let key_id = baton_core::ActorKeyId::of(&one);
    assert_eq!(started["session"]["actor_key_id"], key_id.as_str());
}

#[test]
fn token_list_contains_everything_but_the_secret() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    assert_eq!(home.run(&["token", "list", "--format", "json"]).json()["data"], json!({ "tokens": [] }));
    let (first, plain) = token(&home, &["--name", "plain ☕"]);
    let expected = json!({
        "id": &first[3..19], "name": "plain ☕", "access": "write", "ventures": null,
        "created_at": plain["created_at"], "expires_at": null, "revoked_at": null,
    });
    assert_eq!(plain, expected);
    let (second, narrow) = token(
        &home,
        &[
            "--name",
            "narrow",
            "--access",
            "read",
            "--venture",
            "a",
            "--venture",
            "b",
            "--expires-in-days",
            "30",
        ],
    );
    assert_eq!((&narrow["access"], &narrow["ventures"]), (&"read".into(), &json!(["a", "b"])));
    assert!(narrow["expires_at"].is_string());
    let listed = home.run(&["token", "list", "--format", "json"]);
    assert_eq!(listed.json()["data"]["tokens"], json!([narrow, plain]), "newest first");
    let shown = home.run(&["token", "list"]);
    for credential in [&first, &second] {
        let secret = &credential[20..];
        assert_eq!(secret.len(), 64);
        assert!(!listed.stdout.contains(secret) && !shown.stdout.contains(secret));
        assert!(!contains_bytes(home.path(), secret.as_bytes()), "the secret is in a file");
        assert!(
            contains_bytes(home.path(), &credential.as_bytes()[3..19]),
            "the search must find existing text"
        );
    }
    for (arguments, code) in [
        (&["--name", "x", "--venture", "a b"][..], 7),
        (&["--name", "", "--venture", "a"][..], 7),
        (&["--name", "x", "--expires-in-days", "0"][..], 7),
        (&["--name", "x", "--access", "admin"][..], 2),
    ] {
        let made = home.run(&[&["token", "create"], arguments].concat());
        assert_eq!(made.code, code, "{arguments:?} {made:?}");
    }
}

#[test]
fn a_used_token_leaves_its_secret_in_no_file() {
    let served = Served::sqlite();
    let (credential, info) = token(&served.home, &["--name", "served"]);
    expect(&by(&served, &credential, "POST", "/sod", Some(&who("a"))), 200);
    refusal(&by(&served, &credential, "POST", "/eod", Some(&json!({}))), 400, "invalid_request");
    assert!(contains_bytes(&served.home.data_dir(), id(&info["id"]).as_bytes()));
    for secret in [&credential[20..], &credential[..]] {
        assert!(!contains_bytes(served.home.path(), secret.as_bytes()));
    }
}

/// Returns true if any file below a folder contains these bytes.
fn contains_bytes(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contains_bytes(&path, bytes)
        } else {
            std::fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes)
        }
    })
}

#[test]
fn a_token_of_one_venture_implies_that_venture() {
    for served in Served::each() {
        let (mine, _) = token(&served.home, &["--name", "one", "--venture", "mine"]);
        let (two, _) = token(&served.home, &["--name", "two", "--venture", "mine", "--venture", "other"]);
        let start = json!({ "agent": "a", "repo": "o/r" });
        let started = expect(&by(&served, &mine, "POST", "/sod", Some(&start)), 200);
        assert_eq!(started["session"]["venture"], "mine");
        let handoff = json!({ "session_id": started["session_id"], "summary": "s", "status_label": "done" });
        expect(&by(&served, &mine, "POST", "/eod", Some(&handoff)), 200);
        let listed = expect(&by(&served, &mine, "GET", "/handoffs", None), 200);
        assert_eq!(listed["handoffs"].as_array().unwrap().len(), 1, "{listed}");
        expect(&by(&served, &mine, "GET", "/active", None), 200);
        let save = json!({ "sessionId": "w", "context": { "a": 1 } });
        expect(&by(&served, &mine, "POST", "/api/checkpoints", Some(&save)), 200);
        let loaded = expect(&by(&served, &mine, "GET", "/api/checkpoints/load?sessionId=w", None), 200);
        assert_eq!(loaded["metadata"]["venture"], "mine");
        let elsewhere = with(start.clone(), json!({ "venture": "local" }));
        refusal(&by(&served, &mine, "POST", "/sod", Some(&elsewhere)), 403, "forbidden");
        refusal(&by(&served, &two, "POST", "/sod", Some(&start)), 403, "forbidden");
        refusal(&by(&served, &two, "GET", "/handoffs", None), 400, "invalid_request");
    }
}
