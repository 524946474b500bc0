//! Writes while the store is unavailable: keys, retries, reads of the outbox and what a new chat receives afterwards.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use baton_app::{App, RequestLog, Settings};
use baton_core::{Access, Actor, VentureScope};
use baton_store::{Outbox, PostgresTimeouts, Store, StoreConfig, StoreError, Target, Threads};
use baton_testkit::postgres::TestDatabase;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{FixedEntropy, Stage, ok, operation, refused};

/// A stage whose processes share an outbox.
pub(crate) struct Outage {
    pub(crate) stage: Stage,
    folder: TempDir,
}

impl Outage {
    pub(crate) fn new() -> Self {
        Self { stage: Stage::sqlite(), folder: tempfile::tempdir().unwrap() }
    }

    fn outbox(&self) -> Outbox {
        Outbox::at(self.folder.path().join("spill"), Some(Target::server("here")))
    }

    fn app_on(&self, store: Store) -> App {
        let settings = Settings { outbox: Some(self.outbox()), ..self.stage.app.settings().clone() };
        let entropy = FixedEntropy::default();
        App::new(store, settings, self.stage.clock.clone(), entropy, RequestLog::at_end())
    }

    /// Returns a process that has the outbox and no database.
    pub(crate) fn without_database(&self) -> App {
        // A folder cannot be opened as a database.
        let config = StoreConfig::Sqlite { path: self.folder.path().to_owned(), threads: Threads::Caller };
        self.app_on(Store::open_later(&config, &StoreError::Closed))
    }

    /// Returns a process that has the outbox and the database.
    pub(crate) fn recovered(&self) -> App {
        self.stage.beside(|settings| settings.outbox = Some(self.outbox()))
    }

    pub(crate) fn call(&self, app: &App, name: &str, params: Value) -> Value {
        ok(&app.call_blocking(operation(name), self.stage.envelope(None), params))
    }

    fn keyed(&self, app: &App, key: &str, name: &str, params: Value) -> baton_app::Reply {
        app.call_blocking(operation(name), self.stage.envelope(Some(key)), params)
    }

    /// Changes the first line of each file.
    fn edit_files(&self, edit: impl Fn(&mut Value)) {
        for entry in std::fs::read_dir(self.outbox().folder()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            let mut head: Value = serde_json::from_slice(&bytes[..end]).unwrap();
            edit(&mut head);
            std::fs::write(&path, [head.to_string().as_bytes(), &bytes[end..]].concat()).unwrap();
        }
    }
}

fn note(text: &str) -> Value {
    json!({ "text": text, "repo": "o/r" })
}

fn texts(listed: &Value) -> Vec<&str> {
    listed["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect()
}

fn save(step: u32) -> Value {
    json!({ "sessionId": "s", "context": { "step": step } })
}

#[test]
fn key_of_another_request_in_the_outbox_is_rejected() {
    let outage = Outage::new();
    let app = outage.without_database();
    for (name, first, second) in
        [("note.create", note("A"), note("B")), ("checkpoint.save", save(1), save(2))]
    {
        let stored = ok(&outage.keyed(&app, "K", name, first.clone()));
        assert_eq!(stored["degraded"], true);
        refused(&outage.keyed(&app, "K", name, second), "idempotency_mismatch");
        assert_eq!(ok(&outage.keyed(&app, "K", name, first)), stored, "a retry returns the same response");
    }
    assert_eq!(app.spooled_writes(), 2);
}

#[test]
fn retry_after_recovery_returns_the_note_of_the_outbox() {
    let outage = Outage::new();
    let (app, recovered) = (outage.without_database(), outage.recovered());
    let ventures = VentureScope::Only(vec!["v".parse().unwrap()]);
    let limited = Actor { access: Access::Write, ventures, ..Actor::shared("key") };
    let requests = [
        ("null", Actor::shared("key"), json!({ "text": "null", "repo": "o/r", "agent": null })),
        ("unknown", Actor::shared("key"), json!({ "text": "unknown field", "repo": "o/r", "colour": "red" })),
        ("limited", limited, note("token of one venture")),
    ];
    let call = |app: &App, key: &str, actor: &Actor, params: &Value| {
        let call = baton_app::Call { actor: actor.clone(), ..outage.stage.envelope(Some(key)) };
        ok(&app.call_blocking(operation("note.create"), call, params.clone()))["note"]["id"].clone()
    };
    for (key, actor, params) in &requests {
        let id = call(&app, key, actor, params);
        assert_eq!(call(&recovered, key, actor, params), id, "{key}");
    }
    assert_eq!(texts(&outage.call(&recovered, "note.list", json!({}))).len(), requests.len());
}

#[test]
fn retry_after_recovery_does_not_save_a_checkpoint_again() {
    let outage = Outage::new();
    let mut stale = save(1);
    stale["force"] = true.into();
    let first = ok(&outage.keyed(&outage.without_database(), "K", "checkpoint.save", stale.clone()));
    let recovered = outage.recovered();
    outage.call(&recovered, "checkpoint.save", save(2));
    let retried = ok(&outage.keyed(&recovered, "K", "checkpoint.save", stale));
    assert_eq!(retried["checkpointId"], first["checkpointId"]);
    let latest = outage.call(&recovered, "checkpoint.load", json!({ "sessionId": "s" }));
    assert_eq!(latest["context"]["step"], 2);
    let listed = outage.call(&recovered, "checkpoint.list", json!({ "sessionId": "s" }));
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2);
}

