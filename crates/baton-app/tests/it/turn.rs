//! Turns: what hooks report about them, how they are listed and shown, and what they add to summaries and handoffs.

use baton_core::SessionId;
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::observing::{bash, edit};
use crate::stage::{MINUTE, Stage, ok, refused};

fn turns(stage: &Stage, session: SessionId) -> Vec<Value> {
    let listed = ok(&stage.call("turn.list", json!({ "session_id": session })));
    let mut turns = listed["turns"].as_array().unwrap().clone();
    turns.reverse();
    turns
}

fn summary(stage: &Stage, session: SessionId) -> String {
    read(&stage.store, move |tx| tx.summary(session)).unwrap().summary.summary
}

#[test]
fn turn_has_the_request_the_closing_message_and_what_was_done() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", edit("src/a.rs"));
        stage.hooked("post-tool-use", bash("cargo test", "ok"));
        stage.work();
        stage.clock.set(stage.app.now().plus(MINUTE));
        stage.hooked("stop", json!({ "last_assistant_message": "It is fast now.\n\nTwo files changed." }));
        let session = stage.only_session().id;
        let listed = turns(&stage, session);
        assert_eq!(listed.len(), 1);
        let turn = &listed[0];
        assert_eq!((&turn["prompt"], &turn["status"]), (&json!("Make it fast"), &json!("done")));
        assert_eq!(turn["closing_message"], "It is fast now.\n\nTwo files changed.");
        assert_ne!(turn["started_at"], turn["ended_at"]);
        stage.hooked("user-prompt-submit", json!({ "prompt": "And now?" }));
        stage.hooked("post-tool-use", bash("ls", "later"));
        stage.work();
        let shown = ok(&stage.call("turn.show", json!({ "turn_id": turn["id"] })));
        assert_eq!(shown["turn"], *turn);
        assert_eq!(shown["files_changed"], json!(["src/a.rs"]));
        assert_eq!(shown["tools"], json!([{ "tool": "Bash", "uses": 1 }, { "tool": "Edit", "uses": 1 }]));
        assert_eq!(shown["actions"].as_array().unwrap().len(), 2, "{shown}");
    }
}

#[test]
fn turn_of_a_corrupt_session_is_not_reported_as_missing() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        let turn = turns(&stage, stage.only_session().id).remove(0);
        let sql = "UPDATE sessions SET agent = 'not a name'";
        stage.store.place().execute(sql, sql);
        refused(&stage.call("turn.show", json!({ "turn_id": turn["id"] })), "internal");
    }
}

#[test]
fn closing_messages_of_all_agents_are_stored_without_private_parts() {
    for stage in Stage::each() {
        let key = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
        for (field, text, kept) in [
            ("last_assistant_message", json!("Claude <private>x</private> end"), "Claude [private] end"),
            ("prompt_response", json!("Gemini"), "Gemini"),
            ("text", json!("Cursor 接力棒"), "Cursor 接力棒"),
            ("last_assistant_message", json!(format!("key {key}")), "key "),
            ("last_assistant_message", json!(["odd"]), "[\"odd\"]"),
        ] {
            stage.hooked("user-prompt-submit", json!({ "prompt": "p" }));
            stage.hooked("stop", json!({ field: text }));
            let last = turns(&stage, stage.only_session().id).pop().unwrap();
            let closing = last["closing_message"].as_str().unwrap();
            assert!(closing.starts_with(kept) && !closing.contains(&key), "{closing}");
        }
    }
}

#[test]
fn turn_that_does_not_end_with_a_response_says_so() {
    for stage in Stage::each() {
        let prompt = |text: &str| stage.hooked("user-prompt-submit", json!({ "prompt": text }));
        prompt("p");
        stage.hooked("stop", json!({ "hook_event_name": "StopFailure", "error": "rate_limit" }));
        prompt("p");
        stage.hooked("stop", json!({ "hook_event_name": "Interrupt" }));
        prompt("p");
        prompt("q");
        let session = stage.only_session().id;
        stage.hooked("session-end", json!({}));
        let found = turns(&stage, session);
        let statuses: Vec<&str> = found.iter().map(|turn| turn["status"].as_str().unwrap()).collect();
        assert_eq!(statuses, ["failed", "interrupted", "unfinished", "unfinished"]);
        assert_eq!(found[0]["failure"], "rate_limit");
        // Some agents report the last stop after the end of the chat.
        stage.hooked("stop", json!({ "last_assistant_message": "Late" }));
        let last = turns(&stage, session).pop().unwrap();
        assert_eq!((&last["status"], &last["closing_message"]), (&json!("done"), &json!("Late")));
    }
}

