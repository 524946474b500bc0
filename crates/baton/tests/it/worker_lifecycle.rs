//! The worker process: one per data folder, clean stop, no confusion with other processes, and recovery from stale
//! files.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use baton_testkit::binary::ask;
use baton_testkit::processes::{processes_of, signal, wait_until};
use serde_json::Value;

use crate::worker_fixture::WorkerFixture;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn start_creates_the_worker_files_and_stop_removes_them() {
    for fixture in WorkerFixture::each() {
        assert_eq!(fixture.json(&["worker", "status"]).code, 3, "no worker is running");
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], false);
        let started = fixture.run(&["worker", "start"]);
        assert_eq!(started.code, 0, "{started:?}");
        let pid: u32 = std::fs::read_to_string(fixture.pid_file()).unwrap().trim().parse().unwrap();
        assert_eq!(started.stdout.trim(), format!("worker started (PID: {pid})"));
        assert!(std::fs::metadata(fixture.socket()).unwrap().file_type().is_socket());
        assert_eq!((mode(&fixture.pid_file()), mode(&fixture.socket())), (0o600, 0o600));
        assert_eq!(
            (mode(&fixture.data_dir()), mode(&fixture.data_dir().join("worker.lock"))),
            (0o700, 0o600)
        );

        let status = fixture.ok(&["worker", "status"]);
        assert_eq!((&status["running"], &status["pid"]), (&true.into(), &pid.into()), "{status}");
        assert_eq!(status["health"]["status"], "ok");
        assert_eq!(status["socket"].as_str(), fixture.socket().to_str());
        assert!(
            fixture.run(&["worker", "status"]).stdout.starts_with(&format!("worker runs (PID: {pid}), up "))
        );
        assert_eq!(fixture.workers(), [pid]);

        let stopped = fixture.ok(&["worker", "stop"]);
        assert_eq!((&stopped["stopped"], &stopped["pid"]), (&true.into(), &pid.into()));
        assert!(!fixture.pid_file().exists() && !fixture.socket().exists());
        wait_until("all processes have exited", || processes_of(&fixture.data_dir()).is_empty());
        assert_eq!(fixture.json(&["worker", "status"]).code, 3);
        assert_eq!(fixture.run(&["worker", "stop"]).stdout.trim(), "worker not running");
    }
}

#[test]
fn a_second_start_returns_the_running_worker() {
    let fixture = WorkerFixture::sqlite();
    let pid = fixture.start();
    let again = fixture.run(&["worker", "start"]);
    assert_eq!(again.stdout.trim(), format!("worker already runs (PID: {pid})"));
    assert_eq!(fixture.start(), pid);
    let foreground = fixture.json(&["worker", "run"]);
    assert_eq!(foreground.code, 1, "{foreground:?}");
    let error = foreground.json()["error"].clone();
    assert_eq!(error["code"], "worker_failed");
    assert!(error["hint"].as_str().unwrap().contains("baton worker status"), "{error}");
    assert_eq!(fixture.workers(), [pid]);
}

#[test]
fn concurrent_starts_leave_one_worker() {
    let fixture = WorkerFixture::sqlite();
    for _ in 0..3 {
        let pids: Vec<u32> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| fixture.start())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
        wait_until("the other workers have exited", || fixture.workers() == [pids[0]]);
        assert_eq!(fixture.request("GET", "/api/health", &Value::Null).status, 200);
        assert_eq!(fixture.ok(&["worker", "stop"])["pid"], pids[0]);
        wait_until("all processes have exited", || processes_of(&fixture.data_dir()).is_empty());
    }
}

#[test]
fn stale_files_of_a_killed_worker_are_replaced() {
    let fixture = WorkerFixture::sqlite();
    let killed = fixture.start();
    assert!(signal(killed, "KILL"));
    wait_until("the worker has exited", || fixture.workers().is_empty());
    assert!(fixture.pid_file().exists() && fixture.socket().exists(), "a killed worker must leave its files");
    assert_eq!(fixture.json(&["worker", "status"]).code, 3, "stale files must not count as a worker");
    assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], false);

    let next = fixture.start();
    assert_ne!(next, killed);
    assert_eq!(std::fs::read_to_string(fixture.pid_file()).unwrap().trim(), next.to_string());
    assert_eq!(fixture.request("GET", "/api/health", &Value::Null).status, 200);
    fixture.capture(1);
    assert_eq!(fixture.titles_when(1), ["Compressed item-1"]);
    assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], true);
}

#[test]
fn a_worker_without_its_files_can_be_stopped() {
    let fixture = WorkerFixture::sqlite();
    let pid = fixture.start();
    std::fs::remove_file(fixture.pid_file()).unwrap();
    assert_eq!(fixture.ok(&["worker", "status"])["pid"], pid);
    assert_eq!(fixture.start(), pid);
    std::fs::remove_file(fixture.socket()).unwrap();
    assert_eq!(fixture.ok(&["worker", "stop"])["pid"], pid);
    wait_until("the worker has exited", || fixture.workers().is_empty());
}

