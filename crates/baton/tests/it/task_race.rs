//! Two processes of the real binary on one task, with every verb that writes: no partial file, no lost update.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use baton_task::rules::TaskContext;
use baton_testkit::binary::Finished;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};
use crate::task_crash::read_with_artifacts;

/// Returns the number of rounds of each race.
fn rounds() -> usize {
    baton_testkit::rounds(10)
}

fn finished(command: &mut Command) -> Finished {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Finished { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs two verbs at the same time.
fn both(checkout: &Checkout, verbs: [&[&str]; 2]) -> [Finished; 2] {
    let run =
        |verb: &[&str]| finished(checkout.home.command().arg("task").args(verb).args(["--format", "json"]));
    std::thread::scope(|scope| {
        let [one, other] = verbs.map(|verb| scope.spawn(move || run(verb)));
        [one.join().unwrap(), other.join().unwrap()]
    })
}

/// Runs a race while another thread reads the context continuously.
fn while_read(checkout: &Checkout, race: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                read_with_artifacts(checkout.root(), TASK);
                std::thread::yield_now();
            }
        });
        // Stop the reader even if the race panics, then propagate the panic.
        let raced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(race));
        over.store(true, Ordering::Relaxed);
        raced.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn codes(finished: &[Finished; 2]) -> [i32; 2] {
    let mut codes = finished.each_ref().map(|finished| finished.code);
    codes.sort_unstable();
    codes
}

fn context(checkout: &Checkout) -> TaskContext {
    read_with_artifacts(checkout.root(), TASK).unwrap()
}

/// Asserts that both verbs succeed and both are counted in the context.
fn assert_both_recorded(checkout: &Checkout, verbs: [&[&str]; 2]) -> [Value; 2] {
    let before = context(checkout).audit.update_count;
    let finished = both(checkout, verbs);
    assert_eq!(codes(&finished), [0, 0], "{finished:?}");
    assert_eq!(context(checkout).audit.update_count, before + 2, "{verbs:?}");
    finished.map(|finished| finished.json()["data"].clone())
}

#[test]
fn concurrent_findings_logs_and_evidence_are_all_recorded() {
    let checkout = Checkout::with_context();
    let lines: String = (0..2 * rounds()).map(|line| format!("line {line}\n")).collect();
    checkout.write("lines.txt", &lines);
    checkout.write("qa.log", "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
    while_read(&checkout, || {
        for round in 0..rounds() {
            let finding = |side: &str| format!("{side} {round}");
            let (left, right) = (finding("left"), finding("right"));
            let block = |finding| ["mark-blocked", TASK, "--agent", "reviewer", "--finding", finding];
            assert_both_recorded(&checkout, [&block(&left), &block(&right)]);
            let take = |session| {
                [
                    "update-agent",
                    TASK,
                    "--agent",
                    "implementer",
                    "--status",
                    "in_progress",
                    "--session-id",
                    session,
                ]
            };
            // One session acquires the task, and the other gets an error.
            let taken = both(&checkout, [&take("left"), &take("right")]);
            assert_eq!(codes(&taken), [0, 4], "{taken:?}");
            let record = ["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"];
            assert_both_recorded(&checkout, [&record, &record]);
            checkout.update("implementer", "pending");
            let (first, second) = ((2 * round + 1).to_string(), (2 * round + 2).to_string());
            let attach = |lines| {
                ["attach-evidence", TASK, "--type", "excerpt", "--path", "lines.txt", "--lines", lines]
            };
            assert_both_recorded(&checkout, [&attach(&first), &attach(&second)]);
        }
    });
    let context = context(&checkout);
    let reviewer = &context.coordination[&"reviewer".parse().unwrap()];
    assert_eq!((reviewer.blocking_findings.len(), context.evidence.len()), (2 * rounds(), 2 * rounds()));
    assert_eq!(context.past_revisions.len(), 0, "no result may be recorded as the baseline");
}

#[test]
fn concurrent_snapshots_and_purges_lose_no_objects() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    let snapshot: &[&str] = &["snapshot-worktree", TASK, "--agent", "implementer"];
    while_read(&checkout, || {
        for round in 0..rounds() {
            checkout.write("src/main.rs", &format!("fn main() {{ round({round}) }}\n"));
            assert_both_recorded(&checkout, [snapshot, snapshot]);
            // Purging another task removes unused objects, but none of this task.
            checkout.task(&["init-context", "TASK-0825"]);
            checkout.task(&["snapshot-worktree", "TASK-0825", "--agent", "implementer"]);
            checkout.write("src/main.rs", &format!("fn main() {{ again({round}) }}\n"));
            let finished = both(&checkout, [snapshot, &["purge-context", "TASK-0825"]]);
            assert_eq!(codes(&finished), [0, 0], "{finished:?}");
            assert_objects_are_there(&checkout);
        }
    });
    let sequence: Vec<u64> = context(&checkout).snapshots.iter().map(|snapshot| snapshot.sequence).collect();
    assert_eq!(sequence, (1..=3 * rounds() as u64).collect::<Vec<_>>());
}

