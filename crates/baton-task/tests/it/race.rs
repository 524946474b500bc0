//! Two processes on one task: no partially written file, no lost update, and only one of two calls succeeds where one
//! excludes the other. Objects of git are tested with the binary.
//!
//! A test starts its own executable again with a script in an environment variable; without one, `child` does nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK, TASK_FILE, environment_at, find, read_with_artifacts};

const SCRIPT: &str = "BATON_TEST_TASK_SCRIPT";

/// Output of a call, or its error code.
type Answer = Result<Value, String>;

/// Number of rounds of each race: 20 times `BATON_TEST_FACTOR`.
fn rounds() -> usize {
    20 * std::env::var("BATON_TEST_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Starts a process that runs a script: a list of verbs with parameters. It prints a line for each answer.
fn start(root: &Path, script: &[(&str, Value)]) -> Child {
    let script = json!({ "root": root, "calls": script });
    Command::new(std::env::current_exe().unwrap())
        .args(["race::child", "--exact", "--nocapture", "--test-threads", "1"])
        .env(SCRIPT, script.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the answers that a process prints.
fn answers(child: &mut Child) -> impl Iterator<Item = Answer> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answer = |line: String| {
        // The test harness may have started the line with its own text.
        let answer = line.split_once("answer:")?.1;
        Some(serde_json::from_str(answer).map_err(|_| answer.to_owned()))
    };
    lines.map_while(Result::ok).filter_map(answer)
}

#[test]
fn child() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let script: Value = serde_json::from_str(&script).unwrap();
    let environment = environment_at(
        Path::new(script["root"].as_str().unwrap()),
        Arc::new(AtomicI64::new(1_800_000_000_000)),
    );
    for call in script["calls"].as_array().unwrap() {
        let answer = find(call[0].as_str().unwrap()).call(&environment, call[1].clone());
        let answer = answer.map_or_else(|fault| fault.code.to_string(), |output| output.to_string());
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "answer:{answer}").unwrap();
        stdout.flush().unwrap();
    }
}

/// Asserts that calls fail with these codes only.
fn assert_errors(answers: &[Answer], allowed: &[&str]) {
    let is_allowed =
        |answer: &Answer| answer.as_ref().err().is_none_or(|code| allowed.contains(&code.as_str()));
    assert!(answers.iter().all(is_allowed), "{answers:?}");
}

/// Runs two scripts in two processes and returns all answers. After every fourth answer of a process the context is
/// read while the other process may be writing.
fn race(checkout: &Checkout, scripts: [Vec<(&str, Value)>; 2]) -> Vec<Answer> {
    let read = |(number, answer): (usize, Answer)| {
        if number % 4 == 3 {
            read_with_artifacts(checkout.root(), TASK);
        }
        answer
    };
    std::thread::scope(|scope| {
        let mut children = scripts.map(|script| start(checkout.root(), &script));
        let lists: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let answers = answers(child);
                scope.spawn(move || answers.enumerate().map(read).collect::<Vec<_>>())
            })
            .collect();
        let all: Vec<Answer> = lists.into_iter().flat_map(|list| list.join().unwrap()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        all
    })
}

fn both(make: impl Fn(usize, usize) -> (&'static str, Value)) -> [Vec<(&'static str, Value)>; 2] {
    [0, 1].map(|child| (0..rounds()).map(|round| make(child, round)).collect())
}

/// Makes one call in each of two processes and returns the sorted codes, `ok` for success, and the outputs.
fn pair(checkout: &Checkout, calls: [(&str, Value); 2]) -> ([String; 2], Vec<Value>) {
    let answers = race(checkout, calls.map(|call| vec![call]));
    let mut codes: Vec<String> =
        answers.iter().map(|answer| answer.as_ref().err().map_or("ok", String::as_str).to_owned()).collect();
    codes.sort();
    (codes.try_into().unwrap(), answers.into_iter().flatten().collect())
}

/// Makes the same call in two processes.
fn twice(checkout: &Checkout, name: &str, params: Value) -> ([String; 2], Vec<Value>) {
    pair(checkout, [(name, params.clone()), (name, params)])
}

/// Asserts that every call succeeds and every write is counted in the context.
fn assert_nothing_lost(checkout: &Checkout, answers: &[Answer], before: u64) {
    assert_eq!(answers.len(), 2 * rounds());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(checkout.context().audit.update_count, before + answers.len() as u64);
}

