//! Work that comes in while somebody works, while nobody does, and what a stop leaves behind.

use std::process::{Child, Stdio};

use baton_testkit::model_server::Behaviour;
use baton_testkit::processes::{processes_of, signal, wait_until};
use serde_json::json;

use crate::workplace::{Workplace, tool_use};

#[test]
fn a_started_worker_takes_up_what_comes_in() {
    for place in Workplace::each() {
        place.start();
        for number in 1..=3 {
            place.capture(number);
            let titles = place.titles_when(u64::from(number));
            assert_eq!(titles[0], format!("Compressed item-{number}"));
        }
        place.hook("stop", json!({}));
        place.model.wait_for_requests(4);
        assert!(place.model.requests()[3].prompt().contains("Summarize this development session"));
    }
}

#[test]
fn what_came_in_while_nobody_worked_is_done_by_the_next_worker() {
    for place in Workplace::each() {
        for number in 1..=5 {
            place.capture(number);
        }
        assert_eq!(place.stats(), json!({ "raw": 5, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(place.model.received(), 0);
        place.start();
        let mut titles = place.titles_when(5);
        titles.sort();
        assert_eq!(titles, [1, 2, 3, 4, 5].map(|number| format!("Compressed item-{number}")));
        assert_eq!(place.model.received(), 5);
    }
}

#[test]
fn a_server_works_too() {
    for place in Workplace::each() {
        let server = place.serve();
        place.capture(1);
        assert_eq!(place.titles_when(1), ["Compressed item-1"]);
        let mut report = tool_use(2);
        report["session_id"] = "chat".into();
        report["cwd"] = "/somewhere/shop".into();
        assert_eq!(server.post("/hooks/post-tool-use", &report).status, 200);
        assert_eq!(place.titles_when(2)[0], "Compressed item-2");
        // The same use is taken once, whoever reports it.
        assert_eq!(server.post("/hooks/post-tool-use", &report).status, 200);
        place.capture(3);
        place.titles_when(3);
        assert_eq!(place.model.received(), 3);
    }
}

#[test]
fn a_server_without_a_worker_leaves_items_to_others() {
    for place in Workplace::each() {
        let mut server = serve(&place, &["--no-worker"]);
        place.capture(1);
        place.capture(2);
        // A server with a worker would return what it holds before it ends.
        assert!(signal(server.id(), "TERM"));
        wait_until("the server ends", || server.try_wait().unwrap().is_some());
        assert_eq!(place.stats(), json!({ "raw": 2, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(place.model.received(), 0);
        place.finish(2);
    }
}

/// Starts a server and waits until it listens.
fn serve(place: &Workplace, arguments: &[&str]) -> Child {
    use std::io::{BufRead, BufReader};
    let mut command = place.command();
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

/// Items that wait, with how often each was tried and what went wrong.
fn waiting(place: &Workplace) -> Vec<(i64, Option<String>)> {
    let listed = place.ok(&["queue", "list", "--status", "raw"]);
    let items = listed["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| (item["attempts"].as_i64().unwrap(), item["last_error"].as_str().map(str::to_owned)))
        .collect()
}

#[test]
fn a_stop_does_not_wait_for_a_model_that_hangs() {
    for place in Workplace::each() {
        for number in 1..=6 {
            place.capture(number);
        }
        place.model.behave(Behaviour::Hang);
        place.start();
        // As many as are compressed at a time.
        place.model.wait_for_requests(4);
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], true);
        wait_until("nothing is left", || processes_of(&place.data_dir()).is_empty());
        assert!(!place.pid_file().exists() && !place.socket().exists());
        assert_eq!(place.stats(), json!({ "raw": 6, "processing": 0, "done": 0, "error": 0 }));
        assert_eq!(waiting(&place), vec![(0, None); 6]);
        place.finish(6);
    }
}

#[test]
fn a_stop_does_not_wait_for_a_summary_that_hangs() {
    for place in Workplace::each() {
        place.capture(1);
        place.finish(1);
        place.hook("stop", json!({}));
        place.model.forget();
        place.model.behave(Behaviour::Hang);
        place.start();
        place.model.wait_for_requests(1);
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], true);
        place.model.behave(Behaviour::Good);
        assert_eq!(place.ok(&["worker", "run", "--once"])["summaries"], 1, "it is made by the next");
    }
}

#[test]
fn a_stop_does_not_wait_for_whoever_waits_for_a_summary() {
    let place = Workplace::sqlite();
    place.capture(1);
    place.finish(1);
    let session = place.ok(&["observation", "list"])["observations"][0]["session_id"].clone();
    place.model.forget();
    place.model.behave(Behaviour::Hang);
    place.start();
    std::thread::scope(|scope| {
        let body = json!({ "session_id": session });
        let socket = place.socket();
        let asked =
            scope.spawn(move || baton_testkit::processes::ask(&socket, "POST", "/api/summarize", &body));
        place.model.wait_for_requests(1);
        assert_eq!(place.ok(&["worker", "stop"])["stopped"], true);
        assert!(asked.join().unwrap().is_err(), "nobody answers that any more");
    });
    wait_until("nothing is left", || processes_of(&place.data_dir()).is_empty());
}

#[test]
fn a_server_that_stops_gives_back_what_a_hanging_model_holds_up() {
    for place in Workplace::each() {
        place.capture(1);
        place.model.behave(Behaviour::Hang);
        let mut server = serve(&place, &[]);
        place.model.wait_for_requests(1);
        assert!(signal(server.id(), "TERM"));
        wait_until("the server ends", || server.try_wait().unwrap().is_some());
        assert!(server.wait().unwrap().success());
        assert_eq!(waiting(&place), [(0, None)]);
        place.finish(1);
    }
}

#[test]
fn a_server_that_is_stopped_the_moment_it_listens_ends_at_once() {
    for place in Workplace::each() {
        for _ in 0..8 {
            let mut server = serve(&place, &[]);
            assert!(signal(server.id(), "TERM"));
            wait_until("the server ends", || server.try_wait().unwrap().is_some());
            assert!(server.wait().unwrap().success());
        }
    }
}

#[test]
fn what_a_killed_worker_held_is_done_after_its_lease() {
    let place = Workplace::sqlite_with(|home| home.with("BATON_WORKER_LEASE_SECONDS", "1"));
    place.capture(1);
    place.model.behave(Behaviour::Hang);
    let killed = place.start();
    place.model.wait_for_requests(1);
    assert!(signal(killed, "KILL"));
    wait_until("it is gone", || place.workers().is_empty());
    assert_eq!(place.stats()["processing"], 1, "nobody gave it back");
    place.model.behave(Behaviour::Good);
    place.start();
    assert_eq!(place.titles_when(1), ["Compressed item-1"]);
}

#[test]
fn work_goes_on_when_the_model_is_back() {
    for place in Workplace::each() {
        place.model.script([Behaviour::rate_limited(1)]);
        place.start();
        for number in 1..=3 {
            place.capture(number);
        }
        // The pause is five seconds, more or less.
        assert_eq!(place.titles_when(3).len(), 3);
        assert_eq!(place.model.received(), 4);
    }
}