/// Asserts that all objects of the last snapshot of every role exist.
fn assert_objects_are_there(checkout: &Checkout) {
    let object_store = checkout.path(".agent-output/.objects");
    for snapshot in context(checkout).coordination.into_values().filter_map(|role| role.worktree_snapshot) {
        let mut command = Command::new("git");
        command.args(["rev-list", "--objects", "--quiet", &snapshot.tree]).env("GIT_DIR", &object_store);
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", checkout.path(".git/objects"));
        let finished = finished(&mut command);
        assert_eq!(finished.code, 0, "{finished:?}");
    }
}

#[test]
fn concurrent_verifications_record_one_drift_and_one_resolution() {
    let checkout = Checkout::implemented();
    let verify: &[&str] = &["verify-worktree", TASK, "--expected-agent", "implementer"];
    while_read(&checkout, || {
        for round in 0..rounds() {
            checkout.write("src/main.rs", &format!("fn main() {{ edited_by_hand({round}) }}\n"));
            let finished = both(&checkout, [verify, verify]);
            assert_eq!(codes(&finished), [5, 5], "{finished:?}");
            assert_eq!(
                context(&checkout).drift.events.len(),
                round + 1,
                "the same pair of trees must be recorded once"
            );
            let settle = |note| ["resolve-drift", TASK, "--note", note];
            let finished = both(&checkout, [&settle("left"), &settle("right")]);
            assert_eq!(codes(&finished), [0, 4], "{finished:?}");
            assert_eq!(context(&checkout).drift.open_count(), 0);
        }
    });
    assert_eq!(context(&checkout).snapshots.len(), 1 + rounds());
}

#[test]
fn concurrent_acquire_and_release_are_both_recorded() {
    let checkout = Checkout::implemented();
    while_read(&checkout, || {
        for _ in 0..rounds() {
            let status = |status| ["update-agent", TASK, "--agent", "reviewer", "--status", status];
            assert_both_recorded(&checkout, [&status("in_progress"), &status("pending")]);
        }
    });
}

#[test]
fn concurrent_rebuilds_create_one_revision_per_change() {
    let checkout = Checkout::with_context();
    let path = "tasks/TASK-0824-settings.task.yaml";
    let text = fs::read_to_string(checkout.path(path)).unwrap();
    while_read(&checkout, || {
        for round in 0..rounds() {
            checkout.write(path, &text.replace("Make it faster", &format!("Make it {round} times faster")));
            let finished = both(&checkout, [&["rebuild-context", TASK], &["rebuild-context", TASK]]);
            assert_eq!(codes(&finished), [0, 0], "{finished:?}");
            let changed = finished.map(|finished| finished.json()["data"]["changed"].clone());
            assert!(changed.contains(&json!(true)) && changed.contains(&json!(false)), "{changed:?}");
        }
    });
    let context = context(&checkout);
    assert_eq!(context.immutable_revision.number, rounds() as u64 + 1);
    assert_eq!(context.past_revisions.len(), rounds());
}

#[test]
fn concurrent_init_complete_purge_and_sweep_succeed_once() {
    let checkout = Checkout::new();
    let init: &[&str] = &["init-context", TASK];
    for round in 0..rounds() {
        assert_eq!(codes(&both(&checkout, [init, init])), [0, 4]);
        let complete: &[&str] = &["complete", TASK, "--force"];
        assert_eq!(codes(&both(&checkout, [complete, complete])), [0, 3]);
        checkout.task(init);
        let purged = both(&checkout, [&["purge-context", TASK], &["purge-context", TASK]]);
        let purged: BTreeSet<String> =
            purged.iter().map(|finished| finished.json()["data"]["purged"].to_string()).collect();
        assert_eq!(purged, BTreeSet::from(["false".into(), "true".into()]));
        checkout.task(init);
        let sweep: &[&str] = &["sweep-contexts", "--ttl", "0s", "--all"];
        let swept = both(&checkout, [sweep, sweep]);
        assert_eq!(codes(&swept), [0, 0], "{swept:?}");
        let count: usize =
            swept.iter().map(|finished| finished.json()["data"]["swept"].as_array().unwrap().len()).sum();
        assert_eq!(count, 1);
        let archived = checkout.task(&["list", "--archived"])["tasks"].clone();
        let archived = archived.as_array().unwrap();
        assert_eq!(archived.len(), 2 * (round + 1));
        assert!(archived.iter().all(|task| task["problem"].is_null()), "{archived:?}");
    }
}