#[test]
fn files_of_older_versions_are_replayed() {
    let outage = Outage::new();
    let app = outage.without_database();
    let noted = ok(&outage.keyed(&app, "K", "note.create", note("A")));
    let saved = ok(&outage.keyed(&app, "K", "checkpoint.save", save(1)));
    outage.edit_files(|head| drop(head.as_object_mut().unwrap().remove("request_hash").unwrap()));
    let recovered = outage.recovered();
    let shown = outage.call(&recovered, "note.show", json!({ "note_id": noted["note"]["id"] }));
    assert_eq!(shown["note"], noted["note"]);
    let loaded = outage.call(&recovered, "checkpoint.load", json!({ "checkpointId": saved["checkpointId"] }));
    assert_eq!((&loaded["context"]["step"], &loaded["degraded"]), (&1.into(), &false.into()));
    assert_eq!(recovered.spooled_writes(), 0);
}

#[test]
fn notes_in_the_outbox_are_shown_and_listed() {
    let outage = Outage::new();
    outage.call(&outage.recovered(), "note.create", note("stored"));
    let app = outage.without_database();
    let listed = app.call_blocking(operation("note.list"), outage.stage.envelope(None), json!({}));
    refused(&listed, "store_unavailable");
    // A checkpoint whose key is not available blocks the outbox.
    outage.call(&app, "checkpoint.save", save(1));
    outage.edit_files(|head| head["params"]["key_id"] = "missing".into());
    let gotcha = json!({ "text": "second", "repo": "o/r", "kind": "gotcha", "agent": "a" });
    outage.call(&app, "note.create", note("first"));
    let second = outage.call(&app, "note.create", gotcha)["note"].clone();
    let shown = outage.call(&app, "note.show", json!({ "note_id": second["id"] }));
    assert_eq!(shown["note"], second);
    let list = |app: &App, filter: Value| outage.call(app, "note.list", filter);
    assert_eq!(texts(&list(&app, json!({ "repo": "o/r" }))), ["second", "first"]);
    assert_eq!(texts(&list(&app, json!({ "kind": "gotcha" }))), ["second"]);
    assert!(texts(&list(&app, json!({ "repo": "o/other" }))).is_empty());
    let page = list(&app, json!({ "limit": 1 }));
    assert_eq!(texts(&page), ["second"]);
    let next = json!({ "limit": 1, "cursor": page["pagination"]["next_cursor"] });
    assert_eq!(texts(&list(&app, next)), ["first"]);

    let recovered = outage.recovered();
    assert_eq!(texts(&list(&recovered, json!({}))), ["second", "first", "stored"]);
    assert_eq!(recovered.spooled_writes(), 3);
    outage.edit_files(|head| {
        if let Some(key_id) = head["params"].get_mut("key_id") {
            key_id.take();
        }
    });
    assert_eq!(texts(&list(&recovered, json!({}))), ["second", "first", "stored"]);
    assert_eq!(recovered.spooled_writes(), 0);
}

#[test]
fn note_of_the_outbox_whose_id_was_taken_is_stored_with_another_id() {
    let outage = Outage::new();
    let (app, recovered) = (outage.without_database(), outage.recovered());
    let stored = outage.call(&recovered, "note.create", note("of another process"));
    ok(&outage.keyed(&app, "K", "note.create", note("of the outbox")));
    outage.edit_files(|head| head["params"]["note_id"] = stored["note"]["id"].clone());
    let listed = outage.call(&recovered, "note.list", json!({}));
    let mut found = texts(&listed);
    found.sort_unstable();
    assert_eq!(found, ["of another process", "of the outbox"]);
    let retried = ok(&outage.keyed(&recovered, "K", "note.create", note("of the outbox")));
    assert_eq!(retried["note"]["text"], "of the outbox");
    assert_ne!(retried["note"]["id"], stored["note"]["id"]);
}

