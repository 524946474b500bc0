//! Workers started by hooks, and maintenance in long-running processes.

use std::fs::File;
use std::time::{Duration, SystemTime};

use baton_store::LATEST_VERSION;
use baton_testkit::processes::wait_until;
use serde_json::json;

use crate::hook_outage::{backups, put_older_database, schema_version};
use crate::worker_fixture::{WorkerFixture, tool_use};

fn with_autostart() -> WorkerFixture {
    WorkerFixture::sqlite_with(|home| home.with("BATON_WORKER_AUTOSTART", "on"))
}

#[test]
fn concurrent_hooks_start_one_worker() {
    let fixture = with_autostart();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let fixture = &fixture;
            let report = json!({ "session_id": "chat", "cwd": fixture.path() });
            let mut report = report.as_object().unwrap().clone();
            report.extend(tool_use(number).as_object().unwrap().clone());
            scope.spawn(move || {
                let text = serde_json::to_string(&report).unwrap();
                assert_eq!(fixture.run_with_input(&["hook", "post-tool-use"], text.as_bytes()).code, 0);
            });
        }
    });
    assert_eq!(fixture.titles_when(16).len(), 16);
    wait_until("one worker is left", || fixture.workers().len() == 1);
}

#[test]
fn the_next_hook_starts_a_worker_that_exited() {
    let fixture = with_autostart();
    fixture.capture(1);
    assert_eq!(fixture.titles_when(1), ["Compressed item-1"]);
    let first = fixture.workers();
    wait_until("the worker can be stopped", || fixture.ok(&["worker", "stop"])["stopped"] == true);
    let log = std::fs::read_to_string(fixture.data_dir().join("logs/worker.log")).unwrap();
    assert!(log.contains("worker exits"), "{log}");
    // A hook starts no worker within 10 seconds after the last start.
    let started = File::options().write(true).open(fixture.data_dir().join("worker.start")).unwrap();
    started.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    fixture.capture(2);
    assert_eq!(fixture.titles_when(2).len(), 2);
    assert_ne!(fixture.workers(), first);
}

#[test]
fn no_worker_is_started_if_disabled_or_a_server_runs() {
    let off = WorkerFixture::sqlite_with(|home| home);
    off.capture(1);
    assert!(!off.data_dir().join("worker.start").exists() && off.workers().is_empty());
    let served = with_autostart();
    let server = served.serve();
    served.capture(1);
    assert!(!served.data_dir().join("worker.start").exists() && served.workers().is_empty());
    server.kill();
}

#[test]
fn doctor_reports_which_process_does_the_work_of_the_worker() {
    let fixture = with_autostart();
    let message = || {
        let report = fixture.run(&["doctor", "--format", "json"]).json();
        let findings = report["data"]["findings"].as_array().unwrap().clone();
        let finding = findings.into_iter().find(|finding| finding["check"] == "worker").unwrap();
        assert_eq!(finding["level"], "ok", "{finding}");
        finding["message"].as_str().unwrap().to_owned()
    };
    let nothing = "not running; the next hook starts it";
    assert_eq!(message(), nothing);
    let server = fixture.serve();
    assert_eq!(message(), "not needed; baton serve processes the capture queue");
    let status = fixture.run(&["worker", "status"]);
    let text = "worker not running; baton serve processes the capture queue\n";
    assert_eq!((status.code, status.stdout.as_str()), (3, text));
    server.kill();
    assert_eq!(message(), nothing);
    let server = fixture.serve_as(&["--no-worker"], &[]);
    assert_eq!(message(), nothing, "a server without a worker leaves the work to others");
    server.kill();
    let worker = fixture.ok(&["worker", "start"]);
    assert_eq!(message(), format!("running as process {}", worker["pid"]));
}

#[test]
fn an_autostarted_worker_upgrades_the_database_and_replays_the_report() {
    let fixture = with_autostart();
    put_older_database(&fixture.data_dir());
    let report =
        json!({ "session_id": "chat", "cwd": fixture.path(), "tool_name": "Bash", "tool_response": "x" });
    let hooked = fixture.run_with_input(&["hook", "post-tool-use"], report.to_string().as_bytes());
    assert_eq!(hooked.code, 0, "{hooked:?}");
    wait_until("the database is upgraded", || schema_version(&fixture.data_dir()) == LATEST_VERSION);
    assert_eq!(fixture.titles_when(1).len(), 1);
    assert_eq!(backups(&fixture.data_dir()), ["baton-v1.backup.db"]);
}

#[test]
fn mcp_removes_unreferenced_files() {
    let fixture = WorkerFixture::sqlite();
    let orphan = fixture.data_dir().join("blobs/raw-orphan");
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(&orphan, "x").unwrap();
    let file = File::options().write(true).open(&orphan).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(7_200)).unwrap();
    let client = fixture.mcp();
    wait_until("baton mcp cleans up", || !orphan.exists());
    drop(client);
}
