//! Two processes of the real binary on one task: no object that a snapshot needs is removed, and a reader never sees a
//! partial file. Lost updates are tested in `baton-task`, without git.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use baton_task::rules::TaskContext;
use baton_testkit::binary::Finished;

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

/// Runs two verbs at the same time. Both must succeed.
fn both(checkout: &Checkout, verbs: [&[&str]; 2]) {
    let run = |verb: &[&str]| {
        let finished = finished(checkout.home.command().arg("task").args(verb));
        assert_eq!(finished.code, 0, "{finished:?}");
    };
    std::thread::scope(|scope| {
        for verb in verbs {
            scope.spawn(move || run(verb));
        }
    });
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

fn context(checkout: &Checkout) -> TaskContext {
    read_with_artifacts(checkout.root(), TASK).unwrap()
}

#[test]
fn concurrent_snapshots_and_purges_lose_no_objects() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    let snapshot: &[&str] = &["snapshot-worktree", TASK, "--agent", "implementer"];
    while_read(&checkout, || {
        for round in 0..rounds() {
            checkout.write("src/main.rs", &format!("fn main() {{ round({round}) }}\n"));
            both(&checkout, [snapshot, snapshot]);
            // Purging another task removes unused objects, but none of this task.
            checkout.task(&["init-context", "TASK-0825"]);
            checkout.task(&["snapshot-worktree", "TASK-0825", "--agent", "implementer"]);
            checkout.write("src/main.rs", &format!("fn main() {{ again({round}) }}\n"));
            both(&checkout, [snapshot, &["purge-context", "TASK-0825"]]);
            assert_objects_are_there(&checkout);
        }
    });
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
