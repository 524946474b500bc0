//! The context bundle through the real binary: `baton context`, `GET /api/context`, `/sod` and the session-start hook.

use serde_json::{Value, json};

use crate::hooked::{CHAT, Hooked};
use crate::served::with;

/// Returns the context that the session-start hook of a new chat adds.
fn started(hooked: &Hooked, chat: &str, more: Value) -> String {
    let report = with(with(hooked.claude("SessionStart", json!({})), json!({ "session_id": chat })), more);
    let response = hooked.response("session-start", &report);
    if response.is_empty() {
        return String::new();
    }
    let response: Value = serde_json::from_str(&response).unwrap();
    response["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn work(hooked: &Hooked, prompt: &str, file: &str) {
    hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": prompt })));
    let path = hooked.home.working_folder().join(file);
    let edit = json!({
        "tool_name": "Edit", "tool_use_id": file,
        "tool_input": { "file_path": path, "old_string": "a", "new_string": "b" },
        "tool_response": { "filePath": path },
    });
    hooked.hook("post-tool-use", &hooked.claude("PostToolUse", edit));
    hooked.work();
}

#[test]
fn the_bundle_has_a_fixed_order_ids_and_equal_bytes_for_equal_state() {
    for hooked in Hooked::each() {
        work(&hooked, "Fix the login", "src/login.rs");
        let session = hooked.sessions()[0]["id"].as_str().unwrap().to_owned();
        let payload =
            json!({ "blockers": ["No access to the identity provider"], "next_actions": ["Write a test"] });
        let ended = hooked.data(&[
            "session",
            "end",
            &session,
            "--summary",
            "The login works",
            "--payload",
            &payload.to_string(),
        ]);
        let handoff = ended["handoff_id"].as_str().unwrap();
        let read = || hooked.data(&["context", "--repo", "local/shop"]);
        let context = read();
        let text = context["context"].as_str().unwrap();
        let places: Vec<usize> =
            ["The login works", "No access to the identity provider", "Write a test", "src/login.rs"]
                .iter()
                .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}")))
                .collect();
        assert!(places.is_sorted(), "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
        assert!(lines.iter().all(|line| line.ends_with(']')), "every line must have an id: {text}");
        assert!(text.contains(handoff), "{text}");
        assert!(context["tokens"].as_u64().unwrap() <= 2_000);
        assert_eq!(read(), context, "equal state must give equal bytes");
        let server = hooked.home.serve();
        assert_eq!(server.get("/api/context?repo=local/shop").json(), context);
        let start = json!({ "agent": "codex-9", "repo": "local/shop", "include_context": true });
        let answer = server.send("POST", "/sod", &[], start.to_string().as_bytes()).json();
        assert!(answer["context"].as_str().unwrap().contains("Write a test"), "{answer}");
    }
}

#[test]
fn a_request_selects_the_files_and_items_of_the_context() {
    for hooked in Hooked::each() {
        work(&hooked, "Round the invoice totals", "src/invoice.rs");
        work(&hooked, "Fix the login", "src/login.rs");
        let read = |prompt: &str| hooked.data(&["context", "--repo", "local/shop", "--prompt", prompt]);
        let context = read("Why are the totals of an invoice rounded?");
        let text = context["context"].as_str().unwrap();
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(place("- src/invoice.rs") < place("- src/login.rs"), "{text}");
        assert!(place("- src/login.rs") < place("Round the invoice totals"), "{text}");
        assert_eq!(read("Why are the totals of an invoice rounded?"), context);
        let other = read("login");
        let text = other["context"].as_str().unwrap();
        assert!(text.find("- src/login.rs") < text.find("- src/invoice.rs"), "{text}");
    }
}

#[test]
fn related_items_are_not_reads_and_searches() {
    for hooked in Hooked::each() {
        work(&hooked, "Round the invoice totals", "src/invoice.rs");
        let search = json!({
            "tool_name": "Grep", "tool_use_id": "search",
            "tool_input": { "pattern": "invoice totals", "output_mode": "content" },
            "tool_response": { "mode": "content", "content": "src/invoice.rs:1:// invoice totals", "numLines": 1 },
        });
        hooked.hook("post-tool-use", &hooked.claude("PostToolUse", search));
        hooked.work();
        let context =
            hooked.data(&["context", "--repo", "local/shop", "--prompt", "Are the invoice totals right?"]);
        let text = context["context"].as_str().unwrap();
        let (_, related) = text.split_once("Related:\n").unwrap_or_else(|| panic!("{text}"));
        assert!(related.contains("Round the invoice totals"), "{text}");
        assert!(!related.contains("Search for 'invoice totals'"), "{text}");
    }
}

#[test]
fn a_resumed_chat_gets_nothing_and_a_compacted_chat_gets_its_own_context() {
    for hooked in Hooked::each() {
        work(&hooked, "Fix the login of the shop", "src/login.rs");
        let other = with(
            hooked.claude("UserPromptSubmit", json!({ "prompt": "Unrelated request" })),
            json!({ "session_id": "other-chat" }),
        );
        hooked.hook("user-prompt-submit", &other);
        hooked.hook("pre-compact", &hooked.claude("PreCompact", json!({ "trigger": "auto" })));
        assert_eq!(started(&hooked, CHAT, json!({ "source": "resume" })), "");
        assert_eq!(started(&hooked, CHAT, json!({ "source": "fork" })), "");
        let own = started(&hooked, CHAT, json!({ "source": "compact" }));
        for part in
            ["Goal:\n- Fix the login of the shop", "src/login.rs", "workflow_checkpoint_load", "ckpt_"]
        {
            assert!(own.contains(part), "{part} is not in {own}");
        }
        assert!(!own.contains("Unrelated"), "{own}");
        let again = started(&hooked, CHAT, json!({ "source": "compact" }));
        assert_eq!(again, "", "two configurations report one compaction");
    }
}

#[test]
fn an_unfinished_request_and_other_agents_with_their_files_are_named() {
    for hooked in Hooked::each() {
        work(&hooked, "Rename the column", "src/orders.rs");
        let text = started(&hooked, "next-chat", json!({ "source": "startup" }));
        assert!(text.contains("Other active agents:\n- claude-code, edits src/orders.rs [sess_"), "{text}");
        let stop = json!({ "hook_event_name": "StopFailure", "error": "usage limit reached" });
        hooked.hook("stop", &hooked.claude("Stop", stop));
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({ "reason": "other" })));
        let text = started(&hooked, "third-chat", json!({ "source": "startup" }));
        assert!(text.contains("failed: Rename the column (usage limit reached) [turn_"), "{text}");
    }
}

