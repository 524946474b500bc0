//! `hook.report`: mapping of events to sessions, stored data and rejected reports.

use baton_core::SessionStatus;
use baton_observation::HookEvent;
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::observing::{CHAT, bash, edit, report};
use crate::stage::{HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, refused, who};

/// Returns the required fields of an event.
fn required_fields(event: HookEvent) -> Value {
    match event {
        HookEvent::UserPromptSubmit => json!({ "prompt": "Make it fast" }),
        HookEvent::PostToolUse => bash("ls", "a b"),
        _ => json!({}),
    }
}

#[test]
fn every_event_resumes_or_creates_the_session_of_its_chat() {
    for stage in Stage::each() {
        for event in HookEvent::ALL.iter().copied().filter(|event| *event != HookEvent::PreToolUse) {
            let fields = || {
                let mut fields = required_fields(event);
                fields["session_id"] = event.as_str().into();
                fields
            };
            let of_chat = || {
                let mut found = stage.active();
                found.retain(|session| {
                    session.tuple.client_session_id.as_ref().is_some_and(|id| id.as_str() == event.as_str())
                });
                found
            };
            ok(&stage.hook(event.as_str(), fields()));
            let first = of_chat();
            if event == HookEvent::SessionEnd {
                assert!(first.is_empty(), "still active: {first:?}");
                continue;
            }
            ok(&stage.hook(event.as_str(), fields()));
            assert_eq!(first.len(), 1, "{event:?}");
            assert_eq!(of_chat()[0].id, first[0].id, "{event:?}");
        }
        assert_eq!(
            stage.active().len(),
            HookEvent::ALL.len() - 2,
            "every event but the end and a tool use that is not finished leaves a session"
        );
    }
}

#[test]
fn each_chat_has_its_own_session() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", bash("one", ""));
        let first = stage.only_session();
        let mut other = bash("two", "");
        other["session_id"] = "chat-2".into();
        assert_eq!(ok(&stage.hook("post-tool-use", other)), json!({}));
        let second = stage.active().remove(0);
        assert_ne!(first.id, second.id);
        assert_eq!(second.tuple.client_session_id.unwrap().as_str(), "chat-2");
        stage.hooked("user-prompt-submit", json!({ "prompt": "Go on" }));
        assert_eq!(stage.prompts(first.id), ["Go on"]);
        assert_eq!(stage.prompts(second.id), Vec::<String>::new());

        stage.hooked("session-end", json!({ "reason": "exit" }));
        assert_eq!(stage.session(first.id).status, SessionStatus::Ended);
        stage.hooked("stop", json!({}));
        assert_eq!(stage.active().len(), 1, "a late stop starts no session");
        stage.hooked("user-prompt-submit", json!({ "prompt": "Once more" }));
        let third = stage.active().remove(0);
        assert!(third.id != first.id && third.id != second.id, "an ended chat gets a new session");
        assert_eq!(third.tuple.client_session_id.unwrap().as_str(), CHAT);
        assert_eq!(stage.session(first.id).status, SessionStatus::Ended, "the ended session stays ended");
    }
}

#[test]
fn stale_chat_gets_a_new_session() {
    for stage in Stage::each() {
        stage.hooked("stop", json!({}));
        let first = stage.only_session().id;
        stage.clock.set(NOW.plus(45 * MINUTE));
        stage.hooked("stop", json!({}));
        assert_eq!(stage.only_session().id, first);
        stage.clock.set(NOW.plus(90 * MINUTE + MILLISECOND));
        stage.hooked("stop", json!({}));
        assert_ne!(stage.only_session().id, first);
        assert_eq!(stage.session(first).status, SessionStatus::Abandoned);
    }
}

#[test]
fn tool_use_counts_as_heartbeat_and_updates_the_branch() {
    for stage in Stage::each() {
        ok(&stage.hook("session-start", json!({ "branch": "main", "host": "desk" })));
        stage.clock.set(NOW.plus(40 * MINUTE));
        let mut used = edit("src/lib.rs");
        used["branch"] = "feature".into();
        stage.hooked("post-tool-use", used);
        let session = stage.only_session();
        assert_eq!(session.last_heartbeat_at, NOW.plus(40 * MINUTE));
        assert_eq!(session.facts.branch.as_deref(), Some("feature"));
        assert_eq!(session.facts.host.as_deref(), Some("desk"), "omitted fields keep their value");
        stage.clock.set(NOW.plus(80 * MINUTE));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        assert_eq!(stage.only_session().id, session.id, "tool uses kept the session active");
    }
}

