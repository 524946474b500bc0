//! `context.read`: what the context for a new chat contains.

use serde_json::{Value, json};

use crate::observing::edit;
use crate::stage::{HOUR, MINUTE, NOW, Stage, ok, refused, who};

fn bundle(stage: &Stage) -> String {
    let bundle = ok(&stage.call("context.read", json!({ "repo": "o/r", "venture": "v" })));
    bundle["context"].as_str().unwrap().to_owned()
}

/// Reports an event of a chat.
fn hooked(stage: &Stage, chat: &str, event: &str, mut fields: Value) {
    fields["session_id"] = chat.into();
    stage.hooked(event, fields);
}

fn prompt(stage: &Stage, chat: &str, text: &str) {
    hooked(stage, chat, "user-prompt-submit", json!({ "prompt": text }));
}

fn failure(stage: &Stage, chat: &str) {
    hooked(stage, chat, "stop", json!({ "hook_event_name": "StopFailure", "error": "usage limit reached" }));
}

/// Reports a chat whose only request failed, an hour ago.
fn failed_chat(stage: &Stage) {
    prompt(stage, "old", "Paint the fence");
    failure(stage, "old");
    hooked(stage, "old", "session-end", json!({}));
    stage.clock.set(NOW.plus(HOUR));
}

#[test]
fn the_failed_request_before_a_command_of_the_client_is_listed() {
    for stage in Stage::each() {
        failed_chat(&stage);
        prompt(&stage, "new", "Rename the column");
        failure(&stage, "new");
        prompt(&stage, "new", "<task-notification>The build is done</task-notification>");
        hooked(&stage, "new", "stop", json!({ "last_assistant_message": "Noted." }));
        prompt(&stage, "new", "/exit");
        let text = bundle(&stage);
        assert!(text.contains("that failed: Rename the column (usage limit reached) [turn_"), "{text}");
        assert!(!text.contains("that failed: Paint the fence"), "{text}");
    }
}

#[test]
fn a_finished_request_before_a_command_of_the_client_hides_older_sessions() {
    for stage in Stage::each() {
        failed_chat(&stage);
        prompt(&stage, "new", "Rename the column");
        hooked(&stage, "new", "stop", json!({ "last_assistant_message": "Renamed." }));
        prompt(&stage, "new", "/exit");
        let text = bundle(&stage);
        assert!(!text.contains("that failed"), "{text}");
    }
}

#[test]
fn a_session_without_requests_does_not_hide_the_failed_request_of_an_older_one() {
    for stage in Stage::each() {
        failed_chat(&stage);
        prompt(&stage, "new", "/status");
        prompt(&stage, "new", "/exit");
        let text = bundle(&stage);
        assert!(text.contains("that failed: Paint the fence"), "{text}");
    }
}

#[test]
fn open_tasks_are_listed_after_any_number_of_finished_ones() {
    for stage in Stage::each() {
        let record = |number: u32, status: &str| {
            stage.clock.set(NOW.plus(number * MINUTE));
            let task = json!({
                "task_id": format!("TASK-{number}"), "host": "h", "checkout": "/c", "venture": "v", "repo": "o/r",
                "title": format!("Task number {number}"), "status": status,
            });
            ok(&stage.call("task.record", task));
        };
        for number in 1..=4 {
            record(number, "waiting");
        }
        for number in 5..=7 {
            record(number, "done");
        }
        record(8, "completed");
        let text = bundle(&stage);
        for number in 1..=8 {
            let is_listed = text.contains(&format!("Task number {number}"));
            assert_eq!(is_listed, (2..=4).contains(&number), "{number}: {text}");
        }
    }
}

/// Stores a damaged payload or automatic content of every handoff.
fn damage(stage: &Stage, column: &str) {
    let sql = format!("UPDATE handoffs SET {column} = '[\"damaged\"'");
    stage.store.place().execute(&sql, &sql);
}

