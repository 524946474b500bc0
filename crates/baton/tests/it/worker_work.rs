//! Queue processing with and without a running worker, and the state after a stop.

use std::process::{Child, Stdio};

use baton_testkit::model_server::Behaviour;
use baton_testkit::processes::{processes_of, signal, wait_until};
use serde_json::json;

use crate::worker_fixture::{WorkerFixture, tool_use};

#[test]
fn a_running_worker_processes_new_items() {
    for fixture in WorkerFixture::each() {
        fixture.start();
        for number in 1..=3 {
            fixture.capture(number);
            let titles = fixture.titles_when(u64::from(number));
            assert_eq!(titles[0], format!("Compressed item-{number}"));
        }
        fixture.hook("stop", json!({}));
        fixture.model.wait_for_requests(4);
        assert!(fixture.model.requests()[3].prompt().contains("Summarize this development session"));
    }
}

#[test]
fn queued_items_are_processed_by_the_next_worker() {
    for fixture in WorkerFixture::each() {
        for number in 1..=5 {
            fixture.capture(number);
        }
        assert_eq!(fixture.stats(), json!({ "raw": 5, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(fixture.model.received(), 0);
        fixture.start();
        let mut titles = fixture.titles_when(5);
        titles.sort();
        assert_eq!(titles, [1, 2, 3, 4, 5].map(|number| format!("Compressed item-{number}")));
        assert_eq!(fixture.model.received(), 5);
    }
}

#[test]
fn a_server_processes_queued_items() {
    for fixture in WorkerFixture::each() {
        let server = fixture.serve();
        fixture.capture(1);
        assert_eq!(fixture.titles_when(1), ["Compressed item-1"]);
        let mut report = tool_use(2);
        report["session_id"] = "chat".into();
        report["cwd"] = "/somewhere/shop".into();
        assert_eq!(server.post("/hooks/post-tool-use", &report).status, 200);
        assert_eq!(fixture.titles_when(2)[0], "Compressed item-2");
        // The same tool use is stored once.
        assert_eq!(server.post("/hooks/post-tool-use", &report).status, 200);
        fixture.capture(3);
        fixture.titles_when(3);
        assert_eq!(fixture.model.received(), 3);
    }
}

#[test]
fn a_server_without_a_worker_leaves_items_in_the_queue() {
    for fixture in WorkerFixture::each() {
        let mut server = serve(&fixture, &["--no-worker"]);
        fixture.capture(1);
        fixture.capture(2);
        // A server with a worker would return its claimed items before it exits.
        assert!(signal(server.id(), "TERM"));
        wait_until("the server ends", || server.try_wait().unwrap().is_some());
        assert_eq!(fixture.stats(), json!({ "raw": 2, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(fixture.model.received(), 0);
        fixture.finish(2);
    }
}

/// Starts a server and waits until it listens.
fn serve(fixture: &WorkerFixture, arguments: &[&str]) -> Child {
    use std::io::{BufRead, BufReader};
    let mut command = fixture.command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("baton listens on ")));
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// Returns attempts and last error of each pending item.
fn waiting(fixture: &WorkerFixture) -> Vec<(i64, Option<String>)> {
    let listed = fixture.ok(&["queue", "list", "--status", "raw"]);
    let items = listed["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| (item["attempts"].as_i64().unwrap(), item["last_error"].as_str().map(str::to_owned)))
        .collect()
}

#[test]
fn stop_does_not_wait_for_a_hanging_model() {
    for fixture in WorkerFixture::each() {
        for number in 1..=6 {
            fixture.capture(number);
        }
        fixture.model.behave(Behaviour::Hang);
        fixture.start();
        // The default concurrency is 4.
        fixture.model.wait_for_requests(4);
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], true);
        wait_until("all processes have exited", || processes_of(&fixture.data_dir()).is_empty());
        assert!(!fixture.pid_file().exists() && !fixture.socket().exists());
        assert_eq!(fixture.stats(), json!({ "raw": 6, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(waiting(&fixture), vec![(0, None); 6]);
        fixture.finish(6);
    }
}

#[test]
fn stop_does_not_wait_for_a_hanging_summary() {
    for fixture in WorkerFixture::each() {
        fixture.capture(1);
        fixture.finish(1);
        fixture.hook("stop", json!({}));
        fixture.model.forget();
        fixture.model.behave(Behaviour::Hang);
        fixture.start();
        fixture.model.wait_for_requests(1);
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], true);
        fixture.model.behave(Behaviour::Good);
        assert_eq!(
            fixture.ok(&["worker", "run", "--once"])["summaries"],
            1,
            "the next worker must create the summary"
        );
    }
}

#[test]
fn stop_does_not_wait_for_a_summarize_request() {
    let fixture = WorkerFixture::sqlite();
    fixture.capture(1);
    fixture.finish(1);
    let session = fixture.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
    fixture.model.forget();
    fixture.model.behave(Behaviour::Hang);
    fixture.start();
    std::thread::scope(|scope| {
        let body = json!({ "session_id": session });
        let socket = fixture.socket();
        let asked = scope.spawn(move || baton_testkit::binary::ask(&socket, "POST", "/api/summarize", &body));
        fixture.model.wait_for_requests(1);
        assert_eq!(fixture.ok(&["worker", "stop"])["stopped"], true);
        assert!(asked.join().unwrap().is_err(), "the request must fail when the worker stops");
    });
    wait_until("all processes have exited", || processes_of(&fixture.data_dir()).is_empty());
}

#[test]
fn a_stopping_server_returns_items_of_a_hanging_model() {
    for fixture in WorkerFixture::each() {
        fixture.capture(1);
        fixture.model.behave(Behaviour::Hang);
        let mut server = serve(&fixture, &[]);
        fixture.model.wait_for_requests(1);
        assert!(signal(server.id(), "TERM"));
        wait_until("the server ends", || server.try_wait().unwrap().is_some());
        assert!(server.wait().unwrap().success());
        assert_eq!(waiting(&fixture), [(0, None)]);
        fixture.finish(1);
    }
}

#[test]
fn a_server_stopped_right_after_start_exits() {
    for fixture in WorkerFixture::each() {
        for _ in 0..8 {
            let mut server = serve(&fixture, &[]);
            assert!(signal(server.id(), "TERM"));
            wait_until("the server ends", || server.try_wait().unwrap().is_some());
            assert!(server.wait().unwrap().success());
        }
    }
}

#[test]
fn items_of_a_killed_worker_are_processed_after_the_lease() {
    let fixture = WorkerFixture::sqlite_with(|home| home.with("BATON_WORKER_LEASE_SECONDS", "1"));
    fixture.capture(1);
    fixture.model.behave(Behaviour::Hang);
    let killed = fixture.start();
    fixture.model.wait_for_requests(1);
    assert!(signal(killed, "KILL"));
    wait_until("the worker has exited", || fixture.workers().is_empty());
    assert_eq!(fixture.stats()["processing"], 1, "a killed worker must not return its item");
    fixture.model.behave(Behaviour::Good);
    fixture.start();
    assert_eq!(fixture.titles_when(1), ["Compressed item-1"]);
}

#[test]
fn work_resumes_after_a_rate_limit() {
    for fixture in WorkerFixture::each() {
        fixture.model.script([Behaviour::rate_limited(1)]);
        fixture.start();
        for number in 1..=3 {
            fixture.capture(number);
        }
        // The worker pauses about five seconds after a rate limit.
        assert_eq!(fixture.titles_when(3).len(), 3);
        assert_eq!(fixture.model.received(), 4);
    }
}
