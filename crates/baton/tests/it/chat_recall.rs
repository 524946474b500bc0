//! Recall during a chat through the real binary: the settings, the format of hosts, and what setup installs.

use baton_testkit::binary::Home;
use serde_json::{Value, json};

use crate::hooked::Hooked;
use crate::served::with;

const QUESTION: &str = "Does the walrus importer skip invalid penguins?";

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
        .working_in("shop")
        .with("BATON_RECALL_ON_PROMPT", "on")
        .with("BATON_RECALL_BEFORE_EDIT", "on")
}

fn edit(hooked: &Hooked, event: &str, chat: &str) -> Value {
    let path = hooked.home.working_folder().join("src/walrus.rs");
    let report = json!({
        "session_id": chat, "tool_name": "Edit",
        "tool_input": { "file_path": path, "old_string": "a", "new_string": "b" },
    });
    with(hooked.claude(event, json!({})), report)
}

fn ask(hooked: &Hooked, chat: &str) -> Value {
    with(hooked.claude("UserPromptSubmit", json!({ "prompt": QUESTION })), json!({ "session_id": chat }))
}

fn work(hooked: &Hooked) {
    hooked.response("user-prompt-submit", &ask(hooked, "old"));
    hooked.response("post-tool-use", &edit(hooked, "PostToolUse", "old"));
    hooked.work();
}

#[test]
fn hooks_answer_in_the_format_of_the_host() {
    let hooked = Hooked::at(home());
    work(&hooked);
    let prompt: Value =
        serde_json::from_str(&hooked.response("user-prompt-submit", &ask(&hooked, "new"))).unwrap();
    let output = &prompt["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "UserPromptSubmit");
    assert!(output["additionalContext"].as_str().unwrap().contains(QUESTION), "{prompt}");
    let before: Value =
        serde_json::from_str(&hooked.response("pre-tool-use", &edit(&hooked, "PreToolUse", "new"))).unwrap();
    let output = &before["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "PreToolUse");
    assert!(
        output["additionalContext"].as_str().unwrap().contains("1 other session worked on it"),
        "{before}"
    );
    assert_eq!(hooked.response("pre-tool-use", &edit(&hooked, "PreToolUse", "new")), "");
    let cursor = with(ask(&hooked, "cursor"), json!({ "cursor_version": "3.0" }));
    assert_eq!(hooked.response("user-prompt-submit", &cursor), "", "Cursor accepts no context at a prompt");
}

#[test]
fn hooks_add_nothing_by_default() {
    let hooked = Hooked::new();
    work(&hooked);
    assert_eq!(hooked.response("user-prompt-submit", &ask(&hooked, "new")), "");
    assert_eq!(hooked.response("pre-tool-use", &edit(&hooked, "PreToolUse", "new")), "");
}

#[test]
fn setup_installs_the_hook_before_edits_only_if_it_is_enabled() {
    for (home, expected) in
        [(home(), true), (Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop"), false)]
    {
        let finished = home.run(&["setup", "claude-code", "codex"]);
        assert_eq!(finished.code, 0, "{finished:?}");
        for file in [".claude/skills/baton/hooks/hooks.json", ".codex/hooks.json"] {
            let text = std::fs::read_to_string(home.path().join(file)).unwrap();
            assert_eq!(text.contains("pre-tool-use"), expected, "{file}: {text}");
        }
    }
}
