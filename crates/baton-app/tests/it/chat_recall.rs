//! Recall during a chat: items related to a prompt, and a line before an edit.

use baton_app::{ChatRecall, Settings};
use baton_core::Sha256Hash;
use serde_json::{Value, json};

use crate::observing::edit;
use crate::stage::{HOUR, NOW, Stage, ok, refused};

fn with_recall(settings: &mut Settings) {
    settings.observations.recall = ChatRecall { on_prompt: true, before_edit: true };
}

/// Reports an event of a chat and returns the context that the response adds.
fn added(stage: &Stage, chat: &str, event: &str, mut report: Value) -> String {
    report["session_id"] = chat.into();
    report["root"] = "/home/dev/shop".into();
    let output = ok(&stage.hook(event, report));
    output["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

fn prompt(stage: &Stage, chat: &str, text: &str) -> String {
    added(stage, chat, "user-prompt-submit", json!({ "prompt": text }))
}

fn edit_with(file: &str, content: &str) -> Value {
    let mut report = edit(file);
    report["file_hashes"] = json!({ file: Sha256Hash::of(content.as_bytes()) });
    report
}

/// One chat that works on the walrus importer and records a decision.
fn earlier_chat(stage: &Stage) {
    prompt(stage, "old", "Make the walrus importer skip invalid penguins");
    added(stage, "old", "post-tool-use", edit_with("src/walrus.rs", "one"));
    let closing = json!({ "last_assistant_message": "The walrus importer skips invalid penguins." });
    added(stage, "old", "stop", closing);
    assert_eq!(stage.work(), 1);
    let note = json!({
        "text": "Penguins without a name are invalid", "kind": "decision", "file": "src/walrus.rs", "repo": "o/r",
        "venture": "v",
    });
    ok(&stage.call("note.create", note));
    ok(&stage.call("recall.search", json!({ "q": "walrus" })));
    stage.clock.set(NOW.plus(HOUR));
}

#[test]
fn nothing_is_added_unless_it_is_enabled() {
    for stage in Stage::each() {
        earlier_chat(&stage);
        assert_eq!(prompt(&stage, "new", "Does the walrus importer skip invalid penguins?"), "");
        assert_eq!(added(&stage, "quiet", "pre-tool-use", edit("src/walrus.rs")), "");
        assert_eq!(stage.active().len(), 2, "a disabled event starts no session");
    }
}

#[test]
fn prompts_add_up_to_three_related_items_once_per_chat() {
    for stage in Stage::each_with(with_recall) {
        earlier_chat(&stage);
        let question = "Does the walrus importer skip invalid penguins?";
        let first = prompt(&stage, "new", question);
        let lines: Vec<&str> = first.lines().collect();
        assert!((2..=4).contains(&lines.len()), "{first}");
        assert!(lines[0].ends_with("for reference:"), "{first}");
        assert!(first.contains("walrus importer skip invalid penguins"), "{first}");
        assert!(lines[1..].iter().all(|line| line.starts_with("- ") && line.ends_with(']')), "{first}");
        for line in &lines[1..] {
            let again = prompt(&stage, "new", &format!("{question} Please check."));
            let id = line.rsplit('[').next().unwrap();
            assert!(!again.contains(id), "{id} must be added once: {again}");
        }
        assert_eq!(prompt(&stage, "other", question), first, "another chat receives them");
        assert_eq!(prompt(&stage, "third", "Paint the garden fence"), "", "nothing is related");
        assert_eq!(prompt(&stage, "third", "penguins"), "", "one word is not enough");
        let long = format!("{question} {}", "Unrelated filler sentence about gardens. ".repeat(50));
        prompt(&stage, "third", &long);
    }
}

#[test]
fn related_items_say_which_files_changed_since() {
    for stage in Stage::each_with(with_recall) {
        earlier_chat(&stage);
        let question = "Does the walrus importer skip invalid penguins?";
        assert!(!prompt(&stage, "one", question).contains("changed since"));
        added(&stage, "editor", "post-tool-use", edit_with("src/walrus.rs", "two"));
        let text = prompt(&stage, "two", question);
        assert!(text.contains("changed since: src/walrus.rs"), "{text}");
        let turn =
            ok(&stage.call("recall.search", json!({ "q": question, "kind": "turn" })))["results"][0].clone();
        let got = ok(&stage.call("recall.get", json!({ "ids": turn["id"] })));
        assert_eq!(got["items"][0]["changed_files"], json!(["src/walrus.rs"]));
    }
}

#[test]
fn the_first_edit_of_a_file_adds_a_line_about_it() {
    for stage in Stage::each_with(with_recall) {
        earlier_chat(&stage);
        let line = added(&stage, "new", "pre-tool-use", edit_with("src/walrus.rs", "one"));
        assert!(line.starts_with("Baton: src/walrus.rs: 1 other session worked on it, last "), "{line}");
        assert!(line.contains("Make the walrus importer skip") && !line.contains("changed since"), "{line}");
        assert!(line.contains("decision: Penguins without a name are invalid [note_"), "{line}");
        assert_eq!(line.lines().count(), 1);
        assert_eq!(added(&stage, "new", "pre-tool-use", edit("src/walrus.rs")), "", "once per chat");
        assert_eq!(added(&stage, "new", "pre-tool-use", edit("src/unknown.rs")), "");
        let read =
            json!({ "tool_name": "Read", "tool_input": { "file_path": "/home/dev/shop/src/walrus.rs" } });
        assert_eq!(added(&stage, "reader", "pre-tool-use", read), "", "only edits add a line");
        let changed = added(&stage, "late", "pre-tool-use", edit_with("src/walrus.rs", "two"));
        assert!(changed.contains("the file changed since"), "{changed}");
        assert_eq!(added(&stage, "old", "pre-tool-use", json!({ "tool_name": "Edit" })), "");
        refused(&stage.hook("post-tool-use", json!({})), "invalid_request");
    }
}

#[test]
fn rejected_items_are_not_added() {
    for stage in Stage::each_with(with_recall) {
        earlier_chat(&stage);
        let question = "Does the walrus importer skip invalid penguins?";
        let found =
            ok(&stage.call("recall.search", json!({ "q": question, "limit": 100 })))["results"].clone();
        for item in found.as_array().unwrap() {
            ok(&stage.call("memory.reject", json!({ "id": item["id"] })));
        }
        assert_eq!(prompt(&stage, "new", question), "");
        assert_eq!(added(&stage, "new", "pre-tool-use", edit("src/walrus.rs")), "");
    }
}
