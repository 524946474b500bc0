//! `kill -9` during every verb that writes: the context is the old or the new one, the files that it refers to exist,
//! acknowledged writes are kept, and the next verb works and removes temporary files.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use baton_core::Sha256Hash;
use baton_task::rules::TaskContext;
use baton_testkit::rounds;

use crate::checkout::{Checkout, TASK};

/// Reads a context from disk and verifies the hashes of its artifacts; `None` if there is no context.
pub(crate) fn read_with_artifacts(root: &Path, task: &str) -> Option<TaskContext> {
    let path = format!(".agent-output/{task}/context.json");
    let bytes = fs::read(root.join(&path)).ok()?;
    let context = TaskContext::from_document(&bytes, &path).unwrap();
    for artifact in context.artifacts() {
        let stored = fs::read(root.join(&artifact.path)).unwrap_or_default();
        assert_eq!(Sha256Hash::of(&stored), artifact.stored_sha256, "{}", artifact.path);
    }
    for snapshot in &context.snapshots {
        assert!(root.join(&snapshot.diff_from_base).is_file(), "{}", snapshot.diff_from_base);
    }
    Some(context)
}

/// A verb, the preparation of the checkout, and the allowed exit codes when it is run again.
struct Case {
    verb: &'static [&'static str],
    prepare: fn(&Checkout, u64),
    codes: &'static [i32],
}

fn edit(checkout: &Checkout, round: u64) {
    checkout.write("src/main.rs", &format!("fn main() {{ round({round}) }}\n"));
}

/// Makes the implementer hold the task.
fn held(checkout: &Checkout, round: u64) {
    if read_with_artifacts(checkout.root(), TASK).is_none() {
        checkout.task(&["init-context", TASK]);
    }
    checkout.update("implementer", "in_progress");
    edit(checkout, round);
}

/// Finishes the work of the implementer and edits a file afterwards.
fn edited_afterwards(checkout: &Checkout, round: u64) {
    checkout.task(&["purge-context", TASK]);
    checkout.task(&["init-context", TASK]);
    checkout.work("implementer", &format!("fn main() {{ left({round}) }}\n"));
    edit(checkout, round);
}

fn drifted(checkout: &Checkout, round: u64) {
    edited_afterwards(checkout, round);
    checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
}

fn none(checkout: &Checkout, _: u64) {
    checkout.task(&["purge-context", TASK]);
}

fn another_description(checkout: &Checkout, round: u64) {
    held(checkout, round);
    let path = "tasks/TASK-0824-settings.task.yaml";
    let text = fs::read_to_string(checkout.path(path)).unwrap();
    let described: Vec<&str> = text.lines().filter(|line| !line.starts_with("title: ")).collect();
    checkout.write(path, &format!("title: Round {round}\n{}\n", described.join("\n")));
}

const CASES: &[Case] = &[
    Case { verb: &["init-context", TASK], prepare: none, codes: &[0, 4] },
    Case {
        verb: &[
            "update-agent",
            TASK,
            "--agent",
            "implementer",
            "--status",
            "in_progress",
            "--session-id",
            "s1",
        ],
        prepare: held,
        codes: &[0],
    },
    Case {
        verb: &["mark-blocked", TASK, "--agent", "reviewer", "--finding", "a finding"],
        prepare: held,
        codes: &[0],
    },
    Case { verb: &["snapshot-worktree", TASK, "--agent", "implementer"], prepare: held, codes: &[0] },
    Case {
        verb: &["record-qa", TASK, "--agent", "implementer", "--from", "README.md"],
        prepare: held,
        codes: &[0],
    },
    Case {
        verb: &["attach-evidence", TASK, "--type", "code", "--path", "src/main.rs", "--lines", "1"],
        prepare: held,
        codes: &[0],
    },
    Case { verb: &["rebuild-context", TASK], prepare: another_description, codes: &[0] },
    Case {
        verb: &["verify-worktree", TASK, "--expected-agent", "implementer"],
        prepare: edited_afterwards,
        codes: &[5],
    },
    Case { verb: &["resolve-drift", TASK, "--note", "it was me"], prepare: drifted, codes: &[0, 4] },
    Case { verb: &["complete", TASK, "--force"], prepare: held, codes: &[0, 3] },
    Case { verb: &["purge-context", TASK], prepare: held, codes: &[0] },
    Case { verb: &["sweep-contexts", "--ttl", "0s", "--all"], prepare: held, codes: &[0] },
];

#[test]
fn crash_during_any_verb_leaves_the_old_context_or_the_new_one() {
    let checkout = Checkout::new();
    let dice = RandomState::new();
    let (mut killed, mut undone) = (0, 0);
    for round in 0..rounds(8) {
        for (number, case) in CASES.iter().enumerate() {
            (case.prepare)(&checkout, 100 * round + number as u64);
            let before = read_with_artifacts(checkout.root(), TASK);
            let mut child = checkout
                .home
                .command()
                .arg("task")
                .args(case.verb)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Random time between the start and shortly after the end of the verb.
            std::thread::sleep(Duration::from_micros(dice.hash_one((round, number)) % 45_000));
            let exited = child.try_wait().unwrap();
            killed += u64::from(exited.is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            let after = read_with_artifacts(checkout.root(), TASK);
            let count =
                |context: &Option<TaskContext>| context.as_ref().map(|context| context.audit.update_count);
            if exited.is_some_and(|status| status.success()) {
                assert_ne!(count(&before), count(&after), "{:?} succeeded", case.verb);
            }
            match (count(&before), count(&after)) {
                (Some(one), Some(other)) if one == other => {
                    assert_eq!(before, after, "{:?}", case.verb);
                    undone += 1;
                }
                (Some(one), Some(other)) => assert_eq!(one + 1, other, "{:?}", case.verb),
                (None, Some(first)) => assert_eq!((case.verb[0], first), ("init-context", 1)),
                (None, None) => undone += 1,
                (Some(_), None) => {
                    assert!(["complete", "purge-context", "sweep-contexts"].contains(&case.verb[0]));
                }
            }
            // The verb can be run again, and archived contexts can be read.
            let again = checkout.try_task(case.verb);
            assert!(case.codes.contains(&again.code), "{:?}: {again:?}", case.verb);
            if count(&read_with_artifacts(checkout.root(), TASK)) > count(&after) {
                let files = fs::read_dir(checkout.path(&format!(".agent-output/{TASK}"))).unwrap().flatten();
                let names: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
                assert!(!names.iter().any(|name| name.starts_with(".tmp-")), "{names:?}");
            }
            let list = checkout.task(&["list", "--archived"])["tasks"].clone();
            assert!(list.as_array().unwrap().iter().all(|task| task["problem"].is_null()), "{list}");
            for left in fs::read_dir(checkout.path(".agent-output")).unwrap().flatten() {
                let name = left.file_name().into_string().unwrap();
                let known = name.starts_with("TASK-")
                    || [".archive", ".objects", ".locks", ".context_store.lock", ".gitignore"]
                        .contains(&name.as_str());
                assert!(known || name == ".trash", "{name}");
            }
        }
    }
    assert!(killed > 0 && undone > 0, "{killed} killed, {undone} undone");
    checkout.task(&["purge-context", TASK]);
    assert!(!checkout.path(".agent-output/.trash").exists(), "the trash must be emptied");
}
