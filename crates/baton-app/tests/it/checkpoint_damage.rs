//! Damaged data: damaged checkpoints are reported, all others stay readable.

use std::path::Path;

use baton_app::Settings;
use baton_app::checkpoint::ContextStorage;
use baton_app::maintenance::{check_store, recount_workflows};
use baton_core::checkpoint::CheckpointStatus;
use baton_store::{BlobFolder, Effort, Frame, FrameBody, Packing};
use baton_testkit::contract::fixture::Dice;
use baton_testkit::contract::{read, write};
use serde_json::{Value, json};

use crate::checkpoint::default_settings;
use crate::saving::{context, edit, id, prose, text};
use crate::stage::{Stage, ok, refused};

/// Checkpoints of two series of a workflow and of another workflow, as ids and texts, oldest first.
struct Scene {
    early: Vec<(String, String)>,
    late: Vec<(String, String)>,
    other: Vec<(String, String)>,
}

fn series(stage: &Stage, workflow: &str, dice: &mut Dice, count: usize) -> Vec<(String, String)> {
    let mut current = context(dice, 10_000);
    let mut saved = Vec::new();
    for _ in 0..count {
        saved.push((id(&stage.save(workflow, &current)), text(&current)));
        edit(dice, &mut current);
    }
    saved
}

fn scene(stage: &Stage) -> Scene {
    let mut dice = Dice::new(7);
    let early = series(stage, "w", &mut dice, 4);
    let late = series(stage, "w", &mut dice, 6);
    let place = |(id, _): &(String, String)| stage.row(id).unwrap().place;
    assert_eq!((place(&early[3]).series, place(&late[0]).series, place(&late[5]).position), (0, 1, 5));
    Scene { early, late, other: series(stage, "other", &mut dice, 3) }
}

/// Returns the stored frame of a checkpoint.
fn frame(stage: &Stage, checkpoint: &str) -> Frame {
    let row = stage.row(checkpoint).unwrap();
    read(&stage.store, move |tx| tx.chain(&row.venture, &row.workflow_id, row.place)).pop().unwrap().frame
}

/// Changes the bytes of a frame but not its recorded hash and size.
fn change(stage: &Stage, checkpoint: &str, change: impl Fn(&mut Vec<u8>)) {
    let mut held = frame(stage, checkpoint);
    if let FrameBody::Row(bytes) = &mut held.body {
        change(bytes);
    }
    put(stage, checkpoint, held);
}

fn put(stage: &Stage, checkpoint: &str, held: Frame) {
    let id = checkpoint.parse().unwrap();
    write(&stage.store, move |tx| tx.replace_frame(id, &held));
}

fn load(stage: &Stage, checkpoint: &str) -> baton_app::Reply {
    stage.call("checkpoint.load", json!({ "checkpointId": checkpoint }))
}

/// Checks that a load fails as damaged, names the newest readable checkpoint, and marks the checkpoint.
#[track_caller]
fn assert_damaged(stage: &Stage, checkpoint: &str, newest: Option<&String>) -> Value {
    let reply = load(stage, checkpoint);
    assert_eq!(reply.status, 410);
    let body = refused(&reply, "checkpoint_corrupt");
    assert_eq!(body["details"]["checkpointId"], checkpoint);
    assert_eq!(body["details"]["newestReadable"], json!(newest));
    assert!(newest.is_none_or(|newest| body["hint"].as_str().unwrap().contains(newest)), "{body}");
    assert_eq!(stage.row(checkpoint).unwrap().status, CheckpointStatus::Corrupt);
    let again = refused(&load(stage, checkpoint), "checkpoint_corrupt");
    assert_eq!(again["details"]["newestReadable"], json!(newest));
    body
}

#[track_caller]
fn assert_all_load(stage: &Stage, saved: &[(String, String)]) {
    for (id, expected) in saved {
        assert_eq!(text(&stage.load(id)), *expected);
    }
}

type Damage = fn(&mut Vec<u8>);

