//! Reading observations, managing the queue, summarizing sessions, retention of raw output.

use baton_app::Settings;
use baton_app::checkpoint::ContextStorage;
use baton_core::SessionStatus;
use baton_store::{BlobFolder, Effort, Packing};
use baton_testkit::contract::fixture::Dice;
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::observing::{CHAT, bash, edit, with_model};
use crate::stage::{DAY, HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, operation, refused};

/// Reports one tool use per minute and processes them.
fn observe(stage: &Stage, uses: &[Value]) {
    for (minute, used) in (1..).zip(uses) {
        stage.clock.set(NOW.plus(minute * MINUTE));
        ok(&stage.hook("post-tool-use", used.clone()));
    }
    assert_eq!(stage.work(), uses.len());
}

fn with(mut fields: Value, name: &str, value: &str) -> Value {
    fields[name] = value.into();
    fields
}

#[test]
fn lists_observations_by_filter_and_page() {
    for stage in Stage::each() {
        let uses = [
            edit("src/lib.rs"),
            with(edit("src/lib.rs"), "repo", "o/other"),
            with(bash("ls", "a"), "venture", "w"),
            with(edit("lib.rs"), "session_id", "chat-2"),
            bash("cargo test", "ok"),
        ];
        observe(&stage, &uses);
        let list = |params: Value| ok(&stage.call("observation.list", params));
        let all: Vec<Value> = stage.observations();
        assert_eq!(all.len(), uses.len());
        let captured: Vec<&str> = all.iter().map(|seen| seen["captured_at"].as_str().unwrap()).collect();
        assert!(captured.is_sorted_by(|newer, older| newer > older), "newest first: {captured:?}");
        let session = all[1]["session_id"].clone();
        for (params, expected) in [
            (json!({ "venture": "v" }), vec![0, 1, 3, 4]),
            (json!({ "venture": "w" }), vec![2]),
            (json!({ "repo": "o/r" }), vec![0, 1, 2, 4]),
            (json!({ "session_id": session }), vec![1]),
            (json!({ "tool": "Bash" }), vec![0, 2]),
            (json!({ "tool": "bash" }), vec![]),
            (json!({ "file": "lib.rs" }), vec![1, 3, 4]),
            (json!({ "file": "./src/lib.rs" }), vec![3, 4]),
            (json!({ "file": "rc/lib.rs" }), vec![]),
            (json!({ "venture": "v", "repo": "o/r", "tool": "Edit", "file": "src/lib.rs" }), vec![4]),
        ] {
            let found = list(params.clone())["observations"].clone();
            let expected: Vec<Value> = expected.into_iter().map(|index: usize| all[index].clone()).collect();
            assert_eq!(found, Value::Array(expected), "{params}");
        }
        let (mut paged, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = list(json!({ "limit": 2, "cursor": cursor }));
            paged.extend(page["observations"].as_array().unwrap().clone());
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(paged, all);
        for wrong in [json!({ "limit": 0 }), json!({ "limit": 201 }), json!({ "cursor": "x" })] {
            assert_eq!(stage.call("observation.list", wrong.clone()).status, 400, "{wrong}");
        }
    }
}

/// Returns tool responses that are hard to store or to display.
fn unusual_responses() -> Vec<Value> {
    vec![
        json!(null),
        json!(""),
        json!("nul \0 escape \u{1b}[2J\u{7} backspace \u{8} del \u{7f} c1 \u{9b}"),
        json!("接力棒 👩‍💻 \u{202e}backwards \u{feff}\u{2028}"),
        json!({ "\0": ["\0", { "": null }], "n": 1.5e300, "i": -9_007_199_254_740_993_i64, "b": false }),
        json!([[[]], {}]),
        json!(7),
        json!("x\n".repeat(100_000)),
    ]
}

#[test]
fn returns_any_tool_response_unchanged_as_raw_output() {
    for stage in Stage::each() {
        for response in unusual_responses() {
            let input = json!({ "command": response, "note": "\0 \u{1b}[31m" });
            stage.hooked("post-tool-use", json!({
                "tool_name": "Ba\0sh\u{1b}[0m", "tool_use_id": null, "tool_input": input, "tool_response": response,
            }));
            assert_eq!(stage.work(), 1, "{response}");
            let seen = stage.observations().remove(0);
            assert_eq!(seen["tool_name"], "Bash", "control characters are removed from the name");
            let measured = match &response {
                Value::Null => 0,
                Value::String(text) => text.len(),
                other => other.to_string().len(),
            };
            assert_eq!(seen["raw_bytes"], measured, "{response}");
            let show = |raw: Value| {
                ok(&stage.call("observation.show", json!({ "observation_id": seen["id"], "raw": raw })))
            };
            let raw = show(true.into());
            assert_eq!((&raw["observation"], &raw["tool_input"]), (&seen, &input));
            assert_eq!(raw["tool_response"], response);
            for without in [show(false.into()), show(Value::Null)] {
                assert_eq!((&without["tool_input"], &without["tool_response"]), (&Value::Null, &Value::Null));
            }
            stage.clock.set(stage.app.now().plus(MILLISECOND));
        }
        let unknown =
            stage.call("observation.show", json!({ "observation_id": "obs_01HQXV3NK8ZZZZZZZZZZZZZZZZ" }));
        assert_eq!(unknown.status, 404);
        refused(&unknown, "not_found");
    }
}

fn with_blobs(folder: &std::path::Path) -> impl Fn(&mut Settings) {
    let folder = folder.to_owned();
    move |settings| {
        let packing = Packing { effort: Effort::Standard, min_bytes: 1_024 };
        settings.checkpoints.storage = ContextStorage::new(packing).with_blobs(Some(BlobFolder::at(&folder)));
    }
}

#[test]
fn retention_deletes_raw_output_and_keeps_the_observation() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("blobs");
    for stage in Stage::each_with(with_blobs(&folder)) {
        let mut dice = Dice::new(1);
        // Output that compresses badly is stored as a file.
        let large: String = (0..900_000).map(|_| char::from(b'!' + dice.below(90) as u8)).collect();
        observe(&stage, &[bash("cat large", &large), bash("ls", "small")]);
        let files = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let blob = files().next().unwrap();
        assert_eq!(files().count(), 1, "only the large output is a file");
        let seen = stage.observations();
        let stdout = |index: usize| {
            let show = json!({ "observation_id": seen[index]["id"], "raw": true });
            let shown = ok(&stage.call("observation.show", show));
            assert_eq!(shown["observation"], seen[index]);
            shown["tool_response"]["stdout"].as_str().map(str::to_owned)
        };
        assert_eq!((stdout(1), stdout(0)), (Some(large), Some("small".into())));

        let clean = || ok(&stage.call("maintenance.cleanup", json!({})));
        let processed_at = stage.app.now();
        stage.clock.set(processed_at.plus(7 * DAY));
        let done = clean();
        assert_eq!((&done["raw_outputs_dropped"], &done["blobs_removed"]), (&0.into(), &0.into()));
        assert!(stdout(1).is_some() && stdout(0).is_some());
        stage.clock.set(processed_at.plus(7 * DAY + MILLISECOND));
        let done = clean();
        assert_eq!(done["raw_outputs_dropped"], 2);
        assert_eq!((stdout(1), stdout(0)), (None, None));
        assert!(!blob.exists(), "the blob is deleted with its row");
        assert_eq!(stage.observations(), seen);
    }
}

