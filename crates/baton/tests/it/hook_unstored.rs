//! A database that cannot be written: hook reports are saved to the outbox and stored exactly once when it
//! works again.

use std::path::{Path, PathBuf};

use baton_core::Timestamp;
use baton_testkit::processes::wait_until;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::hooked::Hooked;
use crate::served::with;

/// Locks the database until the connection is dropped.
fn lock(hooked: &Hooked) -> Connection {
    let connection = Connection::open(hooked.home.data_dir().join("baton.db")).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    connection
}

/// Creates a home with one report in the outbox and a locked database.
fn with_one_spooled_report() -> (Hooked, Connection) {
    let hooked = Hooked::new();
    hooked.hook("stop", &hooked.claude("Stop", json!({})));
    let lock = lock(&hooked);
    let finished = hooked.call(&["post-tool-use"], hooked.bash("ls", "waits").to_string().as_bytes());
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    assert_eq!(hooked.spilled().len(), 1);
    let message = hooked.troubles()[0]["message"].clone();
    assert!(message.as_str().unwrap().contains("the report was saved to the outbox"), "{message}");
    (hooked, lock)
}

fn outputs(hooked: &Hooked) -> Vec<String> {
    let raw = hooked.observations().iter().map(|one| hooked.raw(one)).collect::<Vec<_>>();
    let mut outputs: Vec<String> =
        raw.iter().map(|raw| raw["tool_response"]["stdout"].as_str().unwrap().to_owned()).collect();
    outputs.sort();
    outputs
}

#[test]
fn report_in_the_outbox_is_stored_once_by_the_next_hooks() {
    let (hooked, lock) = with_one_spooled_report();
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("in the outbox: 1 hook report;"), "{level} {message}");
    drop(lock);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let hooked = &hooked;
            scope.spawn(move || {
                hooked.call(&["post-tool-use"], hooked.bash("ls", &number.to_string()).to_string().as_bytes())
            });
        }
    });
    // A hook that finds another process replaying saves its own report to the outbox.
    assert_eq!(hooked.queue()[0] as usize + hooked.spilled().len(), 5, "{:?}", hooked.troubles());
    assert_eq!((hooked.work(), hooked.spilled().len()), (5, 0));
    assert_eq!(outputs(&hooked), ["0", "1", "2", "3", "waits"]);
    assert_eq!(hooked.sessions().len(), 1);
}

#[test]
fn report_in_the_outbox_is_stored_once_by_a_worker() {
    let (hooked, lock) = with_one_spooled_report();
    drop(lock);
    assert_eq!((hooked.work(), hooked.spilled().len()), (1, 0));
    assert_eq!((hooked.work(), hooked.queue()), (0, [0, 0, 1, 0]));
    assert_eq!(outputs(&hooked), ["waits"]);
}