#[test]
fn a_foreign_process_in_the_pid_file_is_not_stopped() {
    let fixture = WorkerFixture::sqlite();
    std::fs::create_dir_all(fixture.data_dir()).unwrap();
    let mut foreign = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    for _ in 0..2 {
        std::fs::write(fixture.pid_file(), format!("{}\n", foreign.id())).unwrap();
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], false);
        assert_eq!(fixture.json(&["worker", "status"]).code, 3);
        let pid = fixture.start();
        assert_ne!(pid, foreign.id());
        assert_eq!(fixture.ok(&["worker", "stop"])["pid"], pid);
        assert!(foreign.try_wait().unwrap().is_none(), "a foreign process was ended");
    }
    let pid = fixture.start();
    std::fs::write(fixture.pid_file(), format!("{}\n", foreign.id())).unwrap();
    assert_eq!(fixture.ok(&["worker", "status"])["pid"], pid, "the pid file must not be used");
    assert_eq!(fixture.ok(&["worker", "stop"])["pid"], pid);
    assert!(foreign.try_wait().unwrap().is_none(), "a foreign process was ended");
    wait_until("the worker has exited", || fixture.workers().is_empty());
    for nonsense in ["", "0", "-1", "1 2", "99999999999999999999", "worker"] {
        std::fs::write(fixture.pid_file(), nonsense).unwrap();
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], false, "{nonsense:?}");
    }
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn a_socket_path_that_is_too_long_is_an_error() {
    let fixture = WorkerFixture::sqlite();
    let folder = fixture.path().join("x".repeat(120));
    for verb in ["start", "run"] {
        let failed = fixture.json(&["worker", verb, "--data-dir", folder.to_str().unwrap()]);
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
fn an_unusable_data_folder_is_an_error() {
    let fixture = WorkerFixture::sqlite();
    // A path below a file is invalid even for root.
    let file = fixture.path().join("file");
    std::fs::write(&file, "").unwrap();
    let folder = file.join("data");
    for verb in ["start", "run"] {
        let failed = fixture.json(&["worker", verb, "--data-dir", folder.to_str().unwrap()]);
        assert_eq!(failed.code, 9, "{failed:?}");
        let error = failed.json()["error"].clone();
        assert_eq!(error["code"], "store_unavailable", "{error}");
        assert!(error["message"].as_str().unwrap().contains(folder.to_str().unwrap()), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn an_unusable_database_is_an_error_with_the_cause() {
    let fixture = WorkerFixture::sqlite();
    std::fs::create_dir_all(fixture.data_dir()).unwrap();
    std::fs::write(fixture.data_dir().join("baton.db"), "this is no database, whatever it is called")
        .unwrap();
    let failed = fixture.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let error = failed.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("cannot start the worker: it exited"), "{message}");
    assert!(message.contains("database"), "the message must contain the cause: {message}");
    assert!(error["hint"].as_str().unwrap().contains("worker.log"), "{error}");
    wait_until("all processes have exited", || processes_of(&fixture.data_dir()).is_empty());
    assert!(!fixture.pid_file().exists() && !fixture.socket().exists());
}

#[test]
fn a_file_at_the_socket_path_is_not_removed() {
    let fixture = WorkerFixture::sqlite();
    std::fs::create_dir_all(fixture.data_dir()).unwrap();
    std::fs::write(fixture.socket(), "somebody's notes").unwrap();
    let failed = fixture.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.json()["error"]["message"].as_str().unwrap().contains("worker.sock"), "{failed:?}");
    assert_eq!(std::fs::read_to_string(fixture.socket()).unwrap(), "somebody's notes");

    std::fs::remove_file(fixture.socket()).unwrap();
    std::fs::create_dir(fixture.socket()).unwrap();
    let failed = fixture.json(&["worker", "start"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.json()["error"]["message"].as_str().unwrap().contains("worker.sock"), "{failed:?}");
    std::fs::remove_dir(fixture.socket()).unwrap();

    // A socket without a listener is stale and is replaced.
    drop(UnixListener::bind(fixture.socket()).unwrap());
    assert!(fixture.socket().exists());
    fixture.start();
    assert_eq!(fixture.request("GET", "/api/health", &Value::Null).status, 200);
}

#[test]
fn a_worker_is_detached_from_the_terminal() {
    let fixture = WorkerFixture::sqlite();
    let pid = fixture.start();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let itself = pid.to_string();
    assert_eq!(
        (fields[2], fields[3]),
        (itself.as_str(), itself.as_str()),
        "the worker must lead its own session"
    );
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap().to_str(), Some("/dev/null"));
    for output in [1, 2] {
        let file = std::fs::read_link(format!("/proc/{pid}/fd/{output}")).unwrap();
        assert_eq!(file, fixture.data_dir().join("logs/worker.log"));
        assert_eq!(mode(&file), 0o600);
    }
}

#[test]
fn a_foreground_worker_exits_cleanly_on_sigterm_and_sigint() {
    for name in ["TERM", "INT"] {
        let fixture = WorkerFixture::sqlite();
        let mut command = fixture.command();
        command.args(["worker", "run"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("the worker answers", || {
            ask(&fixture.socket(), "GET", "/api/health", &Value::Null).is_ok()
        });
        assert_eq!(fixture.ok(&["worker", "status"])["pid"], child.id());
        assert!(signal(child.id(), name));
        wait_until("the worker exits", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success(), "{name}");
        assert!(!fixture.pid_file().exists() && !fixture.socket().exists(), "{name}");
    }
}

#[test]
fn a_worker_stopped_during_startup_leaves_no_files() {
    let fixture = WorkerFixture::sqlite();
    for _ in 0..8 {
        let mut command = fixture.command();
        let mut child =
            command.args(["worker", "run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The pid file is written when the worker can be stopped.
        wait_until("the worker has the lock", || fixture.pid_file().exists());
        assert!(signal(child.id(), "TERM"));
        wait_until("the worker exits", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success());
        assert!(!fixture.pid_file().exists() && !fixture.socket().exists());
    }
}
