//! A database that cannot be written: what hooks report waits as files, and is stored exactly once when it can be.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::json;

use crate::hooked::Hooked;
use crate::served::with;

/// Keeps every other process from writing, until it is dropped.
fn lock(hooked: &Hooked) -> Connection {
    let connection = Connection::open(hooked.home.data_dir().join("baton.db")).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    connection
}

/// A home in which one report waits as a file, because the database was locked.
fn one_waits() -> (Hooked, Connection) {
    let hooked = Hooked::new();
    hooked.hook("stop", &hooked.claude("Stop", json!({})));
    let lock = lock(&hooked);
    let finished = hooked.call(&["post-tool-use"], hooked.bash("ls", "waits").to_string().as_bytes());
    assert_eq!(finished.stdout, "");
    assert_eq!(hooked.spilled().len(), 1);
    let message = hooked.troubles()[0]["message"].clone();
    assert!(message.as_str().unwrap().contains("kept as a file"), "{message}");
    (hooked, lock)
}

fn said(hooked: &Hooked) -> Vec<String> {
    let raw = hooked.observations().iter().map(|one| hooked.raw(one)).collect::<Vec<_>>();
    let mut said: Vec<String> =
        raw.iter().map(|raw| raw["tool_response"]["stdout"].as_str().unwrap().to_owned()).collect();
    said.sort();
    said
}

#[test]
fn what_waited_for_a_locked_database_is_stored_by_the_next_hooks_once() {
    let (hooked, lock) = one_waits();
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("1 reports"), "{level} {message}");
    drop(lock);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let hooked = &hooked;
            scope.spawn(move || {
                hooked.call(&["post-tool-use"], hooked.bash("ls", &number.to_string()).to_string().as_bytes())
            });
        }
    });
    assert!(hooked.spilled().is_empty(), "{:?}", hooked.spilled());
    assert_eq!((hooked.queue(), hooked.work()), ([5, 0, 0, 0], 5));
    assert_eq!(said(&hooked), ["0", "1", "2", "3", "waits"]);
    assert_eq!(hooked.sessions().len(), 1);
}

#[test]
fn what_waited_for_a_locked_database_is_stored_by_a_worker_once() {
    let (hooked, lock) = one_waits();
    drop(lock);
    assert_eq!((hooked.work(), hooked.spilled().len()), (1, 0));
    assert_eq!((hooked.work(), hooked.queue()), (0, [0, 0, 1, 0]));
    assert_eq!(said(&hooked), ["waits"]);
}

/// Makes reports wait, each event of a chat, and mends what kept them.
fn chat_waits() -> (Hooked, Vec<PathBuf>) {
    let hooked = Hooked::new();
    hooked.hook("stop", &hooked.claude("Stop", json!({})));
    let mend = hooked.break_database();
    let prompt = hooked.claude("UserPromptSubmit", json!({ "prompt": "Make it fast" }));
    let large = json!({ "id": 9_007_199_254_740_993_i64, "at_ns": 1_768_644_000_123_456_789_u64 });
    let reports = [
        ("user-prompt-submit", prompt),
        ("post-tool-use", hooked.bash("ls", "a")),
        (
            "post-tool-use",
            hooked.claude("PostToolUse", json!({ "tool_name": "mcp__t__get", "tool_response": large })),
        ),
        ("pre-compact", hooked.claude("PreCompact", json!({ "trigger": "auto" }))),
        ("session-end", hooked.claude("SessionEnd", json!({ "reason": "exit" }))),
    ];
    for (number, (event, report)) in reports.iter().enumerate() {
        hooked.call(&[event], report.to_string().as_bytes());
        assert_eq!(hooked.spilled().len(), number + 1, "{:?}", hooked.troubles());
    }
    mend();
    let waiting = hooked.spilled();
    (hooked, waiting)
}

#[test]
fn a_whole_chat_that_waited_is_stored_in_its_order() {
    let (hooked, waiting) = chat_waits();
    for report in &waiting {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(report).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!((hooked.work(), hooked.spilled().len()), (2, 0));
    assert!(hooked.sessions().is_empty(), "its end came last");
    let handoff = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"][0].clone();
    let handoff = hooked.data(&["handoff", "show", handoff["id"].as_str().unwrap()])["handoff"].clone();
    assert_eq!(handoff["payload"]["last_prompt"], "Make it fast");
    assert_eq!(handoff["payload"]["still_waiting"], 2);
}

#[test]
fn what_was_stored_but_not_removed_is_not_stored_twice() {
    let (hooked, waiting) = chat_waits();
    let copies: Vec<(PathBuf, Vec<u8>)> =
        waiting.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    assert_eq!(hooked.work(), 2);
    for (path, bytes) in copies {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!((hooked.work(), hooked.spilled().len()), (0, 0));
    assert_eq!(
        hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn what_a_dead_process_began_to_store_is_stored_after_a_while() {
    let (hooked, waiting) = chat_waits();
    for path in &waiting[1..] {
        std::fs::remove_file(path).unwrap();
    }
    let taken = waiting[0].with_extension("taking");
    std::fs::rename(&waiting[0], &taken).unwrap();
    hooked.hook("post-tool-use", &hooked.bash("ls", "b"));
    assert!(taken.exists(), "somebody may be at it");
    let long_ago = SystemTime::now() - Duration::from_secs(120);
    std::fs::File::options().write(true).open(&taken).unwrap().set_modified(long_ago).unwrap();
    hooked.hook("post-tool-use", &hooked.bash("ls", "c"));
    assert!(hooked.spilled().is_empty());
    hooked.hook("pre-compact", &hooked.claude("PreCompact", json!({})));
    let saved = hooked.data(&["checkpoint", "load", "--session", crate::hooked::CHAT]);
    assert_eq!(saved["context"]["prompts"], json!(["Make it fast"]));
}

#[test]
fn a_file_that_is_no_report_holds_nothing_up() {
    let (hooked, waiting) = chat_waits();
    let folder = waiting[0].parent().unwrap();
    std::fs::write(folder.join("00000000000000000001-1.json"), b"{\"event\": \"stop\"").unwrap();
    std::fs::write(folder.join("00000000000000000002-1.json"), json!({ "event": "gone" }).to_string())
        .unwrap();
    assert_eq!(hooked.work(), 2);
    assert!(hooked.spilled().is_empty(), "{:?}", hooked.spilled());
}

#[test]
fn what_a_server_cannot_take_waits_here() {
    let (served, here) = (Hooked::new(), Hooked::new());
    let server = served.home.serve();
    let url = server.url().to_owned();
    let report = here.bash("ls", "over there").to_string();
    let finished = here.call(&["post-tool-use", "--server", &url], report.as_bytes());
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    server.kill();
    assert!(!here.home.data_dir().join("baton.db").exists(), "nothing is stored here");
    assert_eq!(served.queue().iter().sum::<u64>(), 1);
    let late = with(here.bash("ls", "later"), json!({ "tool_use_id": "toolu_9" })).to_string();
    here.call(&["post-tool-use", "--server", &url], late.as_bytes());
    assert_eq!(here.spilled().len(), 1, "{:?}", here.troubles());
    let server = served.home.serve();
    here.call(&["stop", "--server", server.url()], here.claude("Stop", json!({})).to_string().as_bytes());
    assert!(here.spilled().is_empty(), "{:?}", here.troubles());
    server.kill();
    assert_eq!(served.queue().iter().sum::<u64>(), 2);
}