/// Returns all kinds of damage to the bytes of a frame.
fn damages() -> Vec<(&'static str, Damage)> {
    vec![
        ("the first bit", |bytes| bytes[0] ^= 1),
        ("the last bit", |bytes| *bytes.last_mut().unwrap() ^= 0x80),
        ("a bit in the middle", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
        }),
        ("the last byte is missing", |bytes| bytes.truncate(bytes.len() - 1)),
        ("half is missing", |bytes| bytes.truncate(bytes.len() / 2)),
        ("all is missing", Vec::clear),
        ("an extra byte", |bytes| bytes.push(0)),
        ("zeros", |bytes| bytes.fill(0)),
    ]
}

#[test]
fn damaged_frame_is_reported_and_other_checkpoints_stay_readable() {
    for (what, damage) in damages() {
        for stage in Stage::each_with(default_settings) {
            let Scene { early, late, other } = scene(&stage);
            // Only position 5 of the second series is a difference from position 4.
            change(&stage, &late[4].0, damage);
            assert_damaged(&stage, &late[4].0, Some(&late[3].0));
            assert_all_load(&stage, &late[..4]);
            assert_damaged(&stage, &late[5].0, Some(&late[3].0));
            assert_all_load(&stage, &early);
            assert_all_load(&stage, &other);
            assert_eq!(stage.latest("w")["checkpointId"], late[3].0, "{what}");
            assert_eq!(stage.ids("w").len(), 10, "damaged checkpoints are listed");
            stage.check_sums("w");
        }
    }
}

/// Returns the warning and the damaged ids of loading the latest checkpoint, in full and within a budget.
#[track_caller]
fn warnings(stage: &Stage) -> [(Value, Value); 2] {
    [json!({ "sessionId": "w" }), json!({ "sessionId": "w", "maxBytes": 500 })].map(|params| {
        let loaded = ok(&stage.call("checkpoint.load", params));
        (loaded["warning"].clone(), loaded["newerDamaged"].clone())
    })
}

#[test]
fn every_load_of_the_latest_names_newer_damaged_checkpoints_until_they_are_resolved() {
    for stage in Stage::each_with(default_settings) {
        let Scene { late, .. } = scene(&stage);
        let sound = (Value::Null, json!([]));
        assert_eq!(warnings(&stage), [sound.clone(), sound.clone()]);
        // Position 5 of the second series is a difference from position 4.
        let good = frame(&stage, &late[4].0);
        change(&stage, &late[4].0, |bytes| bytes[3] ^= 1);
        refused(&stage.call("checkpoint.load", json!({ "sessionId": "w" })), "checkpoint_corrupt");
        for _ in 0..3 {
            for (warning, damaged) in warnings(&stage) {
                assert_eq!(damaged, json!([late[5].0, late[4].0]));
                let warning = warning.as_str().unwrap();
                assert!(warning.contains(&late[5].0) && warning.contains("older checkpoint"), "{warning}");
            }
        }
        assert_eq!(ok(&load(&stage, &late[0].0))["warning"], Value::Null, "a load by id has no warning");
        // A checkpoint that can be loaded again is no longer marked as damaged.
        put(&stage, &late[4].0, good);
        ok(&load(&stage, &late[4].0));
        assert_eq!(stage.latest("w")["newerDamaged"], json!([late[5].0]));
        ok(&stage.call("checkpoint.delete", json!({ "checkpointId": late[5].0 })));
        assert_eq!(warnings(&stage), [sound.clone(), sound.clone()], "the damaged one was deleted");
        change(&stage, &late[4].0, |bytes| bytes[3] ^= 1);
        assert_damaged(&stage, &late[4].0, Some(&late[3].0));
        assert_ne!(warnings(&stage), [sound.clone(), sound.clone()]);
        stage.save("w", &json!({ "saved": "again" }));
        assert_eq!(warnings(&stage), [sound.clone(), sound], "a newer one was saved");
    }
}

