//! Hooks as Claude Code and Codex call them: a whole chat, and the responses in each protocol.

use serde_json::{Value, json};

use crate::hooked::{CHAT, Hooked};
use crate::served::with;

#[test]
fn a_claude_code_chat_creates_observations_a_checkpoint_and_a_handoff() {
    for hooked in Hooked::each() {
        let file = hooked.home.working_folder().join("src/login.rs");
        hooked.hook(
            "session-start",
            &hooked.claude("SessionStart", json!({ "source": "startup", "model": "claude" })),
        );
        hooked.hook(
            "user-prompt-submit",
            &hooked.claude("UserPromptSubmit", json!({ "prompt": "Write a login" })),
        );
        let wrote = json!({
            "tool_name": "Write", "tool_use_id": "toolu_01",
            "tool_input": { "file_path": file, "content": "pub fn login() {}\n" },
            "tool_response": { "type": "create", "filePath": file, "content": "pub fn login() {}\n" },
        });
        let wrote = hooked.claude("PostToolUse", wrote);
        hooked.hook("post-tool-use", &wrote);
        hooked.hook("post-tool-use", &wrote);
        hooked.hook("post-tool-use", &hooked.bash("cargo test", "test result: ok. 3 passed; 0 failed"));
        assert_eq!(hooked.queue(), [2, 0, 0, 0], "a tool use that is reported twice must be stored once");
        hooked.hook("stop", &hooked.claude("Stop", json!({ "stop_hook_active": false })));
        assert_eq!(hooked.work(), 2);
        let seen = hooked.observations();
        let of_tool = |tool: &str| seen.iter().find(|one| one["tool_name"] == tool).unwrap();
        assert_eq!(of_tool("Write")["files_touched"], json!(["src/login.rs"]));
        assert_eq!(of_tool("Write")["tool_use_id"], "toolu_01");

        let compact = json!({ "trigger": "manual", "custom_instructions": "Keep the numbers" });
        hooked.hook("pre-compact", &hooked.claude("PreCompact", compact));
        let saved = hooked.data(&["checkpoint", "load", "--session", CHAT]);
        assert_eq!(saved["context"]["prompts"], json!(["Write a login"]));
        assert_eq!(saved["context"]["observations"].as_array().unwrap().len(), 2);
        let session = hooked.sessions().remove(0);
        assert_eq!((&session["agent"], &session["repo"]), (&"claude-code".into(), &"local/shop".into()));
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({ "reason": "prompt_input_exit" })));
        assert!(hooked.sessions().is_empty());

        let start = with(
            hooked.claude("SessionStart", json!({ "source": "clear" })),
            json!({ "session_id": "next" }),
        );
        let response = hooked.response("session-start", &start);
        assert_eq!(response.lines().count(), 1, "the response must be one line of JSON: {response:?}");
        let response: Value = serde_json::from_str(&response).unwrap();
        let answer = response["hookSpecificOutput"].as_object().unwrap();
        assert_eq!((response.as_object().unwrap().len(), answer.len()), (1, 2), "{response}");
        assert_eq!(answer["hookEventName"], "SessionStart");
        let handoff = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"][0].clone();
        let context = answer["additionalContext"].as_str().unwrap();
        assert!(context.contains(handoff["id"].as_str().unwrap()), "{context}");
        assert_eq!(handoff["from_agent"], "claude-code");
        assert!(hooked.troubles().is_empty() && hooked.spilled().is_empty());
        assert_eq!(hooked.diagnosis().0, "ok");
    }
}

