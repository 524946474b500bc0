//! Deletion, quotas and retention of checkpoints.

use std::sync::Barrier;

use baton_app::Settings;
use baton_app::checkpoint::ContextStorage;
use baton_core::checkpoint::CheckpointStatus;
use baton_store::{BlobFolder, Effort, Outbox, Packing, Target};
use baton_testkit::contract::fixture::Dice;
use serde_json::{Value, json};

use crate::checkpoint::default_settings;
use crate::saving::{context, edit, id, prose, text};
use crate::stage::{DAY, HOUR, MILLISECOND, MINUTE, NOW, Stage, ok, operation, refused};

fn delete(stage: &Stage, checkpoint: &str) -> u64 {
    let deleted = ok(&stage.call("checkpoint.delete", json!({ "checkpointId": checkpoint })));
    assert_eq!(deleted["checkpointId"], checkpoint);
    deleted["freedBytes"].as_u64().unwrap()
}

/// Saves versions of one context with a small change each, and returns ids and texts.
fn versions(stage: &Stage, workflow: &str, count: usize) -> Vec<(String, String)> {
    let mut dice = Dice::new(5);
    let mut current = context(&mut dice, 20_000);
    let mut saved = Vec::new();
    for _ in 0..count {
        saved.push((id(&stage.save(workflow, &current)), text(&current)));
        edit(&mut dice, &mut current);
    }
    saved
}

#[track_caller]
fn assert_all_load(stage: &Stage, saved: &[(String, String)]) {
    for (id, expected) in saved {
        assert_eq!(text(&stage.load(id)), *expected);
    }
}

#[test]
fn data_that_other_checkpoints_need_is_kept_until_they_are_deleted() {
    for stage in Stage::each_with(default_settings) {
        let saved = versions(&stage, "w", 9);
        let bytes = |number: usize| stage.row(&saved[number].0).unwrap().stored_bytes;
        let (whole, third, last) = (bytes(0), bytes(3), bytes(8));
        assert!(whole > 20 * last, "checkpoints after the first are stored as differences");
        assert_eq!(delete(&stage, &saved[0].0), 0, "other checkpoints need its data");
        let gone = refused(
            &stage.call("checkpoint.load", json!({ "checkpointId": saved[0].0 })),
            "checkpoint_not_found",
        );
        assert_eq!(gone["details"]["checkpointId"], saved[0].0);
        refused(
            &stage.call("checkpoint.delete", json!({ "checkpointId": saved[0].0 })),
            "checkpoint_not_found",
        );
        assert!(!stage.ids("w").contains(&saved[0].0));
        assert_all_load(&stage, &saved[1..]);
        stage.check_sums("w");
        assert_eq!(delete(&stage, &saved[3].0), third, "no other checkpoint needs it");
        assert_eq!(delete(&stage, &saved[8].0), last, "the latest can be deleted like any other");
        assert_eq!(stage.latest("w")["checkpointId"], saved[7].0);
        assert_all_load(&stage, &[&saved[1..3], &saved[4..8]].concat());
        for number in [4, 6, 5, 2, 1] {
            delete(&stage, &saved[number].0);
            stage.check_sums("w");
        }
        assert_all_load(&stage, &saved[7..8]);
        let left = stage.workflow("w").stored_bytes;
        assert_eq!(delete(&stage, &saved[7].0), left, "the last checkpoint frees all data it needed");
        assert!(saved.iter().all(|(id, _)| stage.row(id).is_none()), "no row is left");
        let none = refused(&stage.call("checkpoint.load", json!({ "sessionId": "w" })), "session_not_found");
        assert_eq!(none["details"]["sessionId"], "w");
        let again = versions(&stage, "w", 2);
        assert_all_load(&stage, &again);
        stage.check_sums("w");
    }
}

/// If several callers delete the same checkpoint concurrently, one succeeds, the others fail, and it is counted once.
#[test]
fn concurrent_deletes_of_a_checkpoint_succeed_once() {
    const CALLERS: usize = 8;
    for stage in Stage::each_with(default_settings) {
        let saved = versions(&stage, "w", 4);
        let apps: Vec<_> = (0..CALLERS).map(|_| stage.another()).collect();
        for (checkpoint, _) in &saved[..3] {
            let barrier = Barrier::new(CALLERS);
            let deleted: usize = std::thread::scope(|scope| {
                let callers: Vec<_> = apps
                    .iter()
                    .map(|app| {
                        let (barrier, params) = (&barrier, json!({ "checkpointId": checkpoint }));
                        let call = stage.envelope(None);
                        scope.spawn(move || {
                            barrier.wait();
                            usize::from(
                                app.call_blocking(operation("checkpoint.delete"), call, params).status == 200,
                            )
                        })
                    })
                    .collect();
                callers.into_iter().map(|caller| caller.join().unwrap()).sum()
            });
            assert_eq!(deleted, 1);
            stage.check_sums("w");
        }
        assert_eq!(stage.ids("w"), [saved[3].0.clone()]);
    }
}