#[test]
fn concurrent_findings_are_all_recorded() {
    let checkout = Checkout::with_context();
    let scripts = both(|child, round| {
        (
            "mark_blocked",
            json!({ "task_id": TASK, "agent": "reviewer", "finding": format!("{child} {round}") }),
        )
    });
    let answers = race(&checkout, scripts);
    assert_nothing_lost(&checkout, &answers, 1);
    let findings = &checkout.context().coordination[&"reviewer".parse().unwrap()].blocking_findings;
    assert_eq!(findings.len(), 2 * rounds());
}

#[test]
fn concurrent_acquisitions_succeed_or_conflict() {
    let checkout = Checkout::with_context();
    let scripts = both(|child, round| {
        let status = if round % 2 == 0 { "in_progress" } else { "pending" };
        let session = format!("s-{child}-{round}");
        (
            "update_agent",
            json!({ "task_id": TASK, "agent": "implementer", "status": status, "session_id": session }),
        )
    });
    let answers = race(&checkout, scripts);
    assert_eq!(answers.len(), 2 * rounds());
    // A call while another session holds the task fails and changes nothing.
    let taken = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    assert_errors(&answers, &["task_conflict"]);
    assert_eq!(checkout.context().audit.update_count, 1 + taken);
}

#[test]
fn only_one_of_two_sessions_acquires_a_task() {
    let checkout = Checkout::with_context();
    for _ in 0..rounds() {
        let calls = ["left", "right"].map(|session| {
            let params = json!({ "task_id": TASK, "agent": "implementer", "status": "in_progress", "session_id": session });
            ("update_agent", params)
        });
        assert_eq!(pair(&checkout, calls).0, ["ok", "task_conflict"]);
        checkout.update("implementer", "pending");
    }
}

#[test]
fn concurrent_snapshots_get_consecutive_numbers() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "edited\n");
    let scripts = both(|_, _| {
        ("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer", "actor": "racer" }))
    });
    let answers = race(&checkout, scripts);
    assert_nothing_lost(&checkout, &answers, 2);
    let sequence: Vec<u64> = checkout.context().snapshots.iter().map(|snapshot| snapshot.sequence).collect();
    assert_eq!(sequence, (1..=2 * rounds() as u64).collect::<Vec<_>>());
}

#[test]
fn concurrent_qa_logs_are_all_recorded() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    let scripts = both(|_, round| {
        (
            "record_qa",
            json!({ "task_id": TASK, "agent": "implementer", "content": format!("{round} passed in 0.1s\n") }),
        )
    });
    let answers = race(&checkout, scripts);
    assert_nothing_lost(&checkout, &answers, 2);
    assert!(
        checkout.context().past_revisions.is_empty(),
        "a log without `baseline` must not create a revision"
    );
}

#[test]
fn concurrent_evidence_is_all_recorded() {
    let checkout = Checkout::with_context();
    checkout.write("lines.txt", &(0..2 * rounds()).map(|line| format!("line {line}\n")).collect::<String>());
    let scripts = both(|child, round| {
        let line = (child * rounds() + round + 1).to_string();
        ("attach_evidence", json!({ "task_id": TASK, "type": "excerpt", "path": "lines.txt", "lines": line }))
    });
    let answers = race(&checkout, scripts);
    assert_nothing_lost(&checkout, &answers, 1);
    assert_eq!(checkout.context().evidence.len(), 2 * rounds());
}

#[test]
fn concurrent_verification_and_resolution_record_one_drift() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "left\n");
    let scripts = both(|child, round| {
        if child == 0 {
            // The tree may equal the last resolution, so success is valid as well.
            return ("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
        }
        ("resolve_drift", json!({ "task_id": TASK, "note": format!("round {round}") }))
    });
    checkout.write("src/main.rs", "edited by hand\n");
    let answers = race(&checkout, scripts);
    assert_errors(&answers, &["drift_detected", "task_conflict"]);
    let context = checkout.context();
    assert_eq!(context.drift.events.len(), 1, "the same pair of trees must be recorded once");
}

#[test]
fn each_drift_is_recorded_once_and_resolved_once() {
    let checkout = Checkout::with_context();
    checkout.work("implementer", "src/main.rs", "left\n");
    for round in 0..rounds() {
        checkout.write("src/main.rs", &format!("edited by hand {round}\n"));
        let verify = json!({ "task_id": TASK, "expected_agent": "implementer" });
        assert_eq!(twice(&checkout, "verify_worktree", verify).0, ["drift_detected", "drift_detected"]);
        assert_eq!(checkout.context().drift.events.len(), round + 1);
        let resolve = json!({ "task_id": TASK, "note": "kept" });
        assert_eq!(twice(&checkout, "resolve_drift", resolve).0, ["ok", "task_conflict"]);
        assert_eq!(checkout.context().drift.open_count(), 0);
    }
    assert_eq!(checkout.context().snapshots.len(), 1 + rounds());
}