#[test]
fn note_of_another_venture_in_the_outbox_is_not_visible() {
    let outage = Outage::new();
    let app = outage.without_database();
    let secret = outage.call(&app, "note.create", json!({ "text": "x", "repo": "o/r", "venture": "other" }));
    let ventures = VentureScope::Only(vec!["v".parse().unwrap()]);
    let call = |name: &str, params: Value| {
        let actor = Actor { ventures: ventures.clone(), ..Actor::shared("key") };
        let call = baton_app::Call { actor, ..outage.stage.envelope(None) };
        app.call_blocking(operation(name), call, params)
    };
    refused(&call("note.list", json!({})), "store_unavailable");
    refused(&call("note.show", json!({ "note_id": secret["note"]["id"] })), "store_unavailable");
}

#[test]
fn new_chat_after_an_outage_receives_what_was_in_the_outbox() {
    let start = json!({ "event": "session-start", "session_id": "c", "repo": "o/r", "source": "startup" });
    for (name, params) in [
        ("hook.report", start),
        ("context.read", json!({ "repo": "o/r" })),
        ("recall.search", json!({ "q": "drifts" })),
        ("session.start", json!({ "agent": "a", "repo": "o/r", "include_context": true })),
    ] {
        let outage = Outage::new();
        outage.call(&outage.without_database(), "note.create", note("The clock drifts"));
        let recovered = outage.recovered();
        let response = outage.call(&recovered, name, params);
        assert!(response.to_string().contains("The clock drifts"), "{name}: {response}");
        assert_eq!(recovered.spooled_writes(), 0);
    }
}

#[test]
fn hook_report_is_stored_while_the_outbox_is_blocked() {
    let outage = Outage::new();
    outage.call(&outage.without_database(), "note.create", note("The clock drifts"));
    // Held by a process that replays the outbox.
    let folder = std::fs::File::open(outage.outbox().folder()).unwrap();
    folder.lock().unwrap();
    let start = json!({ "event": "session-start", "session_id": "c", "repo": "o/r", "source": "startup" });
    outage.call(&outage.recovered(), "hook.report", start);
    assert_eq!((outage.stage.active().len(), outage.outbox().count()), (1, 1));
}

#[test]
fn write_whose_commit_has_an_unknown_outcome_is_stored_once() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let outage = Outage::new();
    let open = |url: String| {
        let timeouts = PostgresTimeouts::default();
        let config = StoreConfig::Postgres { url, threads: Threads::Caller, connections: 1, timeouts };
        outage.app_on(Store::open(&config).unwrap())
    };
    let behind_proxy = open(proxy_without_commit_responses(&database.url));
    let noted = outage.call(&behind_proxy, "note.create", note("A"));
    let saved = outage.call(&behind_proxy, "checkpoint.save", save(1));
    assert_eq!((&noted["degraded"], &saved["degraded"]), (&true.into(), &true.into()));
    let recovered = open(database.url.clone());
    let listed = outage.call(&recovered, "note.list", json!({}));
    assert_eq!((texts(&listed), &listed["notes"][0]["id"]), (vec!["A"], &noted["note"]["id"]));
    let listed = outage.call(&recovered, "checkpoint.list", json!({ "sessionId": "s" }));
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1);
    assert_eq!(recovered.spooled_writes(), 0);
}

/// Starts a proxy that closes a connection after the server has executed a commit and before the client receives the
/// response. Returns the URL of the proxy.
fn proxy_without_commit_responses(url: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (user, rest) = url.split_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let (server, proxy) = (server.to_owned(), listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(&server).unwrap();
            std::thread::spawn(move || forward(client, server));
        }
    });
    format!("{user}@{proxy}/{database}")
}

fn forward(mut client: TcpStream, mut server: TcpStream) {
    let (mut responses, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let is_committing = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_closing = is_committing.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = responses.read(&mut buffer) {
            if is_closing.load(std::sync::atomic::Ordering::SeqCst)
                || to_client.write_all(&buffer[..count]).is_err()
            {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
        let _ = responses.shutdown(std::net::Shutdown::Both);
    });
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        if buffer[..count].windows(6).any(|bytes| bytes == b"COMMIT") {
            is_committing.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        if server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
}