#[test]
fn agent_name_defaults_to_the_client() {
    for stage in Stage::each() {
        for (number, (fields, agent, client)) in [
            (json!({}), "claude-code", "claude-code"),
            (json!({ "transcript_path": null }), "claude-code", "claude-code"),
            (json!({ "transcript_path": "/home/dev/.codex/sessions/r.jsonl" }), "codex", "codex"),
            (json!({ "transcript_path": "/home/dev/.gemini/tmp/r.json" }), "gemini", "gemini"),
            (json!({ "transcript_path": "/home/dev/.cursor/r.json" }), "cursor", "cursor"),
            (json!({ "client": "codex" }), "codex", "codex"),
            (json!({ "client": "Cursor IDE" }), "agent", "Cursor IDE"),
            (json!({ "agent": "reviewer" }), "reviewer", "claude-code"),
            (json!({ "agent": "reviewer", "client": "codex" }), "reviewer", "codex"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut fields = fields;
            fields["session_id"] = format!("chat-{number}").into();
            ok(&stage.hook("stop", fields.clone()));
            let session = stage.active().remove(0);
            assert_eq!(session.tuple.agent.as_str(), agent, "{fields}");
            assert_eq!(session.facts.client.as_deref(), Some(client), "{fields}");
        }
    }
}

#[test]
fn repository_defaults_to_the_folder_name() {
    for stage in Stage::each() {
        for (folder, repo) in [
            ("/home/dev/shop", "local/shop"),
            ("/home/dev/My Shop/", "local/My-Shop"),
            ("C:\\work\\shop.rs", "local/shop.rs"),
            ("/home/dev/naïve☕", "local/na-ve-"),
            ("/", "local/filesystem-root"),
        ] {
            let report = json!({ "event": "stop", "session_id": folder.len().to_string(), "cwd": folder });
            ok(&stage.call("hook.report", report));
            let session = stage.active().remove(0);
            assert_eq!(session.tuple.repo.as_str(), repo);
            assert_eq!(session.tuple.venture.as_str(), "local", "the configured venture");
        }
        let known = stage.active().len();
        for fields in [json!({}), json!({ "cwd": 7 }), json!({ "cwd": "" })] {
            let mut report = json!({ "event": "stop", "session_id": CHAT });
            report.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let reply = stage.call("hook.report", report);
            assert_eq!(reply.status, 400, "{}", reply.body);
            refused(&reply, "invalid_request");
        }
        assert_eq!(stage.active().len(), known, "nothing was stored");
    }
}

#[test]
fn session_start_returns_the_latest_handoff_and_other_agents() {
    for stage in Stage::each() {
        assert_eq!(
            ok(&stage.hook("session-start", json!({ "source": "startup" }))),
            json!({}),
            "no handoff and no other agents"
        );
        let id = stage.only_session().id;
        let end = json!({
            "session_id": id, "summary": "Login works",
            "payload": { "blockers": ["no key"], "next_actions": ["write tests"] },
        });
        let handoff = ok(&stage.call("session.end", end))["handoff_id"].clone();
        let response = ok(&stage.hook("session-start", json!({ "source": "startup" })));
        let output = &response["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart");
        let text = output["additionalContext"].as_str().unwrap();
        for part in ["Login works", "no key", "write tests", handoff.as_str().unwrap()] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.contains(&stage.only_session().id.to_string()), "{text}");
        let again = ok(&stage.hook("session-start", json!({ "source": "startup" })));
        assert_eq!(again, json!({}), "two configurations report one start");
        stage.clock.set(NOW.plus(MINUTE));
        let later = ok(&stage.hook("session-start", json!({ "source": "startup" })));
        assert_eq!(later, response, "equal state must give equal bytes");
        stage.clock.set(NOW.plus(2 * MINUTE));
        assert_eq!(ok(&stage.hook("session-start", json!({ "source": "resume" }))), json!({}));
        ok(&stage.call("session.start", who("other-agent")));
        let response = ok(&stage.hook("session-start", json!({})));
        let text = response["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(text.contains("Other active agents:\n- other-agent ["), "{text}");
    }
}

#[test]
fn stores_prompts_truncated_and_without_nul_characters() {
    for stage in Stage::each() {
        let long = "接".repeat(10_001);
        let prompts = ["Make it fast", " \n\t\0", "", "nul \0 inside \u{1b}[31m", &long, "接力棒 👩‍💻"];
        for prompt in prompts {
            stage.hooked("user-prompt-submit", json!({ "prompt": prompt }));
        }
        let kept = stage.prompts(stage.only_session().id);
        let cut = format!("{}… [1 more characters: not stored]", "接".repeat(10_000));
        assert_eq!(kept, ["Make it fast", "nul  inside \u{1b}[31m", &cut, "接力棒 👩‍💻"]);
    }
}

#[test]
fn rejects_invalid_reports_and_stores_nothing() {
    for stage in Stage::each() {
        for (event, fields, field) in [
            ("post-tool-use", json!({}), "tool_name"),
            ("post-tool-use", json!({ "tool_name": "" }), "tool_name"),
            ("post-tool-use", json!({ "tool_name": null, "tool_response": "x" }), "tool_name"),
            ("post-tool-use", json!({ "tool_name": [] }), "tool_name"),
            ("user-prompt-submit", json!({}), "prompt"),
            ("user-prompt-submit", json!({ "prompt": {} }), "prompt"),
            ("stop", json!({ "repo": "no slash" }), "repo"),
            ("stop", json!({ "agent": "" }), "agent"),
            ("notification", json!({}), "event"),
        ] {
            let reply = stage.hook(event, fields.clone());
            assert_eq!(reply.status, 400, "{event} {fields}: {}", reply.body);
            let body = refused(&reply, "invalid_request");
            assert!(body["message"].as_str().unwrap().contains(field), "{body}");
        }
        let reply = stage.call("hook.report", json!({ "session_id": CHAT, "repo": "o/r" }));
        assert_eq!(reply.status, 400, "{}", reply.body);
        assert!(stage.active().is_empty());
        assert_eq!(stage.queue(), [0; 4]);
        assert_eq!(read(&stage.store, |tx| tx.next_summary_due_at()), None);
    }
}

#[test]
fn repeated_report_with_the_same_key_is_processed_once() {
    for stage in Stage::each() {
        let used = |stdout: &str| report("post-tool-use", bash("ls", stdout));
        let first = stage.keyed("k", "hook.report", used("a"));
        let again = stage.keyed("k", "hook.report", used("a"));
        assert_eq!((ok(&first), &again.body, again.replayed), (json!({}), &first.body, true));
        assert_eq!(stage.queue(), [1, 0, 0, 0]);
        let other = stage.keyed("k", "hook.report", used("b"));
        refused(&other, "idempotency_mismatch");
        assert_eq!(stage.queue(), [1, 0, 0, 0], "another report with the same key is rejected");
        stage.hooked("post-tool-use", bash("ls", "a"));
        assert_eq!(stage.queue(), [2, 0, 0, 0], "reports without a key are not deduplicated");
        let prompt = || report("user-prompt-submit", json!({ "prompt": "Go" }));
        for _ in 0..2 {
            ok(&stage.keyed("p", "hook.report", prompt()));
        }
        assert_eq!(stage.prompts(stage.only_session().id), ["Go"]);
    }
}

#[test]
fn accepts_large_integers_in_reports_with_a_key() {
    for stage in Stage::each() {
        let used = |id: i64| {
            let response = json!({ "id": id, "at_ns": 1_768_644_000_123_456_789_u64, "ratio": 0.1 });
            report("post-tool-use", json!({ "tool_name": "mcp__tickets__get", "tool_response": response }))
        };
        let id = 9_007_199_254_740_993;
        let first = stage.keyed("k", "hook.report", used(id));
        assert_eq!(ok(&first), json!({}));
        assert!(stage.keyed("k", "hook.report", used(id)).replayed);
        refused(&stage.keyed("k", "hook.report", used(id + 2)), "idempotency_mismatch");
        assert_eq!((stage.queue(), stage.work()), ([1, 0, 0, 0], 1));
        let show = json!({ "observation_id": stage.observations()[0]["id"], "raw": true });
        assert_eq!(ok(&stage.call("observation.show", show))["tool_response"]["id"], id);
    }
}

#[test]
fn queues_a_repeated_tool_use_once() {
    for stage in Stage::each() {
        let used = |id: &str, chat: &str| {
            let mut used = bash("ls", "a");
            used["tool_use_id"] = id.into();
            used["session_id"] = chat.into();
            used
        };
        for _ in 0..2 {
            assert_eq!(ok(&stage.hook("post-tool-use", used("toolu_1", CHAT))), json!({}));
        }
        assert_eq!(stage.queue(), [1, 0, 0, 0]);
        stage.work();
        ok(&stage.hook("post-tool-use", used("toolu_1", CHAT)));
        assert_eq!(stage.queue(), [0, 0, 1, 0]);
        ok(&stage.hook("post-tool-use", used("toolu_1", "chat-2")));
        ok(&stage.hook("post-tool-use", used("toolu_2", CHAT)));
        assert_eq!(stage.queue(), [2, 0, 1, 0]);
    }
}

#[test]
fn stop_requests_a_summary_that_is_created_after_pending_tool_uses() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("stop", json!({}));
        let id = stage.only_session().id;
        let summary = || read(&stage.store, move |tx| tx.summary(id));
        assert_eq!((stage.summarize_due(), summary()), (0, None), "a tool use is pending");
        assert_eq!(stage.work(), 1);
        stage.clock.set(NOW.plus(MINUTE));
        assert_eq!(stage.summarize_due(), 1);
        let made = summary().unwrap();
        assert_eq!((made.observations, made.made_at), (1, NOW.plus(MINUTE)));
        assert_eq!(made.summary.key_files, ["src/lib.rs"]);
        stage.clock.set(NOW.plus(HOUR / 2));
        stage.hooked("stop", json!({}));
        assert_eq!((stage.summarize_due(), summary()), (0, Some(made)), "nothing new to summarize");
        assert_eq!(stage.only_session().id, id, "a stop does not end the chat");
    }
}
