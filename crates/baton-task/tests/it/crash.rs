//! `kill -9` at any time: the context is the old or the new one, the files that it refers to exist, and acknowledged
//! writes are kept.

use std::time::Duration;

use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};
use crate::race::{answers, start};

/// Number of processes to kill: 25 times `BATON_TEST_FACTOR`.
fn cycles() -> u64 {
    25 * std::env::var("BATON_TEST_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn script(cycle: u64) -> Vec<(&'static str, Value)> {
    (0..200)
        .flat_map(|round| {
            let name = format!("{cycle} {round}");
            [
                ("write", json!({ "path": "src/main.rs", "text": format!("edit {name}\n") })),
                ("snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer", "actor": "doomed" })),
                ("record_qa", json!({ "task_id": TASK, "agent": "implementer", "content": format!("{round} passed in 0.1s") })),
                ("mark_blocked", json!({ "task_id": TASK, "agent": "reviewer", "finding": name })),
                ("attach_evidence", json!({ "task_id": TASK, "type": "code", "path": "src/main.rs", "lines": "1" })),
            ]
        })
        .collect()
}

#[test]
fn crash_leaves_the_old_context_or_the_new_one() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    for cycle in 0..cycles() {
        let before = checkout.context().audit.update_count;
        let mut child = start(checkout.root(), &script(cycle));
        let mut lines = answers(&mut child);
        let awaited = 1 + usize::try_from(cycle % 8).unwrap();
        let mut answered: Vec<String> = lines.by_ref().take(awaited).collect();
        // The next call is killed at different places. What must hold does not depend on the place.
        std::thread::sleep(Duration::from_micros(cycle * 397 % 4_000));
        child.kill().unwrap();
        child.wait().unwrap();
        answered.extend(lines);
        assert!(answered.len() >= awaited && answered.iter().all(|answer| answer == "ok"), "{answered:?}");
        let now = checkout.context().audit.update_count;
        let acknowledged = before + answered.len() as u64;
        assert!((acknowledged..=acknowledged + 1).contains(&now), "{acknowledged} answered, {now} written");
        // The next process can write and removes the temporary files.
        checkout.call(
            "mark_blocked",
            json!({ "task_id": TASK, "agent": "validator", "finding": format!("after {cycle}") }),
        );
        let folder = checkout.root().join(".agent-output").join(TASK);
        let left: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(".tmp-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