#[test]
fn a_codex_chat_creates_a_session_and_observations() {
    for hooked in Hooked::each() {
        let codex = |event: &str, more: Value| {
            let report = json!({
                "session_id": CHAT, "turn_id": "1", "hook_event_name": event, "model": "gpt-5-codex",
                "transcript_path": format!("/home/dev/.codex/sessions/2026/01/17/rollout-{CHAT}.jsonl"),
                "cwd": hooked.home.working_folder(), "permission_mode": "default",
            });
            with(report, more)
        };
        hooked.hook("SessionStart", &codex("SessionStart", json!({ "source": "startup" })));
        hooked.hook("UserPromptSubmit", &codex("UserPromptSubmit", json!({ "prompt": "Fix it" })));
        let patch = "*** Begin Patch\n*** Update File: src/login.rs\n@@\n-a\n+b\n*** End Patch\n";
        let used = [
            json!({ "tool_name": "apply_patch", "tool_use_id": "call_1", "tool_input": { "input": patch },
                    "tool_response": "Success. Updated the following files:\nM src/login.rs\n" }),
            json!({ "tool_name": "Bash", "tool_use_id": "call_2",
                    "tool_input": { "command": ["bash", "-lc", "cargo test"] },
                    "tool_response": "test result: FAILED. 1 passed; 2 failed" }),
        ];
        for used in used {
            hooked.hook("PostToolUse", &codex("PostToolUse", used));
        }
        hooked.hook(
            "Stop",
            &codex("Stop", json!({ "stop_hook_active": false, "last_assistant_message": null })),
        );
        assert_eq!(hooked.work(), 2);
        let session = hooked.sessions().remove(0);
        assert_eq!((&session["agent"], &session["client"]), (&"codex".into(), &"codex".into()));
        assert_eq!(session["client_session_id"], CHAT);
        let found = hooked.data(&["observation", "list", "--file", "login.rs"])["observations"].clone();
        assert_eq!(
            (&found[0]["tool_name"], &found[0]["files"]),
            (&"apply_patch".into(), &json!(["src/login.rs"]))
        );
        let other = hooked.call(
            &["SessionStart", "--client", "claude-code", "--agent", "reviewer"],
            codex("SessionStart", json!({})).to_string().as_bytes(),
        );
        let response: Value = serde_json::from_str(&other.stdout).unwrap();
        let context = response["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(context.contains("Other active agents:\n- codex, edits src/login.rs ["), "{context}");
        let reviewer = hooked.sessions().remove(0);
        // Codex imports the hooks of Claude Code with their arguments; the report shows which program runs them.
        assert_eq!((&reviewer["agent"], &reviewer["client"]), (&"reviewer".into(), &"codex".into()));
    }
}

#[test]
fn failed_tool_uses_become_observations() {
    let hooked = Hooked::new();
    let failed = json!({
        "tool_name": "Bash", "tool_use_id": "toolu_02", "tool_input": { "command": "cargo build" },
        "error": "Command exited with non-zero status code 101", "is_interrupt": false,
    });
    hooked.hook("PostToolUseFailure", &hooked.claude("PostToolUseFailure", failed));
    assert_eq!(hooked.work(), 1);
    let raw = hooked.raw(&hooked.observations()[0]);
    let expected = json!({ "is_error": true, "content": "Command exited with non-zero status code 101" });
    assert_eq!(raw["tool_response"], expected);
    assert_eq!(raw["observation"]["title"], "Run cargo build: exit 101");
    let refused = json!({
        "tool_name": "Edit", "tool_use_id": "toolu_03", "error": "String to replace not found in file.",
        "tool_input": { "file_path": "a.rs", "old_string": "fn old() {}", "new_string": "fn new() {}" },
    });
    hooked.hook("PostToolUseFailure", &hooked.claude("PostToolUseFailure", refused));
    assert_eq!(hooked.work(), 1);
    let seen = hooked.observations().remove(0);
    assert_eq!(seen["title"], "Edit a.rs: failed, String to replace not found in file");
    assert_eq!(seen["functions_changed"], json!([]));
}

#[test]
fn missing_and_null_fields_get_defaults() {
    let hooked = Hooked::new();
    hooked.hook("stop", &json!({}));
    let session = hooked.sessions().remove(0);
    assert_eq!((&session["repo"], &session["agent"]), (&"local/shop".into(), &"claude-code".into()));
    let nothing = json!({
        "session_id": null, "cwd": null, "transcript_path": null, "tool_name": "Bash", "tool_input": null,
        "tool_response": null, "tool_use_id": null, "repo": null, "branch": null, "agent": null,
    });
    hooked.hook("post-tool-use", &nothing);
    assert_eq!(hooked.queue(), [1, 0, 0, 0], "a null field counts as absent");
    assert_eq!(hooked.sessions().len(), 1, "the same folder must be the same session");
    assert_eq!(hooked.work(), 1);
    let raw = hooked.raw(&hooked.observations()[0]);
    assert_eq!((&raw["tool_response"], &raw["observation"]["raw_bytes"]), (&Value::Null, &0.into()));
}

#[test]
fn events_after_session_end_start_no_session() {
    for hooked in Hooked::each() {
        hooked.hook("post-tool-use", &hooked.bash("ls", "a"));
        for _ in 0..2 {
            for event in ["session-end", "stop", "session-end", "pre-compact"] {
                hooked.hook(event, &hooked.claude(event, json!({})));
                assert!(hooked.sessions().is_empty(), "{event}");
            }
        }
        let ended = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].clone();
        assert_eq!(ended.as_array().unwrap().len(), 1);
        hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": "Go on" })));
        assert_eq!(hooked.sessions().len(), 1, "a prompt must start the session again");
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({})));
        assert!(hooked.sessions().is_empty());
    }
}

