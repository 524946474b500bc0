//! A search index that does not match the stored items, through the real binary.

use std::fs;

use serde_json::{Value, json};

use crate::hooked::Hooked;
use crate::widths::on_a_terminal;

/// Returns a store with two observations that a search finds.
fn store() -> Hooked {
    let hooked = Hooked::new();
    let file = hooked.home.path().join("notes.jsonl");
    let line = |title: &str| json!({ "title": title, "summary": "The lease expired", "repo": "acme/shop" });
    fs::write(&file, format!("{}\n{}\n", line("Lease of the worker"), line("Lease of the task"))).unwrap();
    hooked.data(&["import", "observations", file.to_str().unwrap()]);
    assert_eq!(found(&hooked), 2);
    hooked
}

fn found(hooked: &Hooked) -> usize {
    let finished = hooked.home.run(&["search", "lease", "expired", "--format", "json"]);
    if finished.code == 0 { finished.json()["data"]["results"].as_array().unwrap().len() } else { 0 }
}

/// Runs `baton doctor` and returns its exit code and what it says about the search index.
fn doctor(hooked: &Hooked, arguments: &[&str]) -> (i32, Value) {
    let finished = hooked.home.run(&[&["doctor", "--format", "json"], arguments].concat());
    let findings = finished.json()["data"]["findings"].as_array().unwrap().clone();
    let finding = findings.into_iter().find(|finding| finding["check"] == "search index");
    (finished.code, finding.unwrap_or_default())
}

#[test]
fn doctor_deep_reports_a_damaged_search_index_and_repair_rebuilds_it() {
    let damages = [
        // All entries are missing in the index.
        "INSERT INTO recall_index (recall_index) VALUES ('delete-all')",
        // Content of the index that cannot be read.
        "UPDATE recall_index_data SET block = zeroblob(40) WHERE id > 10",
        // An entry that is missing in the index.
        "INSERT INTO recall_index (recall_index, rowid, scope, title, body, paths)
         SELECT 'delete', number, scope, title, body, paths FROM recall_documents LIMIT 1",
        // Items without a document.
        "DELETE FROM recall_documents",
    ];
    for damage in damages {
        let hooked = store();
        assert_eq!(doctor(&hooked, &["--deep"]).1["level"], "ok");
        let database = rusqlite::Connection::open(hooked.home.data_dir().join("baton.db")).unwrap();
        database.execute_batch(damage).unwrap();
        drop(database);

        let (code, finding) = doctor(&hooked, &["--deep"]);
        assert_eq!((code, &finding["level"]), (1, &"error".into()), "{damage}: {finding}");
        assert!(finding["fix"].as_str().unwrap().contains("baton doctor --deep --repair"), "{finding}");
        let findings =
            hooked.home.run(&["doctor", "--deep", "--format", "json"]).json()["data"]["findings"].clone();
        let errors = findings.as_array().unwrap().iter().filter(|finding| finding["level"] == "error");
        assert_eq!(errors.count(), 1, "no backup has to be restored for a damaged index: {findings}");
        let (code, finding) = doctor(&hooked, &["--deep", "--repair"]);
        assert_eq!((code, &finding["level"]), (0, &"ok".into()), "{damage}: {finding}");
        assert!(finding["message"].as_str().unwrap().starts_with("rebuilt with "), "{finding}");
        assert_eq!(doctor(&hooked, &["--deep"]).1["message"], "matches the stored items", "{damage}");
        assert_eq!(found(&hooked), 2, "{damage}");
    }
}

#[test]
fn a_rebuild_shows_its_progress_only_to_people_on_a_terminal() {
    let hooked = store();
    let damage = || {
        let database = rusqlite::Connection::open(hooked.home.data_dir().join("baton.db")).unwrap();
        database.execute_batch("DELETE FROM recall_documents").unwrap();
    };
    let progress = "rebuilding the search index: 0 items";
    damage();
    let shown = on_a_terminal(&hooked.home, 90, "doctor --deep --repair", &[]);
    assert!(shown.contains(progress) && shown.contains("rebuilt with 2 items"), "{shown:?}");
    damage();
    let json = on_a_terminal(&hooked.home, 90, "doctor --deep --repair --format json", &[]);
    assert!(json.starts_with("{\"success\":true") && json.contains("rebuilt with 2 items"), "{json:?}");
    damage();
    let piped = hooked.home.run(&["doctor", "--deep", "--repair"]);
    assert!(piped.stdout.contains("rebuilt with 2 items") && piped.stderr.is_empty(), "{piped:?}");
}