/// Stores a handoff of an agent with captured content. Returns its id.
fn handoff(stage: &Stage) -> String {
    prompt(stage, "chat", "Make it fast");
    hooked(stage, "chat", "post-tool-use", edit("src/a.rs"));
    stage.work();
    let session = stage.only_session().id;
    let handoff = json!({ "summary": "Half done", "blockers": ["No access"] });
    let left = ok(&stage.call("handoff.create", json!({ "session_id": session, "handoff": handoff })));
    left["handoff_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_damaged_handoff_is_an_error_where_it_is_shown() {
    for column in ["payload_json", "automatic_json"] {
        for stage in Stage::each() {
            let id = handoff(&stage);
            ok(&stage.call("handoff.show", json!({ "handoff_id": id })));
            damage(&stage, column);
            for (operation, params) in [
                ("handoff.show", json!({ "handoff_id": id })),
                ("handoff.latest", json!({ "venture": "v" })),
                ("handoff.list", json!({ "venture": "v" })),
            ] {
                let body = refused(&stage.call(operation, params), "internal");
                assert!(body["message"].as_str().unwrap().contains(&id), "{operation}: {body}");
            }
        }
    }
}

#[test]
fn a_damaged_handoff_is_left_out_of_the_context_and_of_a_new_session() {
    for column in ["payload_json", "automatic_json"] {
        for stage in Stage::each() {
            let id = handoff(&stage);
            let note = json!({ "text": "Keep the zebra", "kind": "fact", "repo": "o/r", "venture": "v" });
            ok(&stage.call("note.create", note));
            ok(&stage.call("memory.pin", json!({ "id": id })));
            ok(&stage.call("recall.search", json!({ "q": "zebra" })));
            assert!(bundle(&stage).contains("Half done"));
            damage(&stage, column);
            let text = bundle(&stage);
            assert!(text.contains("Keep the zebra"), "{text}");
            assert!(!text.contains("Handoff of"), "{text}");
            let started = ok(&stage.call("session.start", who("next")));
            assert_eq!(started["last_handoff"], Value::Null);
            ok(&stage.hook("session-start", json!({ "session_id": "another", "source": "startup" })));
        }
    }
}

#[test]
fn a_damaged_handoff_does_not_stop_the_index_or_the_summary_of_its_session() {
    for stage in Stage::each() {
        let id = handoff(&stage);
        damage(&stage, "payload_json");
        let note = json!({ "text": "Keep the zebra", "kind": "fact", "repo": "o/r", "venture": "v" });
        ok(&stage.call("note.create", note));
        let found = ok(&stage.call("recall.search", json!({ "q": "zebra" })));
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
        refused(&stage.call("recall.get", json!({ "ids": id })), "internal");
        hooked(&stage, "chat", "stop", json!({ "last_assistant_message": "It is fast." }));
        assert_eq!(stage.summarize_due(), 1);
    }
}

#[test]
fn a_damaged_handoff_is_forgotten_and_a_damaged_note_is_not_kept_silently() {
    for stage in Stage::each() {
        let id = handoff(&stage);
        damage(&stage, "payload_json");
        let forget = || stage.call("memory.forget", json!({ "repo": "o/r", "venture": "v" }));
        assert_eq!(ok(&forget())["forgotten"]["handoffs"], 1);
        refused(&stage.call("handoff.show", json!({ "handoff_id": id })), "handoff_not_found");
        let note = json!({ "text": "Keep the zebra", "kind": "fact", "repo": "o/r", "venture": "v" });
        ok(&stage.call("note.create", note));
        let sql = "UPDATE notes SET agent = 'not a name'";
        stage.store.place().execute(sql, sql);
        refused(&forget(), "internal");
    }
}

#[test]
fn a_damaged_automatic_handoff_is_not_overwritten() {
    for stage in Stage::each() {
        prompt(&stage, "chat", "Make it fast");
        hooked(&stage, "chat", "post-tool-use", edit("src/a.rs"));
        hooked(&stage, "chat", "session-end", json!({}));
        damage(&stage, "payload_json");
        stage.work();
        stage.summarize_due();
        let venture = "v".parse().unwrap();
        let filter = baton_store::HandoffFilter::of(venture);
        let stored = baton_testkit::contract::read(&stage.store, move |tx| {
            tx.handoffs(&filter, baton_store::Page::first(1))
        });
        assert_eq!(stored[0].payload_json, "[\"damaged\"");
    }
}
