//! A database that cannot be written: what hooks report waits as files, and is stored exactly once when it can be.

use std::path::{Path, PathBuf};

use baton_core::Timestamp;
use baton_testkit::processes::wait_until;
use rusqlite::Connection;
use serde_json::{Value, json};

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
    // A hook that meets another one that replays spools its own report behind it.
    assert_eq!(hooked.queue()[0] as usize + hooked.spilled().len(), 5, "{:?}", hooked.troubles());
    assert_eq!((hooked.work(), hooked.spilled().len()), (5, 0));
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

/// The label and the report of a file that waits.
fn kept(path: &Path) -> (Value, Value) {
    let text = std::fs::read_to_string(path).unwrap();
    let (label, report) = text.split_once('\n').unwrap();
    (serde_json::from_str(label).unwrap(), serde_json::from_str(report).unwrap())
}

/// When a file of the data folder was written, as observations have it.
fn written_at(path: &Path) -> i64 {
    kept(path).0["at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_millis()
}

#[test]
fn what_waited_is_stored_before_the_end_of_its_chat_and_as_of_when_it_happened() {
    let (hooked, lock) = one_waits();
    let at = written_at(&hooked.spilled()[0]);
    drop(lock);
    hooked.hook("session-end", &hooked.claude("SessionEnd", json!({ "reason": "exit" })));
    assert!(hooked.spilled().is_empty() && hooked.sessions().is_empty(), "{:?}", hooked.sessions());
    assert_eq!(hooked.work(), 1);
    let seen = hooked.observations().remove(0);
    assert_eq!(seen["captured_at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_millis(), at);
    let handoffs = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].clone();
    assert_eq!(handoffs.as_array().unwrap().len(), 1, "the chat ended with what was done in it");
}

#[test]
fn an_end_that_waited_does_not_end_what_began_after_it() {
    let hooked = Hooked::new();
    hooked.hook("post-tool-use", &hooked.bash("ls", "a"));
    let lock = lock(&hooked);
    let end = hooked.claude("SessionEnd", json!({ "reason": "exit" })).to_string();
    hooked.call(&["session-end"], end.as_bytes());
    assert_eq!(hooked.spilled().len(), 1);
    drop(lock);
    hooked.told("session-start", &hooked.claude("SessionStart", json!({ "source": "resume" })));
    assert!(hooked.spilled().is_empty());
    assert_eq!(hooked.sessions().len(), 1, "the chat goes on");
}

#[test]
fn what_comes_while_others_wait_waits_behind_them() {
    let (hooked, lock) = one_waits();
    hooked.call(&["session-end"], hooked.claude("SessionEnd", json!({})).to_string().as_bytes());
    assert_eq!(hooked.spilled().len(), 2);
    drop(lock);
    assert_eq!((hooked.work(), hooked.spilled().len()), (1, 0));
    assert!(hooked.sessions().is_empty(), "its end came last");
}

#[test]
fn who_stays_stores_what_waits_within_seconds() {
    let (hooked, lock) = one_waits();
    hooked.data(&["worker", "start"]);
    drop(lock);
    wait_until("the worker stored it", || hooked.spilled().is_empty());
    hooked.data(&["worker", "stop"]);
    let lock = self::lock(&hooked);
    hooked.call(&["session-end"], hooked.claude("SessionEnd", json!({})).to_string().as_bytes());
    drop(lock);
    let server = hooked.home.serve();
    wait_until("the server stored it", || hooked.spilled().is_empty());
    server.kill();
    assert!(hooked.sessions().is_empty());
}

#[test]
fn a_file_that_is_no_report_holds_nothing_up() {
    let (hooked, waiting) = chat_waits();
    let folder = waiting[0].parent().unwrap();
    std::fs::write(folder.join("00000000000000000001-1-1.report"), b"{\"event\": \"stop\"").unwrap();
    let (head, _) = kept(&waiting[0]);
    let unknown = with(head, json!({ "key": "hook-2-1" }));
    std::fs::write(
        folder.join("00000000000000000002-2-1.report"),
        format!("{unknown}\n{}", json!({ "event": "gone" })),
    )
    .unwrap();
    assert_eq!(hooked.work(), 2);
    let refused: Vec<_> = hooked.spilled().iter().map(|path| path.extension().unwrap().to_owned()).collect();
    assert_eq!(refused, ["refused", "refused"]);
    let told = hooked
        .troubles()
        .iter()
        .filter(|trouble| trouble["message"].to_string().contains(".refused"))
        .count();
    assert_eq!(told, 2);
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("2 reports"), "{level} {message}");
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
    assert_eq!(here.work(), 0);
    assert_eq!(here.spilled().len(), 1, "it is not for the store here");
    let address = url.strip_prefix("http://").unwrap();
    let server = served.home.serve_as(&["--listen", address], &[]);
    here.call(&["stop", "--server", server.url()], here.claude("Stop", json!({})).to_string().as_bytes());
    assert!(here.spilled().is_empty(), "{:?}", here.troubles());
    server.kill();
    assert_eq!(served.queue().iter().sum::<u64>(), 2);
}
