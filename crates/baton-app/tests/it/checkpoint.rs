//! Saving and loading checkpoints: round trips, unchanged contexts, stored sizes, blobs.

use baton_app::Settings;
use baton_app::checkpoint::ContextStorage;
use baton_core::SessionStatus;
use baton_store::{BlobFolder, Effort, Packing};
use baton_testkit::contract::fixture::Dice;
use serde_json::{Value, json};

use crate::saving::{context, edit, id, prose, text};
use crate::stage::{DAY, HOUR, MINUTE, NOW, Stage, ok, refused, session_id, who};

pub(crate) fn default_settings(_: &mut Settings) {}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("deep"), |inner, _| json!({ "d": inner }))
}

#[test]
fn unusual_contexts_round_trip() {
    let mut dice = Dice::new(1);
    let contexts = [
        json!({}),
        json!({ "": "" }),
        json!({ "a": null, "b": [], "c": {}, "d": [[], {}], "e": false }),
        json!({ "naïve ☕": "接力棒 👩‍💻 \u{0} \u{7f} \u{2028} \\ \" / \t\r\n", "e\u{301}": "é", "é": "e\u{301}" }),
        json!({ "n": [0, -1, 1.5, -0.25, 1e-7, 1.7976931348623157e308, 5e-324, 9_007_199_254_740_991_i64] }),
        json!({ "a.b": { "c[0]": 1 }, "a": { "b": 2 }, "$1": "$1", "%": "?1" }),
        nested(60),
        json!({ "x": "y" }),
        json!({ "s": "x".repeat(1_015) }),
        json!({ "s": "x".repeat(1_016) }),
        json!({ "s": prose(&mut dice, 300 * 1024) }),
        context(&mut dice, 2 * 1024 * 1024),
    ];
    for stage in Stage::each_with(default_settings) {
        let saved: Vec<Value> = contexts.iter().map(|context| stage.save("w", context)).collect();
        for (context, saved) in contexts.iter().zip(&saved) {
            assert_eq!(saved["status"], "SAVED");
            assert_eq!(saved["sizeBytes"], text(context).len());
            let loaded = ok(&stage.call("checkpoint.load", json!({ "checkpointId": saved["checkpointId"] })));
            assert_eq!(text(&loaded["context"]), text(context));
            assert_eq!(loaded["metadata"]["sizeBytes"], saved["sizeBytes"]);
            assert_eq!(loaded["metadata"]["storedBytes"], saved["storedBytes"]);
            assert_eq!((&loaded["view"], &loaded["degraded"]), (&Value::Null, &false.into()));
        }
        let expected: Vec<String> = saved.iter().rev().map(id).collect();
        assert_eq!(stage.ids("w"), expected);
        assert_eq!(stage.latest("w")["checkpointId"], saved.last().unwrap()["checkpointId"]);
        stage.check_sums("w");
    }
}

#[test]
fn small_changes_are_stored_as_small_differences() {
    const SAVES: usize = 200;
    // The stored size does not depend on the database.
    for stage in Stage::each_with(default_settings).take(1) {
        let mut dice = Dice::new(2);
        let mut current = context(&mut dice, 100 * 1024);
        let mut saved = Vec::new();
        for _ in 0..SAVES {
            let answer = stage.save("w", &current);
            saved.push((id(&answer), text(&current), answer["storedBytes"].as_u64().unwrap()));
            edit(&mut dice, &mut current);
        }
        // This covers every chain length in every series.
        for (id, expected, _) in saved.iter().step_by(3) {
            assert_eq!(text(&stage.load(id)), *expected);
        }
        let whole = saved[0].2;
        let total: u64 = saved.iter().map(|(_, _, stored)| stored).sum();
        assert!(whole > 40 * 1024, "{whole}: the context must not compress to almost nothing");
        // A series has at most 64 checkpoints, so there are four full contexts; the rest are differences.
        let changes = total - 4 * whole;
        assert!(changes < SAVES as u64 * 2_048, "{changes} bytes for {SAVES} changes");
        assert_eq!(stage.workflow("w").stored_bytes, total);
        stage.check_sums("w");
    }
}