#[test]
fn events_that_two_configurations_report_are_stored_once() {
    for hooked in Hooked::each() {
        let prompt = hooked.claude("UserPromptSubmit", json!({ "prompt": "Ship it." }));
        let tool = json!({ "tool_name": "Bash", "tool_use_id": "t-1", "tool_input": { "command": "ls" } });
        let tool = hooked.claude("PostToolUse", with(tool, json!({ "tool_response": "a" })));
        for _ in 0..2 {
            hooked.hook("session-start", &hooked.claude("SessionStart", json!({})));
            hooked.hook("user-prompt-submit", &prompt);
            hooked.hook("post-tool-use", &tool);
        }
        let sessions = hooked.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        let turns = hooked.data(&["turn", "list", sessions[0]["id"].as_str().unwrap()])["turns"].clone();
        assert_eq!(turns.as_array().unwrap().len(), 1, "{turns}");
        assert_eq!(hooked.data(&["queue", "stats"])["raw"], 1);
    }
}

#[test]
fn tool_uses_of_cursor_that_two_configurations_report_are_stored_once_if_they_have_an_id() {
    for hooked in Hooked::each() {
        let report = |event: &str, more: Value| {
            let fields = json!({
                "conversation_id": "cursor-chat", "generation_id": "g-1", "cursor_version": "2.4",
                "workspace_roots": [hooked.home.working_folder()], "hook_event_name": event,
                "tool_name": "Shell", "tool_input": { "command": "make" }, "tool_output": "\"done\"",
            });
            with(fields, more).to_string()
        };
        // Cursor runs its own hook and that of Claude Code, each with its own name of the event.
        let both = |more: &Value| {
            for (client, event) in [("cursor", "postToolUse"), ("claude-code", "PostToolUse")] {
                hooked.call(&["post-tool-use", "--client", client], report(event, more.clone()).as_bytes());
            }
        };
        both(&json!({ "tool_use_id": "t-1" }));
        both(&json!({ "tool_use_id": "t-2" }));
        assert_eq!(hooked.data(&["queue", "stats"])["raw"], 2);
        // Without an id, equal reports can be a command that ran twice.
        both(&json!({}));
        assert_eq!(hooked.data(&["queue", "stats"])["raw"], 4);
    }
}

#[test]
fn start_that_two_configurations_report_adds_the_context_once() {
    for hooked in Hooked::each() {
        hooked
            .hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": "Ship it." })));
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({})));
        // Cursor runs its own hook and, at the same time, the hook of Claude Code.
        let start = json!({
            "conversation_id": "cursor-chat", "generation_id": "g-1", "cursor_version": "2.1",
            "workspace_roots": [hooked.home.working_folder()],
        });
        let own =
            with(start.clone(), json!({ "hook_event_name": "sessionStart", "session_id": "cursor-chat" }));
        let of_claude =
            with(start, json!({ "hook_event_name": "SessionStart", "cwd": hooked.home.working_folder() }));
        let run = |client: &'static str, report: Value| {
            let hooked = &hooked;
            move || hooked.call(&["session-start", "--client", client], report.to_string().as_bytes()).stdout
        };
        let answers = std::thread::scope(|scope| {
            let calls = [scope.spawn(run("cursor", own)), scope.spawn(run("claude-code", of_claude))];
            calls.map(|call| call.join().unwrap())
        });
        let given: Vec<&String> =
            answers.iter().filter(|answer| answer.contains("additional_context")).collect();
        assert_eq!(given.len(), 1, "{answers:?}");
        assert!(given[0].contains("Ship it."), "{answers:?}");
        let sessions = hooked.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        assert_eq!(sessions[0]["client"], "cursor");
        let tool = json!({
            "conversation_id": "cursor-chat", "generation_id": "g-1", "cursor_version": "2.1", "tool_name": "Shell",
            "tool_use_id": "tool-1", "tool_input": { "command": "ls" }, "tool_output": "{\"output\":\"a\"}",
            "cwd": hooked.home.working_folder(),
        });
        std::thread::scope(|scope| {
            for client in ["cursor", "claude-code"] {
                let (hooked, tool) = (&hooked, tool.to_string());
                scope.spawn(move || hooked.call(&["post-tool-use", "--client", client], tool.as_bytes()));
            }
        });
        assert_eq!(hooked.work(), 1, "one tool use is one observation");
        assert_eq!(hooked.sessions().len(), 1);
    }
}