#[test]
fn count_limit_deletes_the_oldest_unnamed_checkpoint() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = 5) {
        let mut dice = Dice::new(6);
        let mut current = context(&mut dice, 5_000);
        let mut saved: Vec<(String, String)> = Vec::new();
        for number in 0..12 {
            let name = (number == 2 || number == 6).then(|| format!("keep {number}"));
            let params = json!({ "sessionId": "w", "context": current, "metadata": { "name": name } });
            saved.push((id(&ok(&stage.call("checkpoint.save", params))), text(&current)));
            edit(&mut dice, &mut current);
            stage.check_sums("w");
        }
        let expected: Vec<(String, String)> =
            [11, 10, 9, 6, 2].map(|number: usize| saved[number].clone()).into();
        let ids: Vec<String> = expected.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(stage.ids("w"), ids);
        assert_all_load(&stage, &expected);
        refused(
            &stage.call("checkpoint.load", json!({ "checkpointId": saved[0].0 })),
            "checkpoint_not_found",
        );
        stage.save("other", &current);
        assert_eq!(stage.ids("w"), ids, "the limit applies to each workflow");
    }
}

#[test]
fn workflow_full_of_named_checkpoints_rejects_saves() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = 3) {
        for number in 0..3 {
            stage.save_named("w", &format!("n{number}"), &json!({ "n": number }));
        }
        let before = stage.ids("w");
        let save = json!({ "sessionId": "w", "context": { "n": 9 } });
        let full = refused(&stage.call("checkpoint.save", save.clone()), "storage_quota_exceeded");
        assert_eq!(full["details"], json!({ "currentCount": 3, "maxCount": 3 }));
        assert!(full["hint"].as_str().unwrap().contains("checkpoint delete"), "{full}");
        assert_eq!(stage.ids("w"), before, "the rejected save deleted nothing");
        assert_eq!(
            stage.save_named("w", "n2", &json!({ "n": 2 })),
            before[0],
            "an unchanged context needs no space"
        );
        delete(&stage, &before[2]);
        assert_eq!(ok(&stage.call("checkpoint.save", save))["status"], "SAVED");
        stage.check_sums("w");
    }
}

#[test]
fn count_limit_of_one_keeps_the_latest_checkpoint() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = 1) {
        for (id, expected) in versions(&stage, "w", 5) {
            let ids = stage.ids("w");
            if ids[0] == id {
                assert_eq!(text(&stage.load(&id)), expected);
            }
            assert_eq!(ids.len(), 1);
            stage.check_sums("w");
        }
        assert_eq!(stage.workflow("w").checkpoint_count, 1);
    }
}

/// A lowered limit takes effect with the next save.
#[test]
fn lowered_count_limit_deletes_all_excess_checkpoints() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = 4) {
        let wide = stage.beside(default_settings);
        let context = |n: u32| json!({ "n": n });
        let calls: Vec<String> = (0..230)
            .map(|n| {
                let params = json!({ "sessionId": "w", "context": context(n) });
                id(&ok(&wide.call_blocking(operation("checkpoint.save"), stage.envelope(None), params)))
            })
            .collect();
        let last = id(&stage.save("w", &context(1_000)));
        assert_eq!(stage.ids("w"), [&last, &calls[229], &calls[228], &calls[227]].map(Clone::clone));
        stage.check_sums("w");
    }
}

/// Returns a unique context of the given size that does not compress to less than half.
fn filler(seed: u64, kilobytes: usize) -> Value {
    json!({ "s": prose(&mut Dice::new(seed), kilobytes * 1_000) })
}