/// Saves a report of each event of a chat to the outbox, then restores the database.
fn with_spooled_chat() -> (Hooked, Vec<PathBuf>) {
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
fn chat_in_the_outbox_is_stored_in_order() {
    let (hooked, waiting) = with_spooled_chat();
    for report in &waiting {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(report).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!((hooked.work(), hooked.spilled().len()), (2, 0));
    assert!(hooked.sessions().is_empty(), "the session end must be stored last");
    let handoff = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"][0].clone();
    let handoff = hooked.data(&["handoff", "show", handoff["id"].as_str().unwrap()])["handoff"].clone();
    assert_eq!(handoff["payload"]["last_prompt"], "Make it fast");
    assert_eq!((&handoff["payload"]["queued_tool_uses"], &handoff["incomplete"]), (&0.into(), &false.into()));
}

#[test]
fn file_that_was_not_removed_from_the_outbox_is_not_stored_twice() {
    let (hooked, waiting) = with_spooled_chat();
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

/// Returns the label and the report of a file in the outbox.
fn read_spooled_file(path: &Path) -> (Value, Value) {
    let text = std::fs::read_to_string(path).unwrap();
    let (label, report) = text.split_once('\n').unwrap();
    (serde_json::from_str(label).unwrap(), serde_json::from_str(report).unwrap())
}

/// Returns the time of a report in the outbox, in milliseconds.
fn written_at(path: &Path) -> i64 {
    read_spooled_file(path).0["at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_millis()
}

#[test]
fn report_in_the_outbox_is_stored_before_the_session_end_with_its_original_time() {
    let (hooked, lock) = with_one_spooled_report();
    let at = written_at(&hooked.spilled()[0]);
    drop(lock);
    hooked.hook("session-end", &hooked.claude("SessionEnd", json!({ "reason": "exit" })));
    assert!(hooked.spilled().is_empty() && hooked.sessions().is_empty(), "{:?}", hooked.sessions());
    assert_eq!(hooked.work(), 1);
    let seen = hooked.observations().remove(0);
    assert_eq!(seen["captured_at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_millis(), at);
    let handoffs = hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].clone();
    assert_eq!(handoffs.as_array().unwrap().len(), 1, "the handoff must be created with the session end");
}

#[test]
fn session_end_in_the_outbox_does_not_end_a_later_session() {
    let hooked = Hooked::new();
    hooked.hook("post-tool-use", &hooked.bash("ls", "a"));
    let lock = lock(&hooked);
    let end = hooked.claude("SessionEnd", json!({ "reason": "exit" })).to_string();
    hooked.call(&["session-end"], end.as_bytes());
    assert_eq!(hooked.spilled().len(), 1);
    drop(lock);
    hooked.response("session-start", &hooked.claude("SessionStart", json!({ "source": "resume" })));
    assert!(hooked.spilled().is_empty());
    assert_eq!(hooked.sessions().len(), 1, "the session must stay active");
}

#[test]
fn new_reports_are_added_to_the_outbox_after_earlier_ones() {
    let (hooked, lock) = with_one_spooled_report();
    hooked.call(&["session-end"], hooked.claude("SessionEnd", json!({})).to_string().as_bytes());
    assert_eq!(hooked.spilled().len(), 2);
    drop(lock);
    assert_eq!((hooked.work(), hooked.spilled().len()), (1, 0));
    assert!(hooked.sessions().is_empty(), "the session end must be stored last");
}

#[test]
fn workers_and_servers_replay_the_outbox_within_seconds() {
    let (hooked, lock) = with_one_spooled_report();
    hooked.data(&["worker", "start"]);
    drop(lock);
    wait_until("the worker replays the report", || hooked.spilled().is_empty());
    hooked.data(&["worker", "stop"]);
    let lock = self::lock(&hooked);
    hooked.call(&["session-end"], hooked.claude("SessionEnd", json!({})).to_string().as_bytes());
    drop(lock);
    let server = hooked.home.serve();
    wait_until("the server replays the report", || hooked.spilled().is_empty());
    server.kill();
    assert!(hooked.sessions().is_empty());
}

#[test]
fn invalid_file_in_the_outbox_does_not_block_others() {
    let (hooked, waiting) = with_spooled_chat();
    let folder = waiting[0].parent().unwrap();
    std::fs::write(folder.join("00000000000000000001-1-1.spooled"), b"{\"event\": \"stop\"").unwrap();
    let (head, _) = read_spooled_file(&waiting[0]);
    let unknown = with(head, json!({ "key": "hook-2-1" }));
    std::fs::write(
        folder.join("00000000000000000002-2-1.spooled"),
        format!("{unknown}\n{}", json!({ "event": "gone" })),
    )
    .unwrap();
    assert_eq!(hooked.work(), 2);
    let refused: Vec<_> = hooked.spilled().iter().map(|path| path.extension().unwrap().to_owned()).collect();
    assert_eq!(refused, ["refused", "refused"]);
    let logged = hooked
        .troubles()
        .iter()
        .filter(|trouble| trouble["message"].to_string().contains(".refused"))
        .count();
    assert_eq!(logged, 2);
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("2 hook reports"), "{level} {message}");
}

#[test]
fn reports_for_an_unreachable_server_are_saved_to_the_local_outbox() {
    let (served, here) = (Hooked::new(), Hooked::new());
    let server = served.home.serve();
    let url = server.url().to_owned();
    let report = here.bash("ls", "over there").to_string();
    let finished = here.call(&["post-tool-use", "--server", &url], report.as_bytes());
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    server.kill();
    assert!(!here.home.data_dir().join("baton.db").exists(), "nothing must be stored locally");
    assert_eq!(served.queue().iter().sum::<u64>(), 1);
    let late = with(here.bash("ls", "later"), json!({ "tool_use_id": "toolu_9" })).to_string();
    here.call(&["post-tool-use", "--server", &url], late.as_bytes());
    assert_eq!(here.spilled().len(), 1, "{:?}", here.troubles());
    assert_eq!(here.work(), 0);
    assert_eq!(here.spilled().len(), 1, "a report for a server must not be stored locally");
    let address = url.strip_prefix("http://").unwrap();
    let server = served.home.serve_as(&["--listen", address], &[]);
    here.call(&["stop", "--server", server.url()], here.claude("Stop", json!({})).to_string().as_bytes());
    assert!(here.spilled().is_empty(), "{:?}", here.troubles());
    server.kill();
    assert_eq!(served.queue().iter().sum::<u64>(), 2);
}
