//! A database that cannot be used: checkpoints and notes are saved to the outbox and replayed later; all
//! other operations fail.

use baton_testkit::binary::{Finished, Home, tool_answer};
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
}

fn json_run(home: &Home, arguments: &[&str]) -> Finished {
    home.run(&[arguments, &["--format", "json"]].concat())
}

fn save(home: &Home, session: &str, context: &Value) -> Value {
    let file = home.path().join("context.json");
    std::fs::write(&file, context.to_string()).unwrap();
    let saved =
        json_run(home, &["checkpoint", "save", "--session", session, "--file", file.to_str().unwrap()]);
    assert_eq!(saved.code, 0, "{saved:?}");
    saved.json()["data"].clone()
}

fn loaded(home: &Home, arguments: &[&str]) -> Value {
    let loaded = json_run(home, &[&["checkpoint", "load"], arguments].concat());
    assert_eq!(loaded.code, 0, "{loaded:?}");
    loaded.json()["data"].clone()
}

fn ids(home: &Home, session: &str) -> Vec<String> {
    let listed = json_run(home, &["checkpoint", "list", "--session", session]).json();
    let found = listed["data"]["checkpoints"].as_array().cloned().unwrap_or_default();
    found.iter().map(|checkpoint| checkpoint["checkpointId"].as_str().unwrap().to_owned()).collect()
}

/// Replaces the database with an invalid file and returns a function that restores it.
fn break_database(home: &Home) -> impl FnOnce() {
    let (database, away) = (home.data_dir().join("baton.db"), home.path().join("away.db"));
    std::fs::rename(&database, &away).unwrap();
    std::fs::write(&database, "this is no database, whatever it is called").unwrap();
    move || std::fs::rename(&away, &database).unwrap()
}

#[test]
fn checkpoints_in_the_outbox_can_be_loaded_and_are_replayed_in_order() {
    let home = home();
    let first = save(&home, "s", &json!({ "step": 1 }));
    let restore = break_database(&home);
    let second = save(&home, "s", &json!({ "step": 2 }));
    let third = save(&home, "s", &json!({ "step": 3 }));
    assert_eq!(
        (&first["degraded"], &second["degraded"], &third["degraded"]),
        (&json!(false), &json!(true), &json!(true))
    );
    let latest = loaded(&home, &["--session", "s"]);
    assert_eq!((&latest["context"], &latest["degraded"]), (&json!({ "step": 3 }), &json!(true)));
    let id = |saved: &Value| saved["checkpointId"].as_str().unwrap().to_owned();
    assert_eq!(loaded(&home, &[&id(&second)])["context"], json!({ "step": 2 }));
    assert_eq!(ids(&home, "s"), [id(&third), id(&second)]);
    restore();
    assert_eq!(ids(&home, "s"), [id(&third), id(&second), id(&first)]);
    let latest = loaded(&home, &["--session", "s"]);
    assert_eq!((&latest["context"], &latest["degraded"]), (&json!({ "step": 3 }), &json!(false)));
    assert_eq!(std::fs::read_dir(home.data_dir().join("spill")).unwrap().count(), 0);
    let fourth = save(&home, "s", &json!({ "step": 4 }));
    assert_eq!(ids(&home, "s").first(), Some(&id(&fourth)));
}

#[test]
fn checkpoint_that_was_not_removed_from_the_outbox_is_not_replayed_twice() {
    let home = home();
    save(&home, "s", &json!({ "step": 1 }));
    let restore = break_database(&home);
    save(&home, "s", &json!({ "step": 2 }));
    let spill = home.data_dir().join("spill");
    let file = std::fs::read_dir(&spill).unwrap().next().unwrap().unwrap().path();
    let copy = home.path().join("copy");
    std::fs::copy(&file, &copy).unwrap();
    restore();
    assert_eq!(ids(&home, "s").len(), 2);
    std::fs::rename(&copy, &file).unwrap();
    assert_eq!(ids(&home, "s").len(), 2);
    assert!(!file.exists());
}

