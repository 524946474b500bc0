//! Two processes on one task: no partially written file, no lost update.
//!
//! A test starts its own executable again with a script in an environment variable; without one, `child` does nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use baton_core::ErrorCode;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK, TASK_FILE, environment_at, find, read_with_artifacts};

const SCRIPT: &str = "BATON_TEST_TASK_SCRIPT";

/// Number of rounds of each race: 20 times `BATON_TEST_FACTOR`.
fn rounds() -> usize {
    20 * std::env::var("BATON_TEST_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Starts a process that runs a script: a list of verbs with parameters. It prints a line for each answer.
pub(crate) fn start(root: &Path, script: &[(&str, Value)]) -> Child {
    let script = json!({ "root": root, "calls": script });
    Command::new(std::env::current_exe().unwrap())
        .args(["race::child", "--exact", "--nocapture", "--test-threads", "1"])
        .env(SCRIPT, script.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the answers that a process prints: `ok` or an error code.
pub(crate) fn answers(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The test harness may have started the line with its own text.
    lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("answer:")?.1.to_owned()))
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
        let name = call[0].as_str().unwrap();
        let answer = if name == "write" {
            let path = environment.root().join(call[1]["path"].as_str().unwrap());
            // Written with one rename, so that the other process never reads a partial file.
            let beside = environment.root().join(format!(".walked/{}", std::process::id()));
            std::fs::write(&beside, call[1]["text"].as_str().unwrap()).unwrap();
            std::fs::rename(beside, path).unwrap();
            continue;
        } else {
            find(name).call(&environment, call[1].clone())
        };
        let word = answer.map_or_else(|fault| fault.code.to_string(), |_| "ok".into());
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "answer:{word}").unwrap();
        stdout.flush().unwrap();
    }
}

/// Runs two scripts in two processes and returns all answers. After every fourth answer of a process the context is
/// read while the other process may be writing.
fn race(checkout: &Checkout, scripts: [Vec<(&str, Value)>; 2]) -> Vec<String> {
    let read = |(number, answer): (usize, String)| {
        if number % 4 == 0 {
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
        let all: Vec<String> = lists.into_iter().flat_map(|list| list.join().unwrap()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        all
    })
}

fn both(make: impl Fn(usize, usize) -> (&'static str, Value)) -> [Vec<(&'static str, Value)>; 2] {
    [0, 1].map(|child| (0..rounds()).map(|round| make(child, round)).collect())
}

/// Asserts that every answer is `ok` and every write is counted in the context.
fn assert_nothing_lost(checkout: &Checkout, answers: &[String], before: u64) {
    assert_eq!(answers.len(), 2 * rounds());
    assert!(answers.iter().all(|answer| answer == "ok"), "{answers:?}");
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
    let taken = answers.iter().filter(|answer| *answer == "ok").count() as u64;
    let refused = answers.iter().filter(|answer| *answer == "task_conflict").count() as u64;
    assert_eq!(taken + refused, answers.len() as u64, "{answers:?}");
    assert_eq!(checkout.context().audit.update_count, 1 + taken);
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
            // The tree may equal the last resolution, so `ok` is a valid answer as well.
            return ("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
        }
        ("resolve_drift", json!({ "task_id": TASK, "note": format!("round {round}") }))
    });
    checkout.write("src/main.rs", "edited by hand\n");
    let answers = race(&checkout, scripts);
    let allowed = ["ok", "drift_detected", "task_conflict"];
    assert!(answers.iter().all(|answer| allowed.contains(&answer.as_str())), "{answers:?}");
    let context = checkout.context();
    assert_eq!(context.drift.events.len(), 1, "the same pair of trees must be recorded once");
}

#[test]
fn concurrent_rebuilds_keep_every_revision() {
    let checkout = Checkout::with_context();
    let [_, other] = both(|_, _| ("rebuild_context", json!({ "task_id": TASK })));
    let changing = (0..rounds())
        .flat_map(|round| {
            let text = TASK_FILE.replace("It is faster", &format!("It is {round} times faster"));
            let path = "tasks/open/TASK-0824-settings.task.yaml";
            [
                ("write", json!({ "path": path, "text": text })),
                ("rebuild_context", json!({ "task_id": TASK })),
            ]
        })
        .collect();
    let scripts = [changing, other];
    let answers = race(&checkout, scripts);
    assert!(answers.iter().all(|answer| answer == "ok"), "{answers:?}");
    let context = checkout.context();
    assert_eq!(context.immutable_revision.number, context.past_revisions.len() as u64 + 1);
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
    let allowed = ["ok", ErrorCode::TaskExists.as_str(), ErrorCode::TaskNotFound.as_str()];
    assert!(answers.iter().all(|answer| allowed.contains(&answer.as_str())), "{answers:?}");
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
    assert_eq!(answers.collect::<Vec<_>>(), ["ok"]);
    assert!(purge.wait().unwrap().success());
    assert!(output.join("TASK-NEW").is_dir());
}