#[test]
fn an_interruption_that_is_reported_as_a_prompt_is_no_request() {
    for hooked in Hooked::each() {
        work(&hooked, "Rename the column", "src/orders.rs");
        let note = json!({ "prompt": "[Request interrupted by user for tool use]" });
        hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", note));
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({ "reason": "other" })));
        let text = started(&hooked, "next-chat", json!({ "source": "startup" }));
        assert!(text.contains("that was interrupted: Rename the column [turn_"), "{text}");
        assert!(!text.contains("[Request interrupted"), "{text}");
    }
}

#[test]
fn invalid_budgets_and_unknown_repositories_have_clear_results() {
    let hooked = Hooked::new();
    for budget in ["199", "-1", "100001"] {
        let refused = hooked.home.run(&["context", "--repo", "a/b", "--max-tokens", budget]);
        assert_eq!(refused.code, 7, "{refused:?}");
        assert!(refused.stderr.contains("max_tokens"), "{refused:?}");
    }
    let nothing = hooked.home.run(&["context", "--repo", "a/b"]);
    assert_eq!((nothing.code, nothing.stdout.trim()), (0, "nothing is recorded for a/b"));
    let outside = hooked.home.run(&["context"]);
    assert_eq!(outside.code, 2, "{outside:?}");
    assert!(outside.stderr.contains("--repo"), "{outside:?}");
}

/// An agent records everything that matters and ends; an agent of another name receives it from its
/// session-start hook.
#[test]
fn session_start_gives_a_second_agent_the_whole_context() {
    for hooked in Hooked::each() {
        hooked.hook(
            "user-prompt-submit",
            &hooked.claude("UserPromptSubmit", json!({ "prompt": "Move the login" })),
        );
        let session = hooked.sessions()[0]["id"].as_str().unwrap().to_owned();
        let facts = json!({
            "goal": "Move the login to the identity provider without logging users out",
            "decisions": [
                "Keep the session cookie, because mobile clients cannot be updated",
                "Map accounts by verified mail address, because user names are not unique",
                "Switch over behind the flag login_v2, because a rollback must take seconds",
            ],
            "rejected": ["Run both logins in parallel: sessions would be written twice"],
            "gotchas": ["The provider drops the state parameter after 512 bytes"],
            "blockers": ["Production client secret is missing; ops has been asked"],
            "state": "Failing check: login::tests::maps_accounts_without_mail",
            "next_actions": ["Fix maps_accounts_without_mail", "Add the migration 0042_accounts"],
        });
        let end =
            ["session", "end", &session, "--summary", "The mapping works except for accounts without mail"];
        hooked.data(&[&end[..], &["--payload", &facts.to_string()]].concat());
        let report = json!({
            "session_id": "second-chat", "turn_id": "1", "hook_event_name": "SessionStart", "source": "startup",
            "cwd": hooked.home.working_folder(), "model": "gpt-5-codex",
        });
        let start = hooked.call(&["SessionStart", "--client", "codex"], report.to_string().as_bytes());
        let response: Value = serde_json::from_str(&start.stdout).unwrap();
        let known = response["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        let texts = facts.as_object().unwrap().values().flat_map(|value| match value {
            Value::Array(items) => items.clone(),
            text => vec![text.clone()],
        });
        for text in texts {
            assert!(known.contains(text.as_str().unwrap()), "{text} is not in {known}");
        }
        assert!(known.contains("codex"), "{known}");
        assert!(baton_core::estimate_tokens(known) <= 1_500, "{known}");
    }
}
