//! A full or read-only disk, on a real small file system: no stored data is lost, and all of it can be read.

use std::path::Path;

use baton_testkit::binary::{Finished, Home};
use baton_testkit::processes::wait_until;
use baton_testkit::small_disk::{fill, make_read_only, on_small_disk};
use serde_json::{Value, json};

const KIB: usize = 1024;

/// Creates a home whose data folder is on the small disk.
fn home_on(disk: &Path) -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
        .with("BATON_DATA_DIR", disk.join("data").to_str().unwrap())
        .with("BATON_LOG", "info")
}

/// Returns a context of about this size that compresses badly.
fn context(seed: u64, bytes: usize) -> Value {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut noise = String::with_capacity(bytes);
    for _ in 0..bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.push(char::from(alphabet[(state >> 58) as usize]));
    }
    // Short words, because a long one would look like a secret.
    let words: Vec<&str> = (0..bytes).step_by(8).map(|at| &noise[at..(at + 8).min(bytes)]).collect();
    json!({ "seed": seed, "notes": words.join(" ") })
}

fn save(home: &Home, workflow: &str, context: &Value) -> Finished {
    let file = home.path().join("context.json");
    std::fs::write(&file, context.to_string()).unwrap();
    let file = file.to_str().unwrap();
    home.run(&["checkpoint", "save", "--session", workflow, "--file", file, "--format", "json"])
}

fn run(home: &Home, arguments: &[&str]) -> Value {
    let finished = home.run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
    finished.json()["data"].clone()
}

fn ids(home: &Home, workflow: &str) -> Vec<String> {
    let listed = run(home, &["checkpoint", "list", "--session", workflow]);
    let found = listed["checkpoints"].as_array().unwrap();
    found.iter().map(|checkpoint| checkpoint["checkpointId"].as_str().unwrap().to_owned()).collect()
}

/// Saves checkpoints as blobs to workflow `old` and returns their ids, newest first.
fn save_history(home: &Home, count: u64) -> Vec<String> {
    for seed in 1..=count {
        let saved = save(home, "old", &context(seed, 500 * KIB));
        assert_eq!(saved.code, 0, "{saved:?}");
    }
    ids(home, "old")
}

fn assert_loadable(home: &Home, ids: &[String]) {
    for id in ids {
        let loaded = run(home, &["checkpoint", "load", id]);
        let seed = loaded["context"]["seed"].as_u64().unwrap();
        let bytes = loaded["context"]["notes"].as_str().unwrap().len();
        assert_eq!(loaded["context"], context(seed, bytes - (bytes - 1) / 9), "{id}");
    }
}

fn blob_count(disk: &Path) -> usize {
    std::fs::read_dir(disk.join("data/blobs")).unwrap().count()
}

#[test]
fn deletes_old_checkpoints_only_for_a_save_that_is_stored() {
    on_small_disk("full_disk::deletes_old_checkpoints_only_for_a_save_that_is_stored", 24, |disk| {
        let home = home_on(disk);
        let mut old = save_history(&home, 18);
        fill(disk, 600 * KIB as u64);
        let mut new = Vec::new();
        for seed in 101..=105 {
            let saved = save(&home, "new", &context(seed, 900 * KIB));
            let left = ids(&home, "old");
            if saved.code == 0 {
                new.insert(0, saved.json()["data"]["checkpointId"].as_str().unwrap().to_owned());
                assert!(
                    left.len() + 2 >= old.len(),
                    "one save must delete at most two checkpoints: {old:?} {left:?}"
                );
                assert_eq!(saved.stderr.matches("deleted a checkpoint").count(), old.len() - left.len());
            } else {
                assert!(!saved.stderr.contains("deleted"), "{saved:?}");
                assert_eq!(left, old, "a failed save must delete nothing: {saved:?}");
            }
            assert!(old.starts_with(&left), "the oldest checkpoints must be deleted first");
            old = left;
            assert_eq!(ids(&home, "new"), new);
            assert_eq!(
                blob_count(disk),
                old.len() + new.len(),
                "blobs of deleted checkpoints must be removed immediately"
            );
        }
        assert_eq!(new.len(), 5, "space of old checkpoints must be reused");
        assert_loadable(&home, &[old, new].concat());
    });
}