#[test]
fn retention_keeps_pending_and_failed_items() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", bash("ls", "a"));
        stage.fail_all();
        stage.hooked("post-tool-use", bash("ls", "b"));
        stage.clock.set(NOW.plus(400 * DAY));
        assert_eq!(ok(&stage.call("maintenance.cleanup", json!({})))["raw_outputs_dropped"], 0);
        assert_eq!(stage.queue(), [1, 0, 0, 1]);
    }
}

#[test]
fn lists_retries_and_purges_queue_items() {
    for stage in Stage::each() {
        for _ in 0..3 {
            stage.hooked("post-tool-use", bash("ls", "poison"));
        }
        stage.fail_all();
        observe(&stage, &[edit("src/lib.rs"), edit("src/main.rs")]);
        stage.hooked("post-tool-use", edit("src/late.rs"));
        stage.stop_before_work();
        let list = |params| ok(&stage.call("queue.list", params));
        let failed = list(json!({ "limit": 2 }));
        let ids: Vec<i64> =
            failed["items"].as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect();
        assert_eq!(
            (failed["items"][0]["status"].as_str(), ids.len()),
            (Some("error"), 2),
            "lists failed items by default"
        );
        assert_eq!(failed["items"][0]["last_error"], "poison");
        let rest = list(json!({ "before": failed["next_before"] }));
        assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_before"]), (1, &Value::Null));
        let pending = list(json!({ "status": "raw" }));
        assert_eq!(pending["items"][0]["files_touched"], json!(["src/late.rs"]));
        assert_eq!(pending["items"][0]["attempts"], 0, "a released item has no attempt");
        assert_eq!(list(json!({ "status": "done" }))["items"].as_array().unwrap().len(), 2);
        assert_eq!(stage.call("queue.list", json!({ "status": "gone" })).status, 400);

        for status in ["raw", "processing"] {
            let reply = stage.call("queue.purge", json!({ "status": status }));
            assert_eq!(reply.status, 400, "{status}: {}", reply.body);
        }
        assert_eq!(
            ok(&stage.call("queue.stats", json!({}))),
            json!({ "raw": 1, "processing": 0, "done": 2, "error": 3 })
        );
        assert_eq!(ok(&stage.call("queue.retry", json!({ "id": ids[0] })))["retried"], 1);
        let missing = stage.call("queue.retry", json!({ "id": ids[0] }));
        assert_eq!(missing.status, 404, "the item is pending again: {}", missing.body);
        refused(&missing, "not_found");
        stage.clock.set(stage.app.now().plus(2 * HOUR));
        let purge = |params| ok(&stage.call("queue.purge", params));
        assert_eq!(purge(json!({ "older_than_hours": 3 })), json!({ "purged": 0, "more": false }));
        assert_eq!(purge(json!({ "older_than_hours": 2 })), json!({ "purged": 2, "more": false }));
        assert_eq!(purge(json!({})), json!({ "purged": 0, "more": false }));
        assert!(operation("queue.purge").effect.is_idempotent(), "a second call succeeds");
        assert_eq!(stage.queue(), [2, 0, 0, 2]);
        assert_eq!(ok(&stage.call("queue.retry", json!({})))["retried"], 2);
        stage.fail_all();
        assert_eq!(
            purge(json!({ "status": "error" })),
            json!({ "purged": 4, "more": false }),
            "includes items that failed in the current millisecond"
        );
        assert_eq!(stage.queue(), [0; 4]);
    }
}