#[test]
fn concurrent_rebuilds_create_one_revision_per_change() {
    let checkout = Checkout::with_context();
    for round in 0..rounds() {
        let text = TASK_FILE.replace("It is faster", &format!("It is {round} times faster"));
        checkout.write("tasks/open/TASK-0824-settings.task.yaml", &text);
        let (codes, outputs) = twice(&checkout, "rebuild_context", json!({ "task_id": TASK }));
        assert_eq!(codes, ["ok", "ok"]);
        assert_one(&outputs, "changed");
    }
    let context = checkout.context();
    assert_eq!(context.immutable_revision.number, rounds() as u64 + 1);
    assert_eq!(context.past_revisions.len(), rounds());
}

/// Asserts that a field is true in one of two outputs.
fn assert_one(outputs: &[Value], field: &str) {
    assert_ne!(outputs[0][field], outputs[1][field], "{outputs:?}");
}

#[test]
fn concurrent_init_complete_purge_and_sweep_succeed_once() {
    let checkout = Checkout::new();
    let task = || json!({ "task_id": TASK });
    let forced = || json!({ "task_id": TASK, "force": true });
    let sweep = || json!({ "ttl": "0s", "all": true });
    for round in 0..rounds() {
        assert_eq!(twice(&checkout, "init_context", task()).0, ["ok", "task_exists"]);
        assert_eq!(twice(&checkout, "complete", forced()).0, ["ok", "task_not_found"]);
        checkout.call("init_context", task());
        let (codes, outputs) = twice(&checkout, "purge_context", task());
        assert_eq!(codes, ["ok", "ok"]);
        assert_one(&outputs, "purged");
        checkout.call("init_context", task());
        let (codes, outputs) = twice(&checkout, "sweep_contexts", sweep());
        assert_eq!(codes, ["ok", "ok"]);
        let swept: usize = outputs.iter().map(|output| output["swept"].as_array().unwrap().len()).sum();
        assert_eq!(swept, 1, "{outputs:?}");
        let archived = checkout.call("list", json!({ "archived": true }))["tasks"].clone();
        assert_eq!(archived.as_array().unwrap().len(), 2 * (round + 1), "{archived}");
        assert!(archived.as_array().unwrap().iter().all(|task| task["problem"].is_null()), "{archived}");
    }
}

#[test]
fn concurrent_init_complete_and_purge_leave_no_damaged_task() {
    let checkout = Checkout::with_context();
    for round in 0..rounds() {
        let id = format!("TASK-{round}");
        checkout.write(&format!("tasks/{id}.task.yaml"), &TASK_FILE.replace("TASK-0824", &id));
    }
    let calls = ["init_context", "complete", "purge_context"];
    let scripts = [0, 1].map(|_| {
        let rounds = 0..rounds();
        rounds
            .flat_map(|round| {
                calls.map(|name| {
                    let id = format!("TASK-{round}");
                    (
                        name,
                        if name == "complete" {
                            json!({ "task_id": id, "force": true })
                        } else {
                            json!({ "task_id": id })
                        },
                    )
                })
            })
            .collect::<Vec<_>>()
    });
    let answers = race(&checkout, scripts);
    assert_errors(&answers, &["task_exists", "task_not_found"]);
    let tasks = checkout.call("list", json!({ "archived": true }))["tasks"].clone();
    assert!(tasks.as_array().unwrap().iter().all(|task| task["problem"].is_null()), "{tasks}");
}

#[test]
fn purge_keeps_a_task_that_was_created_after_it_started() {
    let checkout = Checkout::with_context();
    let output = checkout.root().join(".agent-output");
    let store = File::open(output.join(".context_store.lock")).unwrap();
    store.lock().unwrap();
    let mut purge = start(checkout.root(), &[("purge_context", json!({ "task_id": "TASK-NEW" }))]);
    let answers = answers(&mut purge);
    // A process that waits for the store holds a lock on the folder.
    let deadline = Instant::now() + Duration::from_secs(60);
    while File::open(&output).unwrap().try_lock().is_ok() {
        assert!(Instant::now() < deadline, "the process does not wait for the store");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::create_dir(output.join("TASK-NEW")).unwrap();
    drop(store);
    assert!(answers.collect::<Result<Vec<_>, _>>().is_ok());
    assert!(purge.wait().unwrap().success());
    assert!(output.join("TASK-NEW").is_dir());
}