#[test]
fn damaged_start_of_a_series_makes_the_next_save_start_a_new_series() {
    for stage in Stage::each_with(default_settings) {
        let Scene { early, mut late, other } = scene(&stage);
        change(&stage, &late[0].0, |bytes| bytes[9] ^= 4);
        let mut current: Value = serde_json::from_str(&late[5].1).unwrap();
        edit(&mut Dice::new(11), &mut current);
        let saved = (id(&stage.save("w", &current)), text(&current));
        let row = stage.row(&saved.0).unwrap();
        assert_eq!((row.place.series, row.place.position), (2, 0), "a new series was started");
        assert_eq!(
            stage.row(&late[0].0).unwrap().status,
            CheckpointStatus::Corrupt,
            "the save marked the damaged checkpoint"
        );
        assert_all_load(&stage, std::slice::from_ref(&saved));
        for (checkpoint, _) in late.drain(..) {
            assert_damaged(&stage, &checkpoint, Some(&saved.0));
        }
        edit(&mut Dice::new(12), &mut current);
        let next = (id(&stage.save("w", &current)), text(&current));
        assert_eq!(stage.row(&next.0).unwrap().place.position, 1, "the next save continues the new series");
        assert_all_load(&stage, &[next, saved]);
        assert_all_load(&stage, &early);
        assert_all_load(&stage, &other);
        stage.check_sums("w");
    }
}

#[test]
fn swapped_frames_are_damaged() {
    for stage in Stage::each_with(default_settings) {
        let Scene { early, late, other } = scene(&stage);
        // The frames are intact, including hash and size, but in the wrong rows.
        let (one, two) = (frame(&stage, &late[0].0), frame(&stage, &other[0].0));
        put(&stage, &late[0].0, two);
        put(&stage, &other[0].0, one);
        assert_damaged(&stage, &late[0].0, Some(&early[3].0));
        assert_damaged(&stage, &late[5].0, Some(&early[3].0));
        assert_damaged(&stage, &other[2].0, None);
        assert_all_load(&stage, &early);
        let (one, two) = (frame(&stage, &early[1].0), frame(&stage, &early[2].0));
        put(&stage, &early[1].0, two);
        put(&stage, &early[2].0, one);
        assert_damaged(&stage, &early[1].0, Some(&early[0].0));
        assert_damaged(&stage, &early[2].0, Some(&early[0].0));
        assert_all_load(&stage, &early[..1]);
    }
}

#[test]
fn checkpoint_with_an_incomplete_chain_is_damaged() {
    for stage in Stage::each_with(default_settings) {
        let Scene { early, late, other } = scene(&stage);
        let row = stage.row(&late[4].0).unwrap();
        write(&stage.store, move |tx| tx.delete_positions(&row.venture, &row.workflow_id, 1, &[4]));
        assert_damaged(&stage, &late[5].0, Some(&late[3].0));
        refused(&load(&stage, &late[4].0), "checkpoint_not_found");
        assert_all_load(&stage, &late[..4]);
        assert_all_load(&stage, &early);
        assert_all_load(&stage, &other);
    }
}

/// A changed size must be detected before memory of that size is allocated.
#[test]
fn wrong_recorded_sizes_are_damage() {
    for size in ["0", "context_bytes + 1", "16777217", "9223372036854775807"] {
        for stage in Stage::each_with(default_settings) {
            let Scene { early, late, other } = scene(&stage);
            let sql = format!("UPDATE checkpoints SET context_bytes = {size} WHERE id = '{}'", late[0].0);
            stage.store.place().execute(&sql, &sql);
            assert_damaged(&stage, &late[0].0, Some(&early[3].0));
            assert_damaged(&stage, &late[5].0, Some(&early[3].0));
            assert_all_load(&stage, &early);
            assert_all_load(&stage, &other);
            stage.save("w", &json!({ "n": 1 }));
        }
    }
}