#[test]
fn stop_without_a_request_and_repeated_stops_are_one_turn() {
    for stage in Stage::each() {
        stage.hooked("stop", json!({ "last_assistant_message": "One" }));
        stage.hooked("stop", json!({}));
        stage.hooked("stop", json!({ "last_assistant_message": "  " }));
        stage.hooked(
            "stop",
            json!({ "last_assistant_message": "One", "text": "Two", "prompt_response": "3" }),
        );
        let found = turns(&stage, stage.only_session().id);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0]["prompt"], &found[0]["closing_message"]), (&json!(""), &json!("One")));
    }
}

#[test]
fn summary_and_handoff_have_the_closing_words_of_the_last_turn() {
    for stage in Stage::each() {
        for (prompt, closing) in [("Make it fast", "Profiled it."), ("Go on", "It takes 3 ms instead of 40.")]
        {
            stage.hooked("user-prompt-submit", json!({ "prompt": prompt }));
            stage.hooked("post-tool-use", edit("src/a.rs"));
            stage.work();
            stage.hooked("stop", json!({ "last_assistant_message": closing }));
            stage.summarize_due();
        }
        let session = stage.only_session().id;
        let text = summary(&stage, session);
        assert!(text.contains("Make it fast") && text.contains("3 ms instead of 40"), "{text}");
        assert!(!text.contains("Earlier:"), "{text}");
        // A turn without tools changes the summary too.
        stage.hooked("user-prompt-submit", json!({ "prompt": "Is it good?" }));
        stage.hooked("stop", json!({ "last_assistant_message": "Yes, ship it." }));
        stage.summarize_due();
        let text = summary(&stage, session);
        assert!(text.contains("Yes, ship it."), "{text}");
        stage.hooked("session-end", json!({}));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v", "repo": "o/r" })));
        assert_eq!(handoff["handoff"]["payload"]["outcome"], "Yes, ship it.", "{handoff}");
    }
}

#[test]
fn handoff_has_no_outcome_if_the_last_request_was_not_finished() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make the import faster please" }));
        stage.hooked("post-tool-use", edit("src/a.rs"));
        stage.work();
        stage.hooked("stop", json!({ "last_assistant_message": "It takes 3 ms now." }));
        stage.hooked("user-prompt-submit", json!({ "prompt": "Now remove the old import" }));
        stage.hooked("session-end", json!({}));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v", "repo": "o/r" })));
        let payload = &handoff["handoff"]["payload"];
        assert_eq!(
            (&payload["outcome"], &payload["goal"]),
            (&Value::Null, &json!("Make the import faster please"))
        );
    }
}

#[test]
fn unknown_turns_and_pages_are_handled() {
    for stage in Stage::each() {
        for number in 0..5 {
            stage.hooked("user-prompt-submit", json!({ "prompt": format!("p{number}") }));
        }
        let session = stage.only_session().id;
        let page = |before: Value| {
            ok(&stage.call("turn.list", json!({ "session_id": session, "limit": 2, "before": before })))
        };
        let first = page(Value::Null);
        assert_eq!(first["turns"][0]["prompt"], "p4");
        let second = page(first["next_before"].clone());
        assert_eq!(
            (&second["turns"][0]["prompt"], &second["turns"][1]["prompt"]),
            (&json!("p2"), &json!("p1"))
        );
        let last = page(second["next_before"].clone());
        assert_eq!((last["turns"].as_array().unwrap().len(), &last["next_before"]), (1, &Value::Null));
        refused(&stage.call("turn.show", json!({ "turn_id": "turn_999999" })), "not_found");
        refused(&stage.call("turn.show", json!({ "turn_id": "999999" })), "invalid_request");
        refused(&stage.call("turn.list", json!({ "session_id": session, "limit": 0 })), "invalid_request");
    }
}

fn todos(items: &[&str]) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|item| json!({ "content": item, "status": "pending", "activeForm": item }))
        .collect();
    json!({ "tool_name": "TodoWrite", "tool_input": { "todos": items }, "tool_response": { "newTodos": items } })
}

fn titles(stage: &Stage) -> Vec<String> {
    let seen = stage.observations();
    seen.iter().rev().map(|seen| seen["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn todo_updates_of_one_turn_become_one_observation() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", todos(&["measure"]));
        stage.hooked("post-tool-use", edit("src/a.rs"));
        stage.work();
        stage.hooked("post-tool-use", todos(&["measure", "improve"]));
        stage.hooked("post-tool-use", todos(&["measure", "improve", "report"]));
        stage.work();
        assert_eq!(stage.observations().len(), 2, "{:?}", titles(&stage));
        stage.clock.set(stage.app.now().plus(MINUTE));
        stage.hooked("stop", json!({}));
        stage.hooked("user-prompt-submit", json!({ "prompt": "And now?" }));
        stage.hooked("post-tool-use", todos(&["rest"]));
        stage.work();
        assert_eq!(stage.observations().len(), 3, "each turn keeps its last list");
    }
}