#[test]
fn unchanged_context_is_not_saved_again() {
    for stage in Stage::each_with(default_settings) {
        let context = json!({ "goal": "x", "n": 1.0 });
        let first = stage.save("w", &context);
        let again = stage.save("w", &json!({ "n": 1, "goal": "x" }));
        assert_eq!(again["status"], "SKIPPED_UNCHANGED");
        for same in ["checkpointId", "sessionId", "sizeBytes", "storedBytes"] {
            assert_eq!(again[same], first[same], "{same}");
        }
        let save = |more: Value| {
            let mut params = json!({ "sessionId": "w", "context": context });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ok(&stage.call("checkpoint.save", params))["status"].clone()
        };
        assert_eq!(save(json!({ "force": false })), "SKIPPED_UNCHANGED");
        assert_eq!(save(json!({ "metadata": {} })), "SKIPPED_UNCHANGED");
        assert_eq!(save(json!({ "force": true })), "SAVED");
        assert_eq!(save(json!({ "metadata": { "name": "n" } })), "SAVED");
        assert_eq!(save(json!({ "metadata": { "name": "n" } })), "SKIPPED_UNCHANGED");
        assert_eq!(save(json!({ "metadata": { "name": "n", "tags": ["a", "b"] } })), "SAVED");
        assert_eq!(save(json!({ "metadata": { "name": "n", "tags": ["b", "a"] } })), "SAVED");
        assert_eq!(save(json!({})), "SAVED", "removing the name is a change");
        assert_eq!(
            stage.save("other", &context)["status"],
            "SAVED",
            "the other workflow has no checkpoint yet"
        );
        assert_eq!(stage.ids("w").len(), 6);
        assert_eq!(stage.save("w", &json!({ "goal": "y" }))["status"], "SAVED");
        assert_eq!(stage.save("w", &context)["status"], "SAVED", "only the latest checkpoint is compared");
        stage.check_sums("w");
    }
}

#[test]
fn run_time_keys_are_not_stored() {
    for stage in Stage::each_with(default_settings) {
        let running =
            json!({ "a": 1, "_currentLoop": { "i": 3 }, "_contextSize": 99, "b": { "_contextSize": 5 } });
        let saved = stage.save("w", &running);
        let stored = json!({ "a": 1, "b": { "_contextSize": 5 } });
        let size = text(&stored).len();
        assert_eq!(saved["sizeBytes"], size);
        let restored = json!({ "a": 1, "b": { "_contextSize": 5 }, "_contextSize": size });
        assert_eq!(stage.load(&id(&saved)), restored);
        assert_eq!(
            stage.save("w", &restored)["status"],
            "SKIPPED_UNCHANGED",
            "a loaded context is unchanged"
        );
        let moved = json!({ "a": 1, "_currentLoop": { "i": 4 }, "b": { "_contextSize": 5 } });
        assert_eq!(stage.save("w", &moved)["status"], "SKIPPED_UNCHANGED");
        let plain = stage.save("plain", &json!({ "a": 1, "_currentLoop": 7 }));
        assert_eq!(stage.load(&id(&plain)), json!({ "a": 1 }), "the saved context had no size member");
        let view = json!({ "checkpointId": saved["checkpointId"], "maxBytes": 1_000 });
        assert_eq!(ok(&stage.call("checkpoint.load", view))["context"], stored, "a view has no size member");
    }
}