/// The frame decompresses to more than its recorded size.
#[test]
fn decompression_stops_at_the_recorded_size() {
    for stage in Stage::each_with(default_settings) {
        let saved = id(&stage.save("w", &json!({ "s": prose(&mut Dice::new(3), 2_000) })));
        let bomb = format!("{{\"s\":\"{}\"}}", "x".repeat(16 * 1024 * 1024 - 8));
        let packed = Packing { effort: Effort::Standard, min_bytes: 1 }.whole(bomb.as_bytes()).unwrap();
        assert!(packed.bytes.len() < 4_096, "{}", packed.bytes.len());
        let hash = baton_core::Sha256Hash::of(&packed.bytes);
        let size_bytes = packed.bytes.len() as u64;
        let body = FrameBody::Row(packed.bytes);
        put(&stage, &saved, Frame { encoding: packed.encoding, key_id: None, hash, size_bytes, body });
        assert_damaged(&stage, &saved, None);
    }
}

#[test]
fn damaged_archived_checkpoint_stays_archived() {
    for stage in Stage::each_with(default_settings) {
        let Scene { early, late, .. } = scene(&stage);
        ok(&stage.call("checkpoint.delete", json!({ "checkpointId": late[0].0 })));
        change(&stage, &late[0].0, |bytes| bytes[9] ^= 4);
        assert_damaged(&stage, &late[5].0, Some(&early[3].0));
        assert!(!stage.ids("w").contains(&late[0].0));
        refused(&load(&stage, &late[0].0), "checkpoint_not_found");
        stage.save("w", &json!({ "s": prose(&mut Dice::new(3), 9_000) }));
        assert!(!stage.ids("w").contains(&late[0].0));
        stage.check_sums("w");
    }
}

#[test]
fn store_check_lists_every_damaged_item() {
    for stage in Stage::each_with(default_settings) {
        let Scene { early, late, other } = scene(&stage);
        let sound = check_store(stage.app.store(), &stage.app.settings().checkpoints.storage).unwrap();
        let all = (early.len() + late.len() + other.len()) as u64;
        assert_eq!((sound.checkpoints, sound.damaged), (all, 0), "{sound:?}");
        // Position 5 of the second series is a difference from position 4.
        change(&stage, &late[4].0, |bytes| bytes[9] ^= 4);
        let sql = "UPDATE workflows SET stored_bytes = stored_bytes + 1 WHERE id = 'other'";
        stage.store.place().execute(sql, sql);
        let found = check_store(stage.app.store(), &stage.app.settings().checkpoints.storage).unwrap();
        assert_eq!((found.checkpoints, found.damaged), (all - 2, 3));
        let named: Vec<(&str, &str)> = found.damage.iter().map(|one| (one.kind, one.id.as_str())).collect();
        assert!(named.contains(&("checkpoint", &late[4].0)), "{named:?}");
        assert!(named.contains(&("checkpoint", &late[5].0)), "{named:?}");
        assert!(named.iter().any(|(kind, id)| *kind == "workflow" && id.ends_with("/other")), "{named:?}");
        assert_eq!(
            stage.row(&late[4].0).unwrap().status,
            CheckpointStatus::Active,
            "the check does not modify anything"
        );
        assert_eq!(recount_workflows(stage.app.store()).unwrap(), 1);
        stage.check_sums("other");
        assert_eq!(
            check_store(stage.app.store(), &stage.app.settings().checkpoints.storage).unwrap().damaged,
            2,
            "damaged checkpoints stay"
        );
        assert_eq!(recount_workflows(stage.app.store()).unwrap(), 0);
    }
}

#[test]
fn recount_does_not_hide_missing_checkpoints() {
    for stage in Stage::each_with(default_settings) {
        scene(&stage);
        let sql = "DELETE FROM checkpoints WHERE workflow_id = 'other' AND position = 2";
        stage.store.place().execute(sql, sql);
        recount_workflows(stage.app.store()).unwrap();
        let found = check_store(stage.app.store(), &stage.app.settings().checkpoints.storage).unwrap();
        assert_eq!(found.damaged, 1, "{found:?}");
        assert!(found.damage[0].problem.starts_with("it records 3 checkpoints"), "{found:?}");
    }
}