#[test]
fn other_operations_fail_with_a_hint() {
    let home = home();
    save(&home, "s", &json!({ "step": 1 }));
    let _restore = break_database(&home);
    for arguments in [
        ["checkpoint", "mark-critical", "--session", "s", "step"].as_slice(),
        &["checkpoint", "workflows"],
        &["checkpoint", "load", "--session", "another"],
        &["session", "list", "--venture", "local"],
    ] {
        let refused = json_run(&home, arguments);
        assert_eq!(refused.code, 9, "{arguments:?}: {refused:?}");
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "store_unavailable", "{arguments:?}");
        assert!(error["hint"].is_string(), "{arguments:?}: {error}");
    }
    let mut client = home.mcp();
    let refused = client.call("session_start", &json!({ "agent": "a", "repo": "o/r" }));
    assert_eq!(tool_answer(&refused)["code"], "STORAGE_UNAVAILABLE", "{refused}");
    let saved =
        client.call("workflow_checkpoint_save", &json!({ "sessionId": "s", "context": { "step": 2 } }));
    assert_eq!(saved["structuredContent"]["degraded"], true, "{saved}");
}

#[test]
fn a_process_started_without_a_database_uses_it_once_restored() {
    let home = home();
    save(&home, "s", &json!({ "step": 1 }));
    let restore = break_database(&home);
    let mut client = home.mcp();
    let saved =
        client.call("workflow_checkpoint_save", &json!({ "sessionId": "s", "context": { "step": 2 } }));
    assert_eq!(saved["structuredContent"]["degraded"], true, "{saved}");
    restore();
    let mut number = 2;
    wait_until("the restored database is used", || {
        number += 1;
        let context = json!({ "step": number });
        let saved = client.call("workflow_checkpoint_save", &json!({ "sessionId": "s", "context": context }));
        saved["structuredContent"]["degraded"] == false
    });
    let steps: Vec<Value> =
        ids(&home, "s").iter().map(|id| loaded(&home, &[id])["context"]["step"].clone()).collect();
    let newest_first: Vec<Value> = (1..=number).rev().map(Value::from).collect();
    assert_eq!(steps.as_slice(), &newest_first[..steps.len()]);
    assert!(std::fs::read_dir(home.data_dir().join("spill")).unwrap().next().is_none());
}

#[test]
fn workflow_without_an_id_is_found_in_the_outbox() {
    let home = home();
    save(&home, "s", &json!({}));
    let _restore = break_database(&home);
    let file = home.path().join("context.json");
    let save = |step: u32| {
        std::fs::write(&file, json!({ "workflowId": "auth", "step": step }).to_string()).unwrap();
        let saved = json_run(&home, &["checkpoint", "save", "--file", file.to_str().unwrap()]);
        saved.json()["data"]["sessionId"].as_str().unwrap().to_owned()
    };
    assert_eq!(save(1), save(2));
}

#[test]
fn doctor_reports_checkpoints_in_the_outbox() {
    let home = home();
    save(&home, "s", &json!({}));
    let restore = break_database(&home);
    save(&home, "s", &json!({ "step": 1 }));
    restore();
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("checkpoints: in the outbox: 1 write"), "{doctor:?}");
    // A file that cannot be read is set aside by the next replay.
    let spill = home.data_dir().join("spill");
    let file = std::fs::read_dir(&spill).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&file, "{").unwrap();
    assert_eq!(ids(&home, "s").len(), 1);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("checkpoints: rejected and not stored: 1 write"), "{doctor:?}");
}