#[test]
fn size_quota_deletes_from_the_least_recently_used_workflow_first() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_total_bytes = 140_000) {
        let mut kept = Vec::new();
        for (minute, workflow) in ["old", "older", "current"].into_iter().enumerate() {
            stage.clock.set(NOW.plus(u32::try_from(minute).unwrap() * MINUTE));
            let named = filler(minute as u64 * 10, 10);
            kept.push((stage.save_named(workflow, "keep", &named), text(&named)));
            for seed in 1..3 {
                let context = filler(minute as u64 * 10 + seed, 20);
                let saved = (id(&stage.save(workflow, &context)), text(&context));
                if seed == 2 {
                    kept.push(saved);
                }
            }
        }
        // "old" is used again, so "older" was unused for longer.
        stage.clock.set(NOW.plus(HOUR));
        stage.latest("old");
        let before = stage.ids("old");
        stage.clock.set(NOW.plus(2 * HOUR));
        let context = filler(100, 90);
        kept.push((id(&stage.save("current", &context)), text(&context)));
        assert_eq!(stage.ids("older").len(), 2, "the latest and the named checkpoint remain");
        assert_eq!(stage.ids("old"), before, "enough space was freed already");
        assert_all_load(&stage, &kept);
        for workflow in ["old", "older", "current"] {
            stage.check_sums(workflow);
        }
        // A context larger than all deletable checkpoints.
        let before: Vec<_> = ["old", "older", "current"].map(|workflow| stage.ids(workflow)).into();
        let too_large = json!({ "sessionId": "new", "context": filler(101, 300) });
        let full = refused(&stage.call("checkpoint.save", too_large), "storage_quota_exceeded");
        let size = |name: &str| full["details"][name].as_u64().unwrap();
        assert_eq!(size("maxSize"), 140_000);
        assert!(size("currentSize") + size("neededSize") > 140_000, "{full}");
        let after: Vec<_> = ["old", "older", "current"].map(|workflow| stage.ids(workflow)).into();
        assert_eq!(after, before, "the rejected save deleted nothing");
        assert_all_load(&stage, &kept);
        refused(&stage.call("checkpoint.list", json!({ "sessionId": "new" })), "session_not_found");
        assert_eq!(stage.save("small", &json!({ "n": 1 }))["status"], "SAVED");
    }
}

/// Deleting the oldest checkpoint of a workflow frees nothing if the latest needs its data. Other workflows are tried
/// then.
#[test]
fn size_quota_skips_workflows_that_cannot_free_space() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_total_bytes = 230_000) {
        for number in 0..25 {
            stage.clock.set(NOW.plus(number * MINUTE));
            versions_of(&stage, &format!("full-{number}"), u64::from(number), 2);
        }
        stage.clock.set(NOW.plus(HOUR));
        for seed in 100..103 {
            stage.save("large", &filler(seed, 40));
        }
        stage.clock.set(NOW.plus(2 * HOUR));
        let context = filler(200, 80);
        let saved = id(&stage.save("new", &context));
        assert_eq!(text(&stage.load(&saved)), text(&context));
        assert_eq!(stage.ids("large").len(), 1);
        stage.check_sums("large");
        stage.check_sums("full-0");
    }
}

fn versions_of(stage: &Stage, workflow: &str, seed: u64, count: usize) {
    let mut dice = Dice::new(seed + 1_000);
    let mut current = context(&mut dice, 8_000);
    for _ in 0..count {
        stage.save(workflow, &current);
        edit(&mut dice, &mut current);
    }
}

/// The saved workflow deletes its own checkpoints, but never data that the new checkpoint needs.
#[test]
fn single_workflow_stays_within_the_size_quota() {
    for stage in Stage::each_with(|settings| settings.checkpoints.max_total_bytes = 60_000) {
        let mut dice = Dice::new(8);
        let mut latest = Vec::new();
        let mut current = context(&mut dice, 30_000);
        for number in 0..16 {
            if number % 6 == 5 {
                current = context(&mut dice, 30_000);
            }
            edit(&mut dice, &mut current);
            latest = vec![(id(&stage.save("w", &current)), text(&current))];
            assert_all_load(&stage, &latest);
            stage.check_sums("w");
            assert!(stage.workflow("w").stored_bytes <= 60_000);
        }
        let rest = stage.ids("w");
        assert_eq!(rest[0], latest[0].0);
        for id in rest {
            stage.load(&id);
        }
    }
}

#[test]
fn cleanup_deletes_unnamed_checkpoints_of_inactive_workflows() {
    for stage in Stage::each_with(default_settings) {
        let mut saved = versions(&stage, "w", 6);
        let named = json!({ "named": prose(&mut Dice::new(9), 3_000) });
        let name = (stage.save_named("w", "keep", &named), text(&named));
        saved.extend(versions(&stage, "w", 3));
        let used = versions(&stage, "used", 3);
        let sweep = |since| ok(&stage.at(since, "maintenance.cleanup", json!({})));
        assert_eq!(sweep(30 * DAY)["checkpoints_dropped"], 0);
        stage.latest("used");
        let done = sweep(30 * DAY + MILLISECOND);
        assert_eq!((&done["checkpoints_dropped"], &done["more"]), (&8.into(), &true.into()));
        let last = saved.last().unwrap().clone();
        assert_eq!(stage.ids("w"), [last.0.clone(), name.0.clone()]);
        assert_all_load(&stage, &[last, name]);
        assert_all_load(&stage, &used);
        let again = sweep(30 * DAY + MINUTE);
        assert_eq!((&again["checkpoints_dropped"], &again["more"]), (&0.into(), &false.into()));
        stage.check_sums("w");
        let dropped = stage.row(&saved[1].0);
        assert!(dropped.is_none_or(|row| row.status == CheckpointStatus::Archived));
        sweep(90 * DAY);
        assert_eq!(stage.ids("used").len(), 1, "the latest checkpoint is never deleted");
    }
}