#[test]
fn save_that_does_not_fit_deletes_nothing_and_says_that_retrying_is_useless() {
    let test = "full_disk::save_that_does_not_fit_deletes_nothing_and_says_that_retrying_is_useless";
    on_small_disk(test, 24, |disk| {
        let home = home_on(disk);
        let old = save_history(&home, 10);
        fill(disk, 600 * KIB as u64);
        let huge = context(1, 8 * 1024 * KIB);
        for _ in 0..2 {
            let refused = save(&home, "new", &huge);
            assert_eq!(refused.code, 9, "{refused:?}");
            assert!(!refused.stderr.contains("deleted"), "{refused:?}");
            let error = &refused.json()["error"];
            assert_eq!(error["code"], "store_unavailable");
            assert_eq!(error["details"], json!({ "reason": "disk_full", "retryable": false }));
            assert!(error["hint"].as_str().unwrap().starts_with("free some space"), "{error}");
            assert_eq!(ids(&home, "old"), old);
            assert_eq!(blob_count(disk), old.len(), "no partial blob may be left");
        }
        let server = home.serve();
        let body = json!({ "sessionId": "new", "context": huge });
        let refused = server.post("/api/checkpoints", &body);
        assert_eq!((refused.status, refused.header("retry-after")), (503, None), "{}", refused.text);
        assert_eq!(refused.json()["details"]["reason"], "disk_full");
        let mut client = home.mcp();
        let refused = client.call("workflow_checkpoint_save", &body);
        let error: Value = serde_json::from_str(refused["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(error["code"], "STORAGE_UNAVAILABLE", "{error}");
        assert_eq!(error["retry"], json!({ "kind": "never", "afterMs": null }));
        assert_eq!(ids(&home, "old"), old);
        assert_loadable(&home, &old);
    });
}

#[test]
fn reads_and_deletions_work_on_a_disk_without_any_space() {
    on_small_disk("full_disk::reads_and_deletions_work_on_a_disk_without_any_space", 24, |disk| {
        let home = home_on(disk);
        let old = save_history(&home, 3);
        run(&home, &["session", "start", "--agent", "a", "--repo", "o/r"]);
        fill(disk, 0);
        assert_eq!(ids(&home, "old"), old);
        assert_loadable(&home, &old);
        assert_eq!(
            run(&home, &["session", "list", "--venture", "local"])["sessions"].as_array().unwrap().len(),
            1
        );
        let refused = home.run(&["session", "start", "--agent", "b", "--repo", "o/r", "--format", "json"]);
        assert_eq!(refused.code, 9, "{refused:?}");
        assert_eq!(refused.json()["error"]["details"]["reason"], "disk_full", "{refused:?}");
        let deleted = run(&home, &["checkpoint", "delete", &old[2]]);
        assert!(deleted["freedBytes"].as_u64().unwrap() > 300 * KIB as u64, "{deleted}");
        assert_eq!(ids(&home, "old"), old[..2]);
        assert_eq!(blob_count(disk), 2);
        // Without the reserve file writes fail, and reads still work.
        std::fs::remove_file(disk.join("data/baton.db-reserve")).unwrap();
        fill(disk, 0);
        assert_loadable(&home, &old[..2]);
        let refused = home.run(&["checkpoint", "delete", &old[1], "--format", "json"]);
        assert_eq!((refused.code, ids(&home, "old").len()), (9, 2), "{refused:?}");
    });
}

#[test]
fn reads_work_on_a_read_only_file_system() {
    on_small_disk("full_disk::reads_work_on_a_read_only_file_system", 24, |disk| {
        let home = home_on(disk);
        let old = save_history(&home, 2);
        run(&home, &["session", "start", "--agent", "a", "--repo", "o/r"]);
        // A hook leaves the log of SQLite to the next process, which cannot write it here.
        let report = json!({
            "session_id": "chat", "cwd": disk, "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": { "command": "true" }, "tool_use_id": "t1", "tool_response": { "stdout": "" },
        });
        let hook = home.run_with_input(&["hook", "post-tool-use"], report.to_string().as_bytes());
        assert_eq!(hook.code, 0, "{hook:?}");
        assert!(disk.join("data/baton.db-wal").metadata().unwrap().len() > 0);
        make_read_only(disk);
        let sessions = run(&home, &["session", "list", "--venture", "local"]);
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
        assert_eq!(ids(&home, "old"), old);
        assert_loadable(&home, &old);
        for read in [
            ["checkpoint", "workflows"].as_slice(),
            &["session", "list", "--venture", "local"],
            &["handoff", "list", "--venture", "local"],
            &["observation", "list"],
            &["status"],
        ] {
            run(&home, read);
        }
        for write in [
            ["session", "start", "--agent", "b", "--repo", "o/r"].as_slice(),
            &["checkpoint", "delete", &old[0]],
            &["checkpoint", "mark-critical", "--session", "old", "seed"],
        ] {
            let refused = home.run(&[write, &["--format", "json"]].concat());
            assert_eq!(refused.code, 9, "{write:?}: {refused:?}");
            let error = &refused.json()["error"];
            assert_eq!(error["details"]["reason"], "read_only", "{write:?}: {refused:?}");
            assert!(error["hint"].is_string(), "{write:?}: {error}");
        }
        let refused = save(&home, "old", &json!({ "seed": 7 }));
        assert_eq!((refused.code, &refused.json()["error"]["details"]["reason"]), (9, &json!("read_only")));
        let server = home.serve();
        let loaded = server.get(&format!("/api/checkpoints/{}", old[0]));
        assert_eq!(loaded.status, 200, "{}", loaded.text);
        let not_ready = server.get("/readyz");
        assert_eq!(not_ready.status, 503, "{}", not_ready.text);
    });
}

#[test]
fn readiness_follows_whether_writes_succeed() {
    on_small_disk("full_disk::readiness_follows_whether_writes_succeed", 24, |disk| {
        let home = home_on(disk);
        let server = home.serve();
        assert_eq!(server.get("/readyz").status, 200);
        let filler = fill(disk, 0);
        let wait_for = |status: u16| {
            let mut answer = server.get("/readyz");
            wait_until(&format!("status {status}"), || {
                answer = server.get("/readyz");
                answer.status == status
            });
            answer
        };
        let full = wait_for(503);
        assert_eq!(full.json()["details"]["reason"], "disk_full", "{}", full.text);
        assert_eq!(server.get("/healthz").status, 200);
        std::fs::remove_file(filler).unwrap();
        wait_for(200);
    });
}
