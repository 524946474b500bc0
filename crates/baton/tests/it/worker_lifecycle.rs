//! The worker as a process: started once, stopped cleanly, never mistaken for another, and no trouble with what others
//! left behind.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use baton_testkit::processes::{ask, processes_of, signal, wait_until};
use serde_json::Value;

use crate::workplace::Workplace;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_start_makes_the_files_and_a_stop_removes_them() {
    for place in Workplace::each() {
        assert_eq!(place.json(&["worker", "status"]).code, 3, "there is none");
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], false);
        let started = place.run(&["worker", "start"]);
        assert_eq!(started.code, 0, "{started:?}");
        let pid: u32 = std::fs::read_to_string(place.pid_file()).unwrap().trim().parse().unwrap();
        assert_eq!(started.stdout.trim(), format!("worker started (PID: {pid})"));
        assert!(std::fs::metadata(place.socket()).unwrap().file_type().is_socket());
        assert_eq!((mode(&place.pid_file()), mode(&place.socket())), (0o600, 0o600));
        assert_eq!((mode(&place.data_dir()), mode(&place.data_dir().join("worker.lock"))), (0o700, 0o600));

        let status = place.ok(&["worker", "status"]);
        assert_eq!((&status["running"], &status["pid"]), (&true.into(), &pid.into()), "{status}");
        assert_eq!(status["health"]["status"], "ok");
        assert_eq!(status["socket"].as_str(), place.socket().to_str());
        assert!(
            place.run(&["worker", "status"]).stdout.starts_with(&format!("worker runs (PID: {pid}), up "))
        );
        assert_eq!(place.workers(), [pid]);

        let stopped = place.ok(&["worker", "stop"]);
        assert_eq!((&stopped["stopped"], &stopped["pid"]), (&true.into(), &pid.into()));
        assert!(!place.pid_file().exists() && !place.socket().exists());
        wait_until("nothing is left", || processes_of(&place.data_dir()).is_empty());
        assert_eq!(place.json(&["worker", "status"]).code, 3);
        assert_eq!(place.run(&["worker", "stop"]).stdout.trim(), "worker not running");
    }
}

#[test]
fn a_second_start_finds_the_first() {
    let place = Workplace::sqlite();
    let pid = place.start();
    let again = place.run(&["worker", "start"]);
    assert_eq!(again.stdout.trim(), format!("worker already runs (PID: {pid})"));
    assert_eq!(place.start(), pid);
    let foreground = place.json(&["worker", "run"]);
    assert_eq!(foreground.code, 1, "{foreground:?}");
    let error = foreground.json()["error"].clone();
    assert_eq!(error["code"], "worker_failed");
    assert!(error["hint"].as_str().unwrap().contains("baton worker status"), "{error}");
    assert_eq!(place.workers(), [pid]);
}

#[test]
fn eight_starts_at_once_leave_one_worker() {
    let place = Workplace::sqlite();
    for _ in 0..3 {
        let pids: Vec<u32> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| place.start())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
        wait_until("those that came too late are gone", || place.workers() == [pids[0]]);
        assert_eq!(place.asked("GET", "/api/health", &Value::Null).status, 200);
        assert_eq!(place.ok(&["worker", "stop"])["pid"], pids[0]);
        wait_until("nothing is left", || processes_of(&place.data_dir()).is_empty());
    }
}

#[test]
fn what_a_killed_worker_left_is_cleared_by_the_next() {
    let place = Workplace::sqlite();
    let killed = place.start();
    assert!(signal(killed, "KILL"));
    wait_until("it is gone", || place.workers().is_empty());
    assert!(place.pid_file().exists() && place.socket().exists(), "a killed worker leaves its files");
    assert_eq!(place.json(&["worker", "status"]).code, 3, "files are no worker");
    assert_eq!(place.ok(&["worker", "stop"])["stopped"], false);

    let next = place.start();
    assert_ne!(next, killed);
    assert_eq!(std::fs::read_to_string(place.pid_file()).unwrap().trim(), next.to_string());
    assert_eq!(place.asked("GET", "/api/health", &Value::Null).status, 200);
    place.capture(1);
    assert_eq!(place.titles_when(1), ["Compressed item-1"]);
    assert_eq!(place.ok(&["worker", "stop"])["stopped"], true);
}

#[test]
fn a_worker_without_its_files_can_be_stopped() {
    let place = Workplace::sqlite();
    let pid = place.start();
    std::fs::remove_file(place.pid_file()).unwrap();
    assert_eq!(place.ok(&["worker", "status"])["pid"], pid);
    assert_eq!(place.start(), pid);
    std::fs::remove_file(place.socket()).unwrap();
    assert_eq!(place.ok(&["worker", "stop"])["pid"], pid);
    wait_until("it is gone", || place.workers().is_empty());
}

