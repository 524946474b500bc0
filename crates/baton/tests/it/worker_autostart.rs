//! Workers that hooks start, and maintenance in processes that stay.

use std::fs::File;
use std::time::{Duration, SystemTime};

use baton_store::LATEST_VERSION;
use baton_testkit::processes::wait_until;
use serde_json::json;

use crate::hook_outage::{backups, put_older_database, schema_version};
use crate::workplace::{Workplace, tool_use};

fn with_autostart() -> Workplace {
    Workplace::sqlite_with(|home| home.with("BATON_WORKER_AUTOSTART", "on"))
}

#[test]
fn many_hooks_at_once_start_one_worker() {
    let place = with_autostart();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let place = &place;
            let report = json!({ "session_id": "chat", "cwd": place.path() });
            let mut report = report.as_object().unwrap().clone();
            report.extend(tool_use(number).as_object().unwrap().clone());
            scope.spawn(move || {
                let text = serde_json::to_string(&report).unwrap();
                assert_eq!(place.run_with_input(&["hook", "post-tool-use"], text.as_bytes()).code, 0);
            });
        }
    });
    assert_eq!(place.titles_when(16).len(), 16);
    wait_until("one worker is left", || place.workers().len() == 1);
}

#[test]
fn a_worker_that_exited_is_started_by_the_next_hook() {
    let place = with_autostart();
    place.capture(1);
    assert_eq!(place.titles_when(1), ["Compressed item-1"]);
    let first = place.workers();
    wait_until("it answers", || place.ok(&["worker", "stop"])["stopped"] == true);
    let log = std::fs::read_to_string(place.data_dir().join("logs/worker.log")).unwrap();
    assert!(log.contains("worker exits"), "{log}");
    // Another start a moment later is left to the next hook.
    let started = File::options().write(true).open(place.data_dir().join("worker.start")).unwrap();
    started.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    place.capture(2);
    assert_eq!(place.titles_when(2).len(), 2);
    assert_ne!(place.workers(), first);
}

#[test]
fn no_worker_is_started_where_it_is_turned_off_or_a_server_works() {
    let off = Workplace::sqlite_with(|home| home);
    off.capture(1);
    assert!(!off.data_dir().join("worker.start").exists() && off.workers().is_empty());
    let served = with_autostart();
    let server = served.serve();
    served.capture(1);
    assert!(!served.data_dir().join("worker.start").exists() && served.workers().is_empty());
    server.kill();
}

#[test]
fn the_worker_that_a_hook_starts_upgrades_the_database_and_replays_the_report() {
    let place = with_autostart();
    put_older_database(&place.data_dir());
    let report =
        json!({ "session_id": "chat", "cwd": place.path(), "tool_name": "Bash", "tool_response": "x" });
    let hooked = place.run_with_input(&["hook", "post-tool-use"], report.to_string().as_bytes());
    assert_eq!(hooked.code, 0, "{hooked:?}");
    wait_until("the database is upgraded", || schema_version(&place.data_dir()) == LATEST_VERSION);
    assert_eq!(place.titles_when(1).len(), 1);
    assert_eq!(backups(&place.data_dir()), ["baton-v1.backup.db"]);
}

#[test]
fn mcp_removes_files_that_nothing_refers_to() {
    let place = Workplace::sqlite();
    let orphan = place.data_dir().join("blobs/raw-orphan");
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(&orphan, "x").unwrap();
    let file = File::options().write(true).open(&orphan).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(7_200)).unwrap();
    let client = place.mcp();
    wait_until("baton mcp cleans up", || !orphan.exists());
    drop(client);
}
