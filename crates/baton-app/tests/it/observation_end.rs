//! `session-end` and `pre-compact`: the handoff at the end of a chat and the checkpoint before a compaction.

use std::time::Duration;

use baton_core::{EndReason, SessionStatus};
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::observing::{CHAT, bash, edit, report, with_model};
use crate::stage::{HOUR, MINUTE, NOW, Stage, ok, who};

fn handoffs(stage: &Stage) -> Vec<Value> {
    let listed = ok(&stage.call("handoff.list", json!({ "venture": "v" })));
    listed["handoffs"].as_array().unwrap().clone()
}

fn latest(stage: &Stage) -> Value {
    let id = handoffs(stage)[0]["id"].clone();
    ok(&stage.call("handoff.show", json!({ "handoff_id": id })))["handoff"].clone()
}

#[test]
fn session_end_writes_a_handoff_from_observations() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.clock.set(NOW.plus(MINUTE));
        stage.hooked("post-tool-use", bash("cargo test", "test result: ok. 3 passed; 0 failed"));
        assert_eq!(stage.work(), 2);
        stage.hooked("post-tool-use", edit("src/late.rs"));
        let session = stage.only_session();
        stage.clock.set(NOW.plus(2 * MINUTE));
        stage.hooked("session-end", json!({ "reason": "prompt_input_exit" }));

        let ended = stage.session(session.id);
        assert_eq!((ended.status, ended.end_reason), (SessionStatus::Ended, Some(EndReason::Manual)));
        assert_eq!(ended.ended_at, Some(NOW.plus(2 * MINUTE)));
        let handoff = latest(&stage);
        assert_eq!(handoff["session_id"], session.id.to_string());
        assert_eq!((&handoff["ends_session"], &handoff["from_agent"]), (&true.into(), &"claude-code".into()));
        let payload = &handoff["payload"];
        let titles: Vec<Value> =
            stage.observations().iter().rev().map(|seen| seen["title"].clone()).collect();
        assert_eq!(payload["work_completed"], json!(titles), "oldest first");
        assert_eq!(titles.len(), 2);
        let files = payload["key_files"].as_array().unwrap();
        assert!(files.contains(&"src/lib.rs".into()), "{payload}");
        assert_eq!((&payload["queued_tool_uses"], &payload["observations"]), (&1.into(), &2.into()));
        assert_eq!(payload["last_prompt"], "Make it fast");
        assert_eq!(payload["reason"], "prompt_input_exit");
        assert!(!handoff["summary"].as_str().unwrap().is_empty());

        let next = ok(&stage.call("session.start", who("next")));
        assert_eq!(next["last_handoff"]["id"], handoff["id"]);
        // The pending tool use is processed and summarized later; no further handoff is written.
        assert_eq!((stage.work(), stage.summarize_due()), (1, 1));
        let id = session.id;
        assert_eq!(read(&stage.store, move |tx| tx.summary(id)).unwrap().observations, 3);
        assert_eq!(handoffs(&stage).len(), 1);
    }
}

#[test]
fn completed_work_lists_what_changed_or_checked_something() {
    for stage in Stage::each() {
        let read = json!({
            "tool_name": "Read", "tool_input": { "file_path": "/home/dev/shop/src/lib.rs" },
            "tool_response": { "type": "text", "file": { "filePath": "/home/dev/shop/src/lib.rs",
                "content": "fn main() {}", "numLines": 1, "startLine": 1, "totalLines": 1 } },
        });
        let search = json!({
            "tool_name": "Grep", "tool_input": { "pattern": "main", "path": "src" },
            "tool_response": { "mode": "files_with_matches", "filenames": ["src/lib.rs"], "numFiles": 1 },
        });
        let uses = [
            edit("src/lib.rs"),
            bash("cargo test", "test result: ok. 3 passed; 0 failed"),
            bash("git commit -m 'Make it fast'", "[main 1a2b3c4] Make it fast\n 1 file changed"),
        ];
        for (second, fields) in (1..).zip(uses.into_iter().chain((0..20).flat_map(|_| {
            let shown = bash("cat src/lib.rs", "fn main() {}");
            [read.clone(), search.clone(), shown, bash("git status", "On branch main\nnothing to commit")]
        }))) {
            stage.clock.set(NOW.plus(Duration::from_secs(second)));
            stage.hooked("post-tool-use", fields);
        }
        assert_eq!(stage.work(), 83);
        stage.hooked("session-end", json!({}));
        let payload = latest(&stage)["payload"].clone();
        let done: Vec<&str> =
            payload["work_completed"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert_eq!(done.len(), 3, "{done:?}");
        assert!(done[0].starts_with("Edit src/lib.rs") && done[1].starts_with("Run cargo test"), "{done:?}");
        assert_eq!(done[2], "Commit 'Make it fast'");
        assert_eq!(payload["observations"], 83);
    }
}

#[test]
fn handoff_lists_unprocessed_tool_uses_by_name() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("session-end", json!({}));
        let handoff = latest(&stage);
        assert_eq!(
            (&handoff["payload"]["queued_tool_uses"], &handoff["payload"]["observations"]),
            (&1.into(), &0.into())
        );
        let summary = handoff["summary"].as_str().unwrap();
        assert!(summary.contains("src/lib.rs") && !summary.contains("Nothing was changed"), "{summary}");
        assert!(stage.active().is_empty());
    }
}