fn notes(home: &Home) -> Vec<Value> {
    let listed = json_run(home, &["note", "list", "--repo", "o/r"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    listed.json()["data"]["notes"].as_array().unwrap().clone()
}

#[test]
fn notes_are_saved_to_the_outbox_without_a_database_and_replayed_once() {
    let home = home();
    let note = |text: &str, key: &str| {
        let arguments = ["note", text, "--kind", "decision", "--repo", "o/r", "--idempotency-key", key];
        let noted = json_run(&home, &arguments);
        assert_eq!(noted.code, 0, "{noted:?}");
        noted.json()["data"].clone()
    };
    assert_eq!(note("first", "key-1")["degraded"], false);
    let restore = break_database(&home);
    let second = note("second, token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "key-2");
    assert_eq!(second["degraded"], true);
    assert_eq!(
        note("second, token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "key-2")["note"]["id"],
        second["note"]["id"]
    );
    let spill = home.data_dir().join("spill");
    let file = std::fs::read_dir(&spill).unwrap().next().unwrap().unwrap().path();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("ghp_0123"), "secrets are redacted");
    let copy = home.path().join("copy");
    std::fs::copy(&file, &copy).unwrap();
    let mut client = home.mcp();
    let third = client.call("note", &json!({ "text": "third", "repo": "o/r" }));
    assert_eq!(third["structuredContent"]["degraded"], true, "{third}");
    restore();

    let found = notes(&home);
    let texts: Vec<&str> =
        found.iter().map(|note| note["text"].as_str().unwrap().split(',').next().unwrap()).collect();
    assert_eq!(texts, ["third", "second", "first"], "{found:?}");
    assert_eq!(
        (&found[1]["id"], &found[1]["created_at"]),
        (&second["note"]["id"], &second["note"]["created_at"])
    );
    assert_eq!(
        (&found[0]["id"], &found[0]["kind"]),
        (&third["structuredContent"]["note"]["id"], &json!("fact"))
    );
    // A file that was not removed, and a retry of the request, record nothing more.
    std::fs::rename(&copy, &file).unwrap();
    let again = note("second, token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "key-2");
    assert_eq!(again["note"]["id"], second["note"]["id"]);
    assert_eq!(notes(&home).len(), 3);
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
}

#[test]
fn checkpoints_and_notes_in_the_outbox_do_not_disturb_each_other() {
    let home = home();
    save(&home, "s", &json!({ "step": 1 }));
    let restore = break_database(&home);
    let noted = json_run(&home, &["note", "between", "--repo", "o/r"]);
    assert_eq!(noted.json()["data"]["degraded"], true, "{noted:?}");
    save(&home, "s", &json!({ "step": 2 }));
    assert_eq!(loaded(&home, &["--session", "s"])["context"], json!({ "step": 2 }));
    assert_eq!(notes(&home), [noted.json()["data"]["note"].clone()]);
    restore();
    assert_eq!(notes(&home).len(), 1);
    assert_eq!(ids(&home, "s").len(), 2);
}

#[test]
fn write_of_an_unknown_operation_stays_in_the_outbox_and_blocks_no_other() {
    let home = home();
    save(&home, "s", &json!({ "step": 1 }));
    let restore = break_database(&home);
    json_run(&home, &["note", "of a newer version", "--repo", "o/r"]);
    let spill = home.data_dir().join("spill");
    let file = std::fs::read_dir(&spill).unwrap().next().unwrap().unwrap().path();
    let newer = std::fs::read_to_string(&file).unwrap().replacen("note.create", "note.merge", 1);
    std::fs::write(&file, newer).unwrap();
    save(&home, "s", &json!({ "step": 2 }));
    restore();
    assert_eq!(ids(&home, "s").len(), 2);
    assert_eq!(save(&home, "s", &json!({ "step": 3 }))["degraded"], false);
    assert!(std::fs::read_to_string(&file).unwrap().contains("note.merge"));
}

#[test]
fn worker_replays_notes_in_the_outbox() {
    let home = home();
    save(&home, "s", &json!({}));
    let restore = break_database(&home);
    assert_eq!(json_run(&home, &["note", "later", "--repo", "o/r"]).json()["data"]["degraded"], true);
    restore();
    assert_eq!(home.run(&["worker", "run", "--once"]).code, 0);
    assert_eq!(std::fs::read_dir(home.data_dir().join("spill")).unwrap().count(), 0);
    assert_eq!(notes(&home).len(), 1);
}