fn with_blobs(path: &std::path::Path, max_per_workflow: u64, max_total_bytes: u64) -> impl Fn(&mut Settings) {
    let path = path.to_owned();
    move |settings| {
        let packing = Packing { effort: Effort::Standard, min_bytes: 1_024 };
        settings.checkpoints.storage = ContextStorage::new(packing).with_blobs(Some(BlobFolder::at(&path)));
        settings.checkpoints.max_checkpoints = max_per_workflow;
        settings.checkpoints.max_total_bytes = max_total_bytes;
    }
}

/// Returns a unique context whose frame is a blob of more than 300 KB.
fn large(dice: &mut Dice) -> Value {
    let noise: String = (0..500_000).map(|_| char::from(b'!' + dice.below(90) as u8)).collect();
    json!({ "s": noise })
}

#[test]
fn save_removes_the_blobs_of_checkpoints_it_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for stage in Stage::each_with(with_blobs(folder.path(), 2, 1 << 30)) {
        let mut dice = Dice::new(1);
        for number in 1..=4 {
            stage.save("w", &large(&mut dice));
            assert_eq!((stage.ids("w").len(), files()), (number.min(2), number.min(2)));
        }
        for id in stage.ids("w") {
            delete(&stage, &id);
        }
        assert_eq!(files(), 0);
    }
}

/// With an idempotency key the error is stored, and the surrounding transaction is committed.
#[test]
fn save_that_exceeds_the_quota_leaves_every_blob_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for stage in Stage::each_with(with_blobs(folder.path(), 10, 900_000)) {
        let mut dice = Dice::new(1);
        for workflow in ["a", "b"] {
            ok(&stage.call(
                "checkpoint.save",
                json!({ "sessionId": workflow, "context": large(&mut dice), "metadata": { "name": workflow } }),
            ));
        }
        let before = files();
        for key in [None, Some("key")] {
            let params = json!({ "sessionId": "c", "context": large(&mut dice) });
            let reply = stage.app.call_blocking(operation("checkpoint.save"), stage.envelope(key), params);
            refused(&reply, "storage_quota_exceeded");
            assert_eq!(files(), before, "only the blob of the rejected save is removed");
        }
        for workflow in ["a", "b"] {
            assert_eq!(stage.latest(workflow)["metadata"]["name"], workflow);
        }
        for workflow in ["a", "b"] {
            delete(&stage, &stage.ids(workflow)[0]);
        }
        assert_eq!(files(), 0);
    }
}

/// A blob is removed together with its row. A reader that has already read the row must not report damage.
#[test]
fn load_during_a_concurrent_delete_does_not_report_damage() {
    let folder = tempfile::tempdir().unwrap();
    for stage in Stage::each_with(with_blobs(folder.path(), 1, 1 << 30)) {
        let mut dice = Dice::new(1);
        stage.save("w", &large(&mut dice));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let app = stage.beside(with_blobs(folder.path(), 1, 1 << 30));
                let mut loads = 0;
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) || loads == 0 {
                    let params = json!({ "sessionId": "w" });
                    let reply = app.call_blocking(operation("checkpoint.load"), stage.envelope(None), params);
                    assert_eq!(reply.status, 200, "{}", reply.body);
                    loads += 1;
                }
            });
            for _ in 0..20 {
                stage.save("w", &large(&mut dice));
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            reader.join().unwrap();
        });
        assert_eq!(stage.ids("w").len(), 1);
    }
}

#[test]
fn cleanup_removes_temporary_files_of_killed_writers() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = folder.path().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    let path = folder.path().to_owned();
    let with_outbox = move |settings: &mut Settings| {
        settings.outbox = Some(Outbox::at(&path, Some(Target::server("here"))));
    };
    for stage in Stage::each_with(with_outbox) {
        let files = [folder.path().join(".tmp-a"), hooks.join(".tmp-b")];
        let young = folder.path().join(".tmp-c");
        std::fs::write(&young, "x").unwrap();
        for file in &files {
            std::fs::write(file, "x").unwrap();
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * HOUR).unwrap();
        }
        ok(&stage.call("maintenance.cleanup", json!({})));
        assert!(files.iter().all(|file| !file.exists()) && young.exists());
    }
}