#[test]
fn session_end_uses_the_stored_summary_of_a_model() {
    for stage in Stage::each_with(with_model) {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("stop", json!({}));
        assert_eq!((stage.work(), stage.summarize_due()), (1, 1));
        stage.hooked("session-end", json!({}));
        let handoff = latest(&stage);
        assert_eq!(handoff["summary"], "1 things were done.");
        assert_eq!(handoff["payload"]["key_decisions"], json!(["Use cookies"]));
        let done = &handoff["payload"]["work_completed"];
        assert_eq!(
            *done,
            json!([stage.observations()[0]["title"]]),
            "lists observations that the summary covers"
        );
        let shown = ok(&stage.call("session.show", json!({ "session_id": handoff["session_id"] })));
        assert_eq!(shown["summary"]["summary"], handoff["summary"]);
        assert_eq!(
            (&shown["summary"]["observations"], shown["summary"]["made_at"].is_string()),
            (&1.into(), true)
        );
        assert_eq!(handoff["payload"]["queued_tool_uses"], 0);
    }
}

#[test]
fn empty_session_ends_without_a_handoff() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("session-end", json!({}));
        let before = latest(&stage);
        for fields in [json!({}), json!({ "prompt": "Hello?" })] {
            ok(&stage.hook("session-start", json!({})));
            let session = stage.only_session().id;
            if fields["prompt"].is_string() {
                stage.hooked("user-prompt-submit", fields);
            }
            stage.hooked("session-end", json!({ "reason": "clear" }));
            let ended = stage.session(session);
            assert_eq!((ended.status, ended.end_reason), (SessionStatus::Ended, Some(EndReason::Manual)));
        }
        assert_eq!(handoffs(&stage).len(), 1);
        let next = ok(&stage.call("session.start", who("next")));
        assert_eq!(next["last_handoff"]["id"], before["id"]);
    }
}

#[test]
fn repeated_session_end_writes_one_handoff() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        for _ in 0..2 {
            ok(&stage.keyed("end", "hook.report", report("session-end", json!({}))));
        }
        assert_eq!(handoffs(&stage).len(), 1);
        stage.hooked("session-end", json!({}));
        assert_eq!(
            (handoffs(&stage).len(), stage.active().len()),
            (1, 0),
            "an ended session gets no further handoff"
        );
    }
}

fn saved(stage: &Stage, chat: &str) -> Value {
    ok(&stage.call("checkpoint.load", json!({ "sessionId": chat, "venture": "v" })))
}

#[test]
fn pre_compact_saves_a_checkpoint() {
    for stage in Stage::each_with(with_model) {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast", "branch": "feature" }));
        stage.hooked("user-prompt-submit", json!({ "prompt": "And <private>quietly</private> safe" }));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("post-tool-use", bash("cargo test", "ok"));
        stage.hooked("stop", json!({}));
        assert_eq!((stage.work(), stage.summarize_due()), (2, 1));
        stage.hooked("post-tool-use", bash("cargo bench", "ok"));
        stage.clock.set(NOW.plus(HOUR / 2));
        stage.hooked("pre-compact", json!({ "trigger": "auto", "custom_instructions": "Keep the numbers" }));

        let loaded = saved(&stage, CHAT);
        let context = &loaded["context"];
        assert_eq!(context["prompts"], json!(["Make it fast", "And [private] safe"]));
        assert_eq!(context["goal"], "Make it fast");
        assert_eq!(context["decisions"], json!(["Use cookies"]));
        assert_eq!(
            (&context["summary"], &context["key_files"]),
            (&"2 things were done.".into(), &json!(["src/lib.rs"]))
        );
        assert_eq!(
            (&context["instructions"], &context["trigger"]),
            (&"Keep the numbers".into(), &"auto".into())
        );
        assert_eq!((&context["branch"], &context["cwd"]), (&"feature".into(), &"/home/dev/shop".into()));
        assert_eq!(context["queued_tool_uses"], 1);
        let expected: Vec<(Value, Value)> = stage
            .observations()
            .iter()
            .rev()
            .map(|seen| (seen["id"].clone(), seen["title"].clone()))
            .collect();
        let observed = context["observations"].as_array().unwrap();
        let observed: Vec<(Value, Value)> =
            observed.iter().map(|seen| (seen["id"].clone(), seen["title"].clone())).collect();
        assert_eq!((observed.len(), observed), (2, expected), "oldest first");
        let session = stage.only_session();
        assert_eq!(loaded["metadata"]["repo"].as_str().unwrap_or("o/r"), "o/r");
        assert_eq!(session.last_heartbeat_at, NOW.plus(HOUR / 2), "the session stays active");
    }
}

#[test]
fn each_pre_compact_saves_another_checkpoint() {
    for stage in Stage::each() {
        stage.hooked("pre-compact", json!({ "trigger": "manual" }));
        let first = saved(&stage, CHAT);
        assert_eq!(first["context"]["trigger"], "manual", "saved for an empty chat");
        assert_eq!(first["context"]["observations"], Value::Null);
        stage.hooked("user-prompt-submit", json!({ "prompt": "More" }));
        stage.hooked("pre-compact", json!({ "trigger": "auto" }));
        let second = saved(&stage, CHAT);
        assert_ne!(second["checkpointId"], first["checkpointId"]);
        assert_eq!(second["context"]["prompts"], json!(["More"]));
        let listed = ok(&stage.call("checkpoint.list", json!({ "sessionId": CHAT, "venture": "v" })));
        assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn pre_compact_accepts_chat_ids_that_are_not_workflow_ids() {
    for stage in Stage::each() {
        let awkward = "chat~{1}/x?";
        stage.hooked("pre-compact", json!({ "session_id": awkward }));
        stage.hooked("pre-compact", json!({ "session_id": null, "trigger": "auto" }));
        let listed = ok(&stage.call("checkpoint.workflows", json!({ "venture": "v" })));
        assert_eq!(listed["workflows"].as_array().unwrap().len(), 2, "{listed}");
    }
}
