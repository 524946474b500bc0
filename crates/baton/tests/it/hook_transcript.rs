//! Closing messages that the worker reads from transcripts, because the host did not send them.

use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use baton_testkit::binary::Home;
use serde_json::{Value, json};

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
}

/// Writes a transcript of Claude Code in which the agent says this, and returns its path.
fn transcript(folder: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("chat-1.jsonl");
    let line = |kind: &str, second: u32, content: Value| {
        json!({
            "type": kind, "timestamp": format!("2099-01-01T00:00:{second:02}.000Z"), "sessionId": "chat-1",
            "message": { "role": kind, "content": content },
        })
    };
    let said = line("assistant", 2, json!([{ "type": "text", "text": text }]));
    let lines = format!("{}\n{said}\n{{\"type\":\"assi", line("user", 1, json!("Make it fast")));
    std::fs::write(&path, lines).unwrap();
    path
}

/// Reports a turn without a closing message, runs the worker and returns the closing message of the turn.
fn closing(home: &Home, transcript_path: &Path) -> Value {
    let report = |event: &str, more: Value| {
        let mut report = json!({
            "session_id": "chat-1", "cwd": "/home/dev/shop", "transcript_path": transcript_path,
        });
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let done = home.run_with_input(&["hook", event], report.to_string().as_bytes());
        assert_eq!(done.code, 0, "{done:?}");
    };
    report("user-prompt-submit", json!({ "prompt": "Make it fast" }));
    report("stop", json!({}));
    let worked = home.run(&["worker", "run", "--once"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    let sessions = home.run(&["session", "list", "--repo", "local/shop", "--format", "json"]).json();
    let session = sessions["data"]["sessions"][0]["id"].as_str().unwrap().to_owned();
    let turns = home.run(&["turn", "list", &session, "--format", "json"]).json();
    turns["data"]["turns"][0]["closing_message"].clone()
}

#[test]
fn worker_reads_a_missing_closing_message_from_the_transcript() {
    let home = home();
    let folder = home.path().join(".claude/projects/shop");
    let path = transcript(&folder, "It is fast. <private>x</private>");
    assert_eq!(closing(&home, &path), "It is fast. [private]");
}

#[test]
fn transcripts_outside_the_folder_of_the_client_are_refused() {
    for link in [false, true] {
        let home = home();
        let outside = transcript(&home.path().join("elsewhere"), "secret");
        let folder = home.path().join(".claude/projects/shop");
        std::fs::create_dir_all(&folder).unwrap();
        let inside = folder.join("chat-1.jsonl");
        if link {
            symlink(&outside, &inside).unwrap();
        }
        let reported = if link { &inside } else { &outside };
        assert_eq!(closing(&home, reported), Value::Null, "link: {link}");
    }
}

#[test]
fn missing_and_empty_transcripts_leave_the_turn_without_a_closing_message() {
    for is_empty in [false, true] {
        let home = home();
        let folder = home.path().join(".claude/projects/shop");
        let path = transcript(&folder, "gone");
        if is_empty {
            std::fs::write(&path, "").unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(closing(&home, &path), Value::Null);
    }
}

#[test]
fn transcripts_of_another_user_are_refused() {
    let home = home();
    let path = transcript(&home.path().join(".claude/projects/shop"), "secret");
    if std::fs::metadata(&path).unwrap().uid() != 0 {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    chown(&path, Some(4_321), None).unwrap();
    assert_eq!(closing(&home, &path), Value::Null);
    // The same file is read when it belongs to the user of the worker.
    let home = self::home();
    let path = transcript(&home.path().join(".claude/projects/shop"), "not secret");
    assert_eq!(closing(&home, &path), "not secret");
}

#[test]
fn rotated_transcripts_leave_the_turn_without_a_closing_message() {
    let home = home();
    let path = transcript(&home.path().join(".claude/projects/shop"), "of the next chat");
    let rotated = std::fs::read_to_string(&path).unwrap().replace("2099-01-01", "2001-01-01");
    std::fs::write(&path, rotated).unwrap();
    assert_eq!(closing(&home, &path), Value::Null, "a text from before the turn is not its closing message");
}