/// A workflow with only damaged checkpoints can be listed, saved to and emptied.
#[test]
fn workflow_with_only_damaged_checkpoints_stays_usable() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = 4) {
        let saved = series(&stage, "w", &mut Dice::new(4), 4);
        change(&stage, &saved[0].0, |bytes| bytes.clear());
        for (checkpoint, _) in &saved {
            assert_damaged(&stage, checkpoint, None);
        }
        refused(&stage.call("checkpoint.load", json!({ "sessionId": "w" })), "checkpoint_not_found");
        refused(&stage.call("checkpoint.diff", json!({ "sessionId": "w" })), "checkpoint_not_found");
        let mark = json!({ "sessionId": "w", "contextKey": "a" });
        refused(&stage.call("checkpoint.mark_critical", mark), "checkpoint_not_found");
        let again = series(&stage, "w", &mut Dice::new(5), 2);
        assert_all_load(&stage, &again);
        assert_eq!(stage.ids("w"), [&again[1].0, &again[0].0, &saved[3].0, &saved[2].0].map(Clone::clone));
        let mut left = stage.ids("w");
        while let Some(checkpoint) = left.pop() {
            ok(&stage.call("checkpoint.delete", json!({ "checkpointId": checkpoint })));
            if !left.is_empty() {
                stage.check_sums("w");
            }
        }
        refused(&stage.call("checkpoint.list", json!({ "sessionId": "w" })), "session_not_found");
    }
}

fn with_blobs(path: &Path) -> impl Fn(&mut Settings) {
    let path = path.to_owned();
    move |settings| {
        let packing = Packing { effort: Effort::Standard, min_bytes: 1_024 };
        settings.checkpoints.storage = ContextStorage::new(packing).with_blobs(Some(BlobFolder::at(&path)));
    }
}

#[test]
fn missing_or_changed_blob_is_damage() {
    for damage in [
        |path: &Path| std::fs::remove_file(path).unwrap(),
        |path: &Path| std::fs::write(path, b"").unwrap(),
        |path: &Path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[1_000] ^= 1;
            std::fs::write(path, bytes).unwrap();
        },
    ] {
        let folder = tempfile::tempdir().unwrap();
        for stage in Stage::each_with(with_blobs(folder.path())) {
            let mut dice = Dice::new(8);
            let early = series(&stage, "w", &mut dice, 2);
            let large = json!({ "s": prose(&mut dice, 500_000) });
            let large = (id(&stage.save("w", &large)), text(&large));
            assert_all_load(&stage, std::slice::from_ref(&large));
            let FrameBody::Blob(name) = frame(&stage, &large.0).body else { unreachable!("it is a blob") };
            damage(&folder.path().join(&name));
            let body = assert_damaged(&stage, &large.0, Some(&early[1].0));
            assert!(
                !body.to_string().contains(folder.path().to_str().unwrap()),
                "the response must not contain paths: {body}"
            );
            assert_all_load(&stage, &early);
            let next = json!({ "s": prose(&mut dice, 500_000) });
            let next = (id(&stage.save("w", &next)), text(&next));
            assert_all_load(&stage, &[next]);
            stage.check_sums("w");
        }
    }
}

#[test]
fn blob_name_outside_the_folder_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), b"{}").unwrap();
    for stage in Stage::each_with(with_blobs(&folder.path().join("blobs"))) {
        let saved = id(&stage.save("w", &json!({ "a": 1 })));
        let other = id(&stage.save("other", &json!({ "a": 2 })));
        put(&stage, &saved, Frame { body: FrameBody::Blob("../secret".into()), ..frame(&stage, &saved) });
        let reply = load(&stage, &saved);
        assert_ne!(reply.status, 200, "{}", reply.body);
        assert_eq!(stage.load(&other), json!({ "a": 2 }));
    }
}