#[test]
fn summarizes_a_session_and_optionally_ends_it() {
    for stage in Stage::each_with(with_model) {
        observe(&stage, &[edit("src/lib.rs"), bash("cargo test", "ok")]);
        let id = stage.only_session().id;
        let summarize = |params: Value| ok(&stage.call("session.summarize", params));
        let stored = || read(&stage.store, move |tx| tx.summary(id)).unwrap();
        let made = summarize(json!({ "session_id": id, "close": false }));
        assert_eq!((&made["summary"], &made["observations"]), (&"2 things were done.".into(), &2.into()));
        assert_eq!((&made["tokens"], &made["session_status"]), (&1_100.into(), &"active".into()));
        assert_eq!(
            (&made["key_files"], &made["key_decisions"]),
            (&json!(["src/lib.rs"]), &json!(["Use cookies"]))
        );
        assert_eq!(made["provenance"]["model"], "fake-1");
        assert_eq!(stored().summary.summary, "2 things were done.");
        assert_eq!(stage.session(id).status, SessionStatus::Active);

        let again = summarize(json!({ "session_id": id }));
        assert_eq!(
            (&again["summary"], &again["tokens"]),
            (&made["summary"], &0.into()),
            "the model is not called again"
        );
        assert_eq!(
            (&again["session_status"], stage.session(id).status),
            (&"ended".into(), SessionStatus::Ended)
        );
        let over = summarize(json!({ "session_id": id }));
        assert_eq!(over["session_status"], "ended", "an ended session can be summarized");
        assert_eq!(read(&stage.store, move |tx| tx.spent_on(&NOW.day())).tokens, 2 * 110 + 1_100);
        let unknown =
            stage.call("session.summarize", json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" }));
        assert_eq!(unknown.status, 404);
        refused(&unknown, "session_not_found");
    }
}

#[test]
fn summarizes_a_session_without_observations_without_a_model() {
    for stage in Stage::each_with(with_model) {
        ok(&stage.hook("session-start", json!({})));
        let made = ok(&stage.call("session.summarize", json!({ "session_id": stage.only_session().id })));
        assert_eq!((&made["summary"], &made["tokens"]), (&"No observations captured.".into(), &0.into()));
        assert_eq!(
            (&made["provenance"]["compressor"], &made["session_status"]),
            (&"offline".into(), &"ended".into())
        );
        assert!(stage.active().is_empty());
        stage.hooked("user-prompt-submit", json!({ "session_id": CHAT, "prompt": "Go on" }));
        assert_eq!(stage.active().len(), 1, "the chat continues in a new session");
    }
}

#[test]
fn health_counts_items_observations_and_tokens() {
    for stage in Stage::each_with(with_model) {
        observe(&stage, &[edit("src/lib.rs")]);
        stage.hooked("post-tool-use", bash("ls", "poison"));
        stage.fail_all();
        stage.hooked("post-tool-use", bash("ls", "b"));
        stage.clock.set(NOW.plus(10 * MINUTE));
        let health = ok(&stage.call("worker.health", json!({})));
        assert_eq!((&health["queue_depth"], &health["errors"]), (&1.into(), &1.into()));
        assert_eq!((&health["observations_today"], &health["tokens_today"]), (&1.into(), &110.into()));
        assert_eq!((&health["uptime_s"], &health["model"]), (&600.into(), &"fake-1".into()));
        stage.clock.set(NOW.plus(DAY));
        let health = ok(&stage.call("worker.health", json!({})));
        assert_eq!((&health["observations_today"], &health["tokens_today"]), (&0.into(), &0.into()));
    }
}
