//! `context.read`: what the context for a new chat contains.

use serde_json::{Value, json};

use crate::stage::{HOUR, MINUTE, NOW, Stage, ok};

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

#[test]
fn the_failed_request_before_a_command_of_the_client_is_listed() {
    for stage in Stage::each() {
        prompt(&stage, "old", "Paint the fence");
        failure(&stage, "old");
        hooked(&stage, "old", "session-end", json!({}));
        stage.clock.set(NOW.plus(HOUR));
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
        prompt(&stage, "old", "Paint the fence");
        failure(&stage, "old");
        hooked(&stage, "old", "session-end", json!({}));
        stage.clock.set(NOW.plus(HOUR));
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
        prompt(&stage, "old", "Paint the fence");
        failure(&stage, "old");
        stage.clock.set(NOW.plus(HOUR));
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