#[test]
fn task_updates_have_the_subject_and_replace_earlier_ones_of_the_turn() {
    let created = json!({ "tool_name": "TaskCreate", "tool_input": { "subject": "Add login" }, "tool_response": { "task": { "id": "1", "subject": "Add login" } } });
    let update = |status: &str| json!({ "tool_name": "TaskUpdate", "tool_input": { "taskId": "1", "status": status }, "tool_response": { "success": true } });
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Add login" }));
        stage.hooked("post-tool-use", created.clone());
        stage.work();
        stage.hooked("post-tool-use", update("in_progress"));
        stage.hooked("post-tool-use", update("completed"));
        stage.work();
        assert_eq!(titles(&stage), ["Create task 1 'Add login'", "Mark task 1 completed: Add login"]);
    }
}

#[test]
fn compact_summary_is_the_outcome_of_a_turn_without_a_closing_message() {
    for stage in Stage::each() {
        stage.hooked("post-compact", json!({ "compact_summary": " " }));
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", edit("src/a.rs"));
        let summary = "The cache works. <private>x</private> Next: the index.";
        stage.hooked("post-compact", json!({ "trigger": "auto", "compact_summary": summary }));
        let session = stage.only_session().id;
        let turn = turns(&stage, session).pop().unwrap();
        assert_eq!(turn["compact_summary"], "The cache works. [private] Next: the index.");
        assert_eq!((&turn["closing_message"], &turn["status"]), (&Value::Null, &json!("open")));
        stage.work();
        stage.hooked("session-end", json!({}));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v" })))["handoff"].clone();
        assert!(handoff["summary"].as_str().unwrap().contains("The cache works."), "{handoff}");
    }
}

#[test]
fn closing_messages_of_overlapping_subagents_are_captured_once() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Find the leak" }));
        let stop = |agent: &str, message: &str| json!({ "agent_id": agent, "agent_type": "Explore", "last_assistant_message": message });
        stage.hooked("subagent-stop", stop("a", "The leak is in cache.rs, line 40."));
        stage.hooked("subagent-stop", stop("b", "The index is not affected."));
        stage.hooked("subagent-stop", stop("a", "The leak is in cache.rs, line 40."));
        stage.hooked("subagent-stop", json!({ "agent_id": "c" }));
        let report = json!([{ "type": "text", "text": "The leak is in cache.rs, line 40." }]);
        stage.hooked(
            "post-tool-use",
            json!({
                "tool_name": "Task", "tool_input": { "description": "Search", "subagent_type": "Explore" },
                "tool_response": { "content": report, "totalToolUseCount": 3, "totalDurationMs": 4_000 },
            }),
        );
        stage.work();
        let seen = stage.observations();
        let tools: Vec<&Value> = seen.iter().map(|seen| &seen["tool_name"]).collect();
        assert_eq!(tools, ["Task", "Subagent"], "{:?}", titles(&stage));
        let text = seen[1].to_string();
        assert!(text.contains("The index is not affected."), "{text}");
        let session = stage.only_session().id;
        assert_eq!(turns(&stage, session)[0]["status"], "open", "a sub-agent does not end the turn");
    }
}

#[test]
fn turn_lists_checks_with_results_commits_and_failures() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        let failed =
            "running 3 tests\ntest a ... FAILED\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored";
        stage.hooked("post-tool-use", bash("cargo test", failed));
        stage.hooked("post-tool-use", edit("src/a.rs"));
        stage.hooked("post-tool-use", bash("cargo test", "test result: ok. 3 passed; 0 failed; 0 ignored"));
        let commit = "[main 1a2b3c4] Make it fast\n 1 file changed, 1 insertion(+)";
        stage.hooked("post-tool-use", bash("git commit -am 'Make it fast'", commit));
        stage.work();
        let session = stage.only_session().id;
        let turn = turns(&stage, session)[0]["id"].clone();
        let shown = ok(&stage.call("turn.show", json!({ "turn_id": turn })));
        assert_eq!(shown["checks"].as_array().unwrap().len(), 1, "the latest run of each check: {shown}");
        assert_eq!(shown["checks"][0]["title"], "Run cargo test: 3 passed");
        assert_eq!(shown["commits"], json!(["Make it fast"]));
        assert_eq!(shown["failures"][0]["title"], "Run cargo test: 1 of 3 failed");
    }
}

#[test]
fn simultaneous_and_early_stops_leave_one_turn_each() {
    for stage in Stage::each() {
        let chat = |chat: &str, more: Value| {
            let mut report = json!({ "session_id": chat });
            report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            crate::observing::report("stop", report)
        };
        std::thread::scope(|scope| {
            for message in ["First words.", "Second words."] {
                let report = chat("early", json!({ "last_assistant_message": message }));
                let stage = &stage;
                scope.spawn(move || ok(&stage.call("hook.report", report)));
            }
        });
        let session = stage.only_session().id;
        let found = turns(&stage, session);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0]["prompt"], &found[0]["status"]), (&json!(""), &json!("done")));
        let closing = found[0]["closing_message"].as_str().unwrap();
        assert!(["First words.", "Second words."].contains(&closing), "{closing}");
    }
}
