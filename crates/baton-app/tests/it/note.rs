//! Notes: where they appear, corrections, and what happens to notes without a session.

use serde_json::{Value, json};

use crate::observing::{CHAT, edit, with_model};
use crate::stage::{Stage, ok, operation, refused};

fn note(stage: &Stage, session: &str, kind: &str, text: &str) -> String {
    let params = json!({ "session_id": session, "kind": kind, "text": text });
    ok(&stage.call("note.create", params))["note"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn notes_appear_in_summaries_handoffs_and_checkpoints() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make the login of the shop fast" }));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        let session = stage.only_session().id.to_string();
        note(&stage, &session, "decision", "Cookies: the proxy drops headers");
        note(&stage, &session, "rejected", "Local storage: readable by scripts");
        note(&stage, &session, "gotcha", "The clock is in UTC");
        let wrong = note(&stage, &session, "todo", "Add logut");
        ok(&stage
            .call("note.update", json!({ "note_id": wrong, "text": "Add logout", "file": "src/out.rs" })));
        let deleted = note(&stage, &session, "fact", "Never mind");
        ok(&stage.call("note.delete", json!({ "note_id": deleted })));
        assert_eq!(stage.work(), 1);

        let summary = ok(&stage.call("session.summarize", json!({ "session_id": session, "close": false })));
        assert_eq!(summary["key_decisions"][0], "Cookies: the proxy drops headers");
        let text = summary["summary"].as_str().unwrap();
        for part in ["rejected: Local storage", "gotcha: The clock", "todo (src/out.rs): Add logout"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Never mind"), "{text}");

        stage.hooked("pre-compact", json!({ "trigger": "auto" }));
        let loaded = ok(&stage.call("checkpoint.load", json!({ "sessionId": CHAT, "venture": "v" })));
        assert_eq!(loaded["context"]["notes"][0], "decision: Cookies: the proxy drops headers");
        let noted: Vec<&Value> =
            loaded["notes"].as_array().unwrap().iter().map(|note| &note["kind"]).collect();
        assert_eq!(noted, ["todo", "gotcha", "rejected", "decision"], "newest first");

        stage.hooked("session-end", json!({}));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v" })))["handoff"].clone();
        let payload = &handoff["payload"];
        assert_eq!(payload["decisions"], json!(["Cookies: the proxy drops headers"]));
        assert_eq!(payload["rejected"], json!(["Local storage: readable by scripts"]));
        assert_eq!(payload["gotchas"], json!(["The clock is in UTC"]));
        let unfinished = "Request that is unfinished: Make the login of the shop fast";
        assert_eq!(payload["next_actions"], json!(["Add logout (src/out.rs)", unfinished]));
    }
}

#[test]
fn search_finds_a_note_by_its_corrected_text_until_it_is_deleted() {
    for stage in Stage::each() {
        ok(&stage.hook("session-start", json!({})));
        let session = stage.only_session().id.to_string();
        let id = note(&stage, &session, "gotcha", "The clok drifts");
        ok(&stage.call("note.update", json!({ "note_id": id, "text": "The clock drifts" })));
        let find = |query: &str| {
            let found = ok(&stage.call("recall.search", json!({ "q": query, "venture": "v" })));
            let results = found["results"].as_array().unwrap().clone();
            results.iter().map(|result| result["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(find("clock"), std::slice::from_ref(&id));
        assert!(find("clok").is_empty());
        let repo = stage.only_session().tuple.repo;
        let bundle = ok(&stage.call("context.read", json!({ "repo": repo, "venture": "v" })));
        assert!(bundle["context"].as_str().unwrap().contains("The clock drifts"), "{bundle}");
        let shown = ok(&stage.call("recall.get", json!({ "ids": id })));
        assert_eq!(shown["items"][0]["title"], "gotcha: The clock drifts");
        ok(&stage.call("note.delete", json!({ "note_id": id })));
        assert!(find("clock").is_empty());
    }
}

#[test]
fn session_with_only_notes_leaves_a_handoff() {
    for stage in Stage::each_with(with_model) {
        ok(&stage.hook("session-start", json!({})));
        let session = stage.only_session().id.to_string();
        note(&stage, &session, "decision", "Use WAL: readers must not wait");
        stage.hooked("session-end", json!({}));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v" })))["handoff"].clone();
        assert_eq!(handoff["payload"]["decisions"], json!(["Use WAL: readers must not wait"]));
        note(&stage, &session, "fact", "Noted after the end");
        assert!(stage.active().is_empty(), "a late note does not revive the session");
    }
}

#[test]
fn notes_of_two_processes_in_one_millisecond_are_all_stored() {
    const ROUNDS: usize = 25;
    for stage in Stage::each() {
        let processes = [stage.app.clone(), stage.another()];
        let created: Vec<(String, Value)> = std::thread::scope(|scope| {
            let create = |process: usize, round: usize| {
                let text = format!("note {round} of process {process}");
                let call = stage.envelope(None);
                let params = json!({ "text": text, "repo": "o/r" });
                let reply = processes[process].call_blocking(operation("note.create"), call, params);
                (text, ok(&reply)["note"].clone())
            };
            let threads = [0, 1].map(|process| {
                scope.spawn(move || (0..ROUNDS).map(|round| create(process, round)).collect::<Vec<_>>())
            });
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let ids: std::collections::BTreeSet<_> =
            created.iter().map(|(_, note)| note["id"].as_str()).collect();
        assert_eq!(ids.len(), 2 * ROUNDS);
        for (text, note) in &created {
            let shown = ok(&stage.call("note.show", json!({ "note_id": note["id"] })));
            assert_eq!((note["text"].as_str(), &shown["note"]), (Some(text.as_str()), note));
        }
    }
}

#[test]
fn note_needs_a_session_or_a_repository_and_a_text() {
    let stage = Stage::sqlite();
    refused(&stage.call("note.create", json!({ "text": "x" })), "invalid_request");
    for text in [json!(""), json!(" \n"), json!("x".repeat(2_001)), json!(7), json!(null)] {
        let params = json!({ "text": text, "repo": "o/r" });
        refused(&stage.call("note.create", params), "invalid_request");
    }
    for (field, value) in [("kind", "idea"), ("file", ""), ("repo", "no-owner")] {
        let mut params = json!({ "text": "x", "repo": "o/r" });
        params[field] = value.into();
        refused(&stage.call("note.create", params), "invalid_request");
    }
    let made = ok(&stage.call("note.create", json!({ "text": " x <private>y</private> ", "repo": "o/r" })));
    assert_eq!((&made["note"]["text"], &made["note"]["kind"]), (&"x [private]".into(), &"fact".into()));
    assert_eq!((&made["note"]["session_id"], &made["note"]["venture"]), (&Value::Null, &"local".into()));
    refused(&stage.call("note.show", json!({ "note_id": "note_01HQXV3NK8ZZZZZZZZZZZZZZZZ" })), "not_found");
}
