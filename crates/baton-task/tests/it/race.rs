//! Two processes on the same task: no torn file, no lost update.
//!
//! A test runs its own program again with a script in the environment; without one, `child` does nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use baton_core::ErrorCode;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK, TASK_FILE, find, place_at, read_whole};

const SCRIPT: &str = "BATON_TEST_TASK_SCRIPT";

/// How many rounds every race has: `BATON_TEST_RACE_ROUNDS`, or 200.
fn rounds() -> usize {
    std::env::var("BATON_TEST_RACE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Starts a process that works through a script: a list of verbs with parameters. It prints a line for every answer.
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

/// The answers that a process prints: `ok` or the code of an error.
pub(crate) fn answers(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The harness of the tests may have begun a line of its own.
    lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("answer:")?.1.to_owned()))
}

#[test]
fn child() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let script: Value = serde_json::from_str(&script).unwrap();
    let place =
        place_at(Path::new(script["root"].as_str().unwrap()), Arc::new(AtomicI64::new(1_800_000_000_000)));
    for call in script["calls"].as_array().unwrap() {
        let name = call[0].as_str().unwrap();
        let answer = if name == "write" {
            let path = place.root().join(call[1]["path"].as_str().unwrap());
            // By one rename, so that the other process never reads half of it.
            let beside = place.root().join(format!(".walked/{}", std::process::id()));
            std::fs::write(&beside, call[1]["text"].as_str().unwrap()).unwrap();
            std::fs::rename(beside, path).unwrap();
            continue;
        } else {
            find(name).call(&place, call[1].clone())
        };
        let word = answer.map_or_else(|fault| fault.code.to_string(), |_| "ok".into());
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "answer:{word}").unwrap();
        stdout.flush().unwrap();
    }
}

/// Lets two processes work through their scripts. Whenever one has answered four times the context is read, while the
/// other writes. Gives every answer.
fn race(checkout: &Checkout, scripts: [Vec<(&str, Value)>; 2]) -> Vec<String> {
    let read = |(number, answer): (usize, String)| {
        if number % 4 == 0 {
            read_whole(checkout.root(), TASK);
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

/// Every answer is `ok`, and every one of them is in the context.
fn assert_nothing_lost(checkout: &Checkout, answers: &[String], before: u64) {
    assert_eq!(answers.len(), 2 * rounds());
    assert!(answers.iter().all(|answer| answer == "ok"), "{answers:?}");
    assert_eq!(checkout.context().audit.update_count, before + answers.len() as u64);
}

#[test]
fn findings() {
    let checkout = Checkout::begun();
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
fn status() {
    let checkout = Checkout::begun();
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
    // Whoever comes while another session holds the task is told so, and changes nothing.
    let taken = answers.iter().filter(|answer| *answer == "ok").count() as u64;
    let refused = answers.iter().filter(|answer| *answer == "task_conflict").count() as u64;
    assert_eq!(taken + refused, answers.len() as u64, "{answers:?}");
    assert_eq!(checkout.context().audit.update_count, 1 + taken);
}

#[test]
fn snapshots() {
    let checkout = Checkout::begun();
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
fn quality_logs() {
    let checkout = Checkout::begun();
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
        "a log is a baseline only when it is recorded as one"
    );
}

#[test]
fn evidence() {
    let checkout = Checkout::begun();
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
fn drift_and_its_settlement() {
    let checkout = Checkout::begun();
    checkout.work("implementer", "src/main.rs", "left\n");
    let scripts = both(|child, round| {
        if child == 0 {
            // Half of the time the tree is as the last resolution left it; both answers are right.
            return ("verify_worktree", json!({ "task_id": TASK, "expected_agent": "implementer" }));
        }
        ("resolve_drift", json!({ "task_id": TASK, "note": format!("round {round}") }))
    });
    checkout.write("src/main.rs", "edited by hand\n");
    let answers = race(&checkout, scripts);
    let allowed = ["ok", "drift_detected", "task_conflict"];
    assert!(answers.iter().all(|answer| allowed.contains(&answer.as_str())), "{answers:?}");
    let context = checkout.context();
    assert_eq!(context.drift.events.len(), 1, "one pair of trees is one drift");
}

#[test]
fn rebuilding() {
    let checkout = Checkout::begun();
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
fn only_one_begins_purges_or_completes() {
    let checkout = Checkout::begun();
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
