//! History of a file and of a command: `recall.get` with a file or a command.

use baton_core::{Access, Sha256Hash};
use serde_json::{Value, json};

use crate::observing::{bash, edit, holder};
use crate::stage::{MINUTE, NOW, Stage, ok, refused};

fn hash(content: &str) -> String {
    Sha256Hash::of(content.as_bytes()).to_string()
}

/// Reports the edit of a file in a chat, with its content afterwards.
fn change(stage: &Stage, chat: &str, file: &str, content: &str) {
    let mut report = edit(file);
    report["session_id"] = chat.into();
    report["root"] = "/home/dev/shop".into();
    report["file_hashes"] = json!({ file: hash(content) });
    ok(&stage.hook("post-tool-use", report));
}

fn prompt(stage: &Stage, chat: &str, text: &str) {
    ok(&stage.hook("user-prompt-submit", json!({ "session_id": chat, "prompt": text })));
}

fn about(stage: &Stage, params: Value) -> Value {
    ok(&stage.call("recall.get", params))
}

/// Two chats that change one file, and a note about it.
fn two_chats(stage: &Stage) {
    prompt(stage, "chat-1", "Make the walrus fast");
    change(stage, "chat-1", "src/walrus.rs", "one");
    change(stage, "chat-1", "src/other.rs", "one");
    stage.clock.set(NOW.plus(MINUTE));
    prompt(stage, "chat-2", "Make the walrus safe");
    change(stage, "chat-2", "src/walrus.rs", "two");
    assert_eq!(stage.work(), 3);
    let note = json!({ "text": "No locks", "kind": "decision", "file": "src/walrus.rs", "repo": "o/r", "venture": "v" });
    ok(&stage.call("note.create", note));
}

#[test]
fn a_file_lists_its_sessions_turns_and_notes() {
    for stage in Stage::each() {
        two_chats(&stage);
        for path in ["src/walrus.rs", "./src/walrus.rs", "walrus.rs"] {
            let file = about(&stage, json!({ "file": path, "repo": "o/r" }))["file"].clone();
            assert_eq!(file["session_count"], 2, "{file}");
            let titles: Vec<&str> = file["sessions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|session| session["turns"][0]["title"].as_str().unwrap())
                .collect();
            assert_eq!(titles, ["Make the walrus safe", "Make the walrus fast"]);
            assert_eq!(
                (&file["sessions"][0]["changes"], &file["sessions"][0]["reads"]),
                (&1.into(), &0.into())
            );
            assert_eq!(file["notes"][0]["text"], "No locks");
            assert_eq!(file["changed_since"], Value::Null, "the current content is not known");
        }
        let limited = about(&stage, json!({ "file": "walrus.rs", "limit": 1 }))["file"].clone();
        assert_eq!(
            (limited["sessions"].as_array().unwrap().len(), &limited["session_count"]),
            (1, &2.into())
        );
        let unknown = about(&stage, json!({ "file": "src/alrus.rs" }))["file"].clone();
        assert_eq!((&unknown["session_count"], &unknown["notes"]), (&0.into(), &json!([])));
    }
}

#[test]
fn a_file_says_whether_its_content_changed_since_it_was_seen() {
    for stage in Stage::each() {
        two_chats(&stage);
        for (content, expected) in [("two", false), ("one", true), ("three", true)] {
            let params = json!({ "file": "src/walrus.rs", "repo": "o/r", "content_hash": hash(content) });
            assert_eq!(about(&stage, params)["file"]["changed_since"], expected, "{content}");
        }
    }
}

#[test]
fn a_command_lists_its_runs_latest_first() {
    for stage in Stage::each() {
        for (minute, command, output) in [
            (0, "cargo test walrus", "test result: FAILED. 1 passed; 2 failed"),
            (1, "cargo test walrus --release", "test result: ok. 3 passed; 0 failed"),
            (2, "cargo build", "Finished"),
        ] {
            stage.clock.set(NOW.plus(minute * MINUTE));
            ok(&stage.hook("post-tool-use", bash(command, output)));
        }
        ok(&stage.hook("post-tool-use", edit("src/cargo_test_walrus.rs")));
        stage.work();
        let runs = about(&stage, json!({ "command": "cargo test walrus" }))["command"]["runs"].clone();
        let runs = runs.as_array().unwrap();
        assert_eq!(runs.len(), 2, "{runs:?}");
        assert!(runs[0]["created_at"].as_str() > runs[1]["created_at"].as_str(), "{runs:?}");
        assert!(runs[1]["title"].as_str().unwrap().contains("2 of 3 failed"), "{runs:?}");
        assert_eq!(about(&stage, json!({ "command": "npm test" }))["command"]["runs"], json!([]));
        assert_eq!(
            about(&stage, json!({ "command": "cargo", "limit": 1 }))["command"]["runs"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
}

#[test]
fn questions_are_checked_and_limited_to_the_ventures_of_the_caller() {
    for stage in Stage::each() {
        two_chats(&stage);
        for params in [
            json!({}),
            json!({ "file": " " }),
            json!({ "command": "" }),
            json!({ "file": "a", "command": "b" }),
            json!({ "file": "a", "limit": 0 }),
            json!({ "file": "a", "content_hash": "x" }),
        ] {
            refused(&stage.call("recall.get", params), "invalid_request");
        }
        let outsider = holder(Access::Read, &["w"]);
        let file =
            ok(&stage.as_holder(&outsider, "recall.get", json!({ "file": "walrus.rs" })))["file"].clone();
        assert_eq!((&file["session_count"], &file["notes"]), (&0.into(), &json!([])));
        let runs = ok(&stage.as_holder(&outsider, "recall.get", json!({ "command": "cargo" })));
        assert_eq!(runs["command"]["runs"], json!([]));
    }
}