#[test]
fn metadata_round_trips() {
    for stage in Stage::each_with(default_settings) {
        let session = ok(&stage.call("session.start", who("agent-1")));
        let params = json!({
            "sessionId": "w", "context": { "a": 1 }, "venture": "v", "repo": "o/r",
            "metadata": { "name": "before ☕", "tags": ["a", "ü"] }, "agentSessionId": session["session_id"],
        });
        let saved = ok(&stage.at(MINUTE, "checkpoint.save", params));
        let loaded = ok(&stage.call("checkpoint.load", json!({ "sessionId": "w", "venture": "v" })));
        let hash = baton_core::Sha256Hash::of(br#"{"a":1}"#).to_string();
        let expected = json!({
            "name": "before ☕", "tags": ["a", "ü"], "status": "active", "createdAt": NOW.plus(MINUTE).to_string(),
            "sizeBytes": 7, "storedBytes": 7, "contextHash": hash, "venture": "v",
            "agentSessionId": session["session_id"], "agent": "agent-1",
        });
        assert_eq!(loaded["metadata"], expected);
        let listed = ok(&stage.call("checkpoint.list", json!({ "sessionId": "w", "venture": "v" })));
        let expected = json!([{
            "checkpointId": saved["checkpointId"], "sessionId": "w", "createdAt": NOW.plus(MINUTE).to_string(),
            "sizeBytes": 7, "metadata": expected,
        }]);
        assert_eq!(listed["checkpoints"], expected);
    }
}

#[test]
fn save_counts_as_a_heartbeat_of_the_session() {
    for stage in Stage::each_with(default_settings) {
        let session = session_id(&ok(&stage.call("session.start", who("a"))));
        let save = |since, number: u32| {
            let params = json!({ "sessionId": "w", "context": { "n": number }, "agentSessionId": session });
            ok(&stage.at(since, "checkpoint.save", params))
        };
        save(40 * MINUTE, 1);
        assert_eq!(stage.session(session).last_heartbeat_at, NOW.plus(40 * MINUTE));
        assert_eq!(save(50 * MINUTE, 1)["status"], "SKIPPED_UNCHANGED");
        assert_eq!(
            stage.session(session).last_heartbeat_at,
            NOW.plus(50 * MINUTE),
            "a skipped save is a heartbeat too"
        );
        ok(&stage.at(2 * DAY, "maintenance.cleanup", json!({})));
        assert_eq!(stage.session(session).status, SessionStatus::Abandoned);
        assert_eq!(save(2 * DAY, 2)["status"], "SAVED", "an abandoned session may still save");
        let gone = stage.session(session);
        assert_eq!((gone.status, gone.last_heartbeat_at), (SessionStatus::Abandoned, NOW.plus(50 * MINUTE)));
        let unknown = json!({
            "sessionId": "w", "context": { "n": 3 }, "agentSessionId": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ",
        });
        refused(&stage.call("checkpoint.save", unknown), "session_not_found");
        assert_eq!(stage.ids("w").len(), 2);
    }
}

#[test]
fn access_time_is_updated_once_a_minute() {
    for stage in Stage::each_with(default_settings) {
        stage.save("w", &json!({ "a": 1 }));
        let used = || stage.workflow("w").last_accessed_at;
        let load = json!({ "sessionId": "w" });
        ok(&stage.at(MINUTE, "checkpoint.load", load.clone()));
        assert_eq!(used(), NOW, "a minute has not passed");
        let later = MINUTE + std::time::Duration::from_millis(1);
        ok(&stage.at(later, "checkpoint.load", load.clone()));
        assert_eq!(used(), NOW.plus(later));
        ok(&stage.at(HOUR, "checkpoint.explain", load.clone()));
        assert_eq!(used(), NOW.plus(HOUR), "every operation that reads the context counts");
        ok(&stage.at(2 * HOUR, "checkpoint.list", load.clone()));
        assert_eq!(used(), NOW.plus(HOUR), "a list does not read the context");
        stage.clock.set(NOW.plus(3 * HOUR));
        stage.save("w", &json!({ "a": 2 }));
        assert_eq!(used(), NOW.plus(3 * HOUR));
        let workflow = stage.workflow("w");
        assert_eq!((workflow.created_at, workflow.last_saved_at), (NOW, NOW.plus(3 * HOUR)));
        ok(&stage.at(HOUR, "checkpoint.load", load));
        stage.save("w", &json!({ "a": 3 }));
        let after = stage.workflow("w");
        assert_eq!((after.last_saved_at, after.last_accessed_at), (NOW.plus(3 * HOUR), NOW.plus(3 * HOUR)));
    }
}

/// A load with read access still updates the access time.
#[test]
fn load_with_read_access_updates_the_access_time() {
    for stage in Stage::each_with(default_settings) {
        stage.save("w", &json!({ "a": 1 }));
        stage.clock.set(NOW.plus(HOUR));
        let mut call = stage.envelope(None);
        call.actor.access = baton_core::Access::Read;
        let load = crate::stage::operation("checkpoint.load");
        ok(&stage.app.call_blocking(load, call, json!({ "sessionId": "w" })));
        assert_eq!(stage.workflow("w").last_accessed_at, NOW.plus(HOUR));
        let save = json!({ "sessionId": "w", "context": { "a": 2 } });
        let mut call = stage.envelope(None);
        call.actor.access = baton_core::Access::Read;
        let save = stage.app.call_blocking(crate::stage::operation("checkpoint.save"), call, save);
        refused(&save, "forbidden");
    }
}

#[test]
fn large_contexts_are_stored_as_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let packing = Packing { effort: Effort::Standard, min_bytes: 1_024 };
    let path = folder.path().join("blobs");
    let count = || std::fs::read_dir(&path).map_or(0, Iterator::count);
    let with_blobs = |settings: &mut Settings| {
        settings.checkpoints.storage = ContextStorage::new(packing).with_blobs(Some(BlobFolder::at(&path)));
    };
    for stage in Stage::each_with(with_blobs) {
        let mut dice = Dice::new(3);
        let small = json!({ "s": prose(&mut dice, 100 * 1024) });
        let (small, before) = (stage.save("w", &small), count());
        assert_eq!(before, 0, "small frames are stored in the row");
        let mut current = json!({ "a": prose(&mut dice, 600_000), "b": "" });
        let mut saved = vec![];
        for _ in 0..3 {
            saved.push((id(&stage.save("w", &current)), text(&current)));
            current["b"] = prose(&mut dice, 20).into();
        }
        assert_eq!(count(), 1, "small differences are stored in rows");
        for (id, expected) in &saved {
            assert_eq!(text(&stage.load(id)), *expected);
        }
        assert_eq!(text(&stage.load(&id(&small))).len(), small["sizeBytes"].as_u64().unwrap() as usize);
        stage.check_sums("w");
        for name in stage.ids("w") {
            ok(&stage.call("checkpoint.delete", json!({ "checkpointId": name })));
        }
        assert_eq!(count(), 0, "the blob is removed with its last row");
        let orphan = path.join("left-by-a-crash.frame");
        std::fs::write(&orphan, "x").unwrap();
        let sweep = || ok(&stage.call("maintenance.cleanup", json!({})))["blobs_removed"].clone();
        assert_eq!((sweep(), count()), (0.into(), 1), "a recent blob may belong to a running save");
        let file = std::fs::File::options().write(true).open(&orphan).unwrap();
        file.set_modified(std::time::SystemTime::now() - 2 * HOUR).unwrap();
        assert_eq!((sweep(), count()), (1.into(), 0));
    }
}