#[test]
fn a_foreign_process_that_the_file_names_is_left_alone() {
    let place = Workplace::sqlite();
    std::fs::create_dir_all(place.data_dir()).unwrap();
    let mut foreign = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    for _ in 0..2 {
        std::fs::write(place.pid_file(), format!("{}\n", foreign.id())).unwrap();
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], false);
        assert_eq!(place.json(&["worker", "status"]).code, 3);
        let pid = place.start();
        assert_ne!(pid, foreign.id());
        assert_eq!(place.ok(&["worker", "stop"])["pid"], pid);
        assert!(foreign.try_wait().unwrap().is_none(), "a process that is none of ours was ended");
    }
    let pid = place.start();
    std::fs::write(place.pid_file(), format!("{}\n", foreign.id())).unwrap();
    assert_eq!(place.ok(&["worker", "status"])["pid"], pid, "the file decides nothing");
    assert_eq!(place.ok(&["worker", "stop"])["pid"], pid);
    assert!(foreign.try_wait().unwrap().is_none(), "a process that is none of ours was ended");
    wait_until("it is gone", || place.workers().is_empty());
    for nonsense in ["", "0", "-1", "1 2", "99999999999999999999", "worker"] {
        std::fs::write(place.pid_file(), nonsense).unwrap();
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], false, "{nonsense:?}");
    }
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn a_socket_path_that_is_too_long_is_told() {
    let place = Workplace::sqlite();
    let folder = place.path().join("x".repeat(120));
    for verb in ["start", "run"] {
        let failed = place.json(&["worker", verb, "--data-dir", folder.to_str().unwrap()]);
        assert_eq!(failed.code, 2, "{failed:?}");
        let error = failed.json()["error"].clone();
        assert_eq!(error["code"], "invalid_config", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("worker.sock") && message.contains("107 bytes"), "{message}");
        assert!(error["hint"].as_str().unwrap().contains("BATON_DATA_DIR"), "{error}");
    }
    assert!(processes_of(&folder).is_empty());
}

#[test]
fn a_data_folder_that_cannot_be_used_is_told() {
    let place = Workplace::sqlite();
    // A file is no folder, not even for root.
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let folder = file.join("data");
    for verb in ["start", "run"] {
        let failed = place.json(&["worker", verb, "--data-dir", folder.to_str().unwrap()]);
        assert_eq!(failed.code, 9, "{failed:?}");
        let error = failed.json()["error"].clone();
        assert_eq!(error["code"], "store_unavailable", "{error}");
        assert!(error["message"].as_str().unwrap().contains(folder.to_str().unwrap()), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn a_database_that_cannot_be_opened_is_told() {
    let place = Workplace::sqlite();
    std::fs::create_dir_all(place.data_dir()).unwrap();
    std::fs::write(place.data_dir().join("baton.db"), "this is no database, whatever it is called").unwrap();
    let failed = place.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let error = failed.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("the worker ended at once"), "{message}");
    assert!(message.contains("database"), "it says why: {message}");
    assert!(error["hint"].as_str().unwrap().contains("worker.log"), "{error}");
    wait_until("nothing is left", || processes_of(&place.data_dir()).is_empty());
    assert!(!place.pid_file().exists() && !place.socket().exists());
}

#[test]
fn something_else_in_the_place_of_the_socket_is_not_removed() {
    let place = Workplace::sqlite();
    std::fs::create_dir_all(place.data_dir()).unwrap();
    std::fs::write(place.socket(), "somebody's notes").unwrap();
    let failed = place.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.json()["error"]["message"].as_str().unwrap().contains("worker.sock"), "{failed:?}");
    assert_eq!(std::fs::read_to_string(place.socket()).unwrap(), "somebody's notes");

    std::fs::remove_file(place.socket()).unwrap();
    std::fs::create_dir(place.socket()).unwrap();
    let failed = place.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.json()["error"]["message"].as_str().unwrap().contains("worker.sock"), "{failed:?}");
    std::fs::remove_dir(place.socket()).unwrap();

    // A socket that nobody listens on any more is one that a worker left.
    drop(UnixListener::bind(place.socket()).unwrap());
    assert!(place.socket().exists());
    place.start();
    assert_eq!(place.asked("GET", "/api/health", &Value::Null).status, 200);
}

#[test]
fn a_worker_has_nothing_to_do_with_the_terminal_it_was_started_from() {
    let place = Workplace::sqlite();
    let pid = place.start();
    let told = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = told.rsplit(')').next().unwrap().split_whitespace().collect();
    let itself = pid.to_string();
    assert_eq!((fields[2], fields[3]), (itself.as_str(), itself.as_str()), "it leads a session of its own");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap().to_str(), Some("/dev/null"));
    for output in [1, 2] {
        let file = std::fs::read_link(format!("/proc/{pid}/fd/{output}")).unwrap();
        assert_eq!(file, place.data_dir().join("logs/worker.log"));
        assert_eq!(mode(&file), 0o600);
    }
}

#[test]
fn a_worker_in_the_foreground_ends_cleanly_on_either_signal() {
    for name in ["TERM", "INT"] {
        let place = Workplace::sqlite();
        let mut command = place.command();
        command.args(["worker", "run"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("it answers", || ask(&place.socket(), "GET", "/api/health", &Value::Null).is_ok());
        assert_eq!(place.ok(&["worker", "status"])["pid"], child.id());
        assert!(signal(child.id(), name));
        wait_until("it ends", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success(), "{name}");
        assert!(!place.pid_file().exists() && !place.socket().exists(), "{name}");
    }
}

#[test]
fn a_worker_that_is_stopped_while_it_begins_leaves_nothing() {
    let place = Workplace::sqlite();
    for _ in 0..8 {
        let mut command = place.command();
        let mut child =
            command.args(["worker", "run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From here on others know whom to stop.
        wait_until("it has its seat", || place.pid_file().exists());
        assert!(signal(child.id(), "TERM"));
        wait_until("it ends", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success());
        assert!(!place.pid_file().exists() && !place.socket().exists());
    }
}
