//! Backup, restore, export and import through the real binary, on both databases.
#![expect(clippy::print_stdout, reason = "the output is shown when a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_testkit::binary::{Finished, Home};
use baton_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

/// A home and its PostgreSQL database, if any. The home is dropped first.
struct Fixture {
    home: Home,
    database: Option<TestDatabase>,
}

/// Records of a store: the lines of each table.
type Records = BTreeMap<String, BTreeSet<String>>;

impl Fixture {
    fn sqlite() -> Self {
        Self { home: Home::new(env!("CARGO_BIN_EXE_baton")), database: None }
    }

    fn postgres() -> Option<Self> {
        let database = TestDatabase::create()?;
        let home = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&database.url);
        Some(Self { home, database: Some(database) })
    }

    /// Creates an empty store of each kind in turn and prints the kind, so that a failed test shows it.
    fn each() -> impl Iterator<Item = Self> {
        let sqlite = std::iter::once_with(|| Some(Self::sqlite())).inspect(|_| println!("on SQLite"));
        let postgres = std::iter::once_with(Self::postgres).inspect(|_| println!("on PostgreSQL"));
        sqlite.chain(postgres).flatten()
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        self.home.run(&[arguments, &["--format", "json"]].concat())
    }

    #[track_caller]
    fn data(&self, arguments: &[&str]) -> Value {
        let finished = self.run(arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// Runs a verb that must fail and returns its exit code and error code.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> (i32, String) {
        let finished = self.run(arguments);
        let answer = finished.json();
        assert_eq!(answer["success"], false, "{answer}");
        assert!(answer["error"]["hint"].is_string(), "{answer}");
        (finished.code, answer["error"]["code"].as_str().unwrap().to_owned())
    }

    fn save(&self, workflow: &str, context: &Value) -> String {
        let file = self.home.path().join("context.json");
        std::fs::write(&file, context.to_string()).unwrap();
        let saved =
            self.data(&["checkpoint", "save", "--session", workflow, "--file", file.to_str().unwrap()]);
        saved["checkpointId"].as_str().unwrap().to_owned()
    }

    fn load(&self, workflow: &str) -> Value {
        self.data(&["checkpoint", "load", "--session", workflow])["context"].clone()
    }

    fn hook(&self, report: &Value) {
        let report = report.to_string();
        let output = self.home.run_with_input(&["hook", "post-tool-use"], report.as_bytes());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    }

    /// Stores records of most kinds: sessions, a handoff, checkpoints (full, difference and blob), captured tool uses
    /// (row and blob), and a token.
    fn fill(&self) {
        let chat = |name: &str| json!({ "session_id": name, "cwd": self.home.path(), "tool_name": "Bash" });
        let mut report = chat("chat-1");
        report["tool_input"] = json!({ "command": "ls" });
        report["tool_response"] = json!("a.rs\nb.rs");
        self.hook(&report);
        report["tool_response"] = json!(noise(600_000, 3));
        report["tool_use_id"] = json!("large");
        self.hook(&report);
        for step in 0..4 {
            self.save("w", &context(20_000, step));
        }
        self.save("large", &context(900_000, 9));
        let session = self.data(&["session", "start", "--agent", "a", "--repo", "o/r"]);
        let id = session["session_id"].as_str().unwrap();
        self.data(&["session", "end", id, "--summary", "done \u{1f980}"]);
        self.data(&["token", "create", "--name", "ci"]);
    }

    /// Exports and returns all records.
    #[track_caller]
    fn records(&self) -> Records {
        let exported = self.home.run(&["export", "-"]);
        assert_eq!((exported.code, exported.stderr.as_str()), (0, ""));
        records_of(&exported.stdout)
    }

    fn file(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_owned()
    }

    fn backup(&self) -> String {
        let file = self.file("store.backup");
        self.data(&["backup", &file, "--force"]);
        file
    }
}

fn records_of(exported: &str) -> Records {
    let mut records = Records::new();
    let (mut table, mut content) = (String::new(), String::new());
    for line in exported.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap();
        if let Some(name) = parsed["table"].as_str() {
            table = name.to_owned();
            records.insert(table.clone(), BTreeSet::new());
        } else if parsed["data"].is_string() {
            content.push_str(line);
        } else if parsed["record"].is_object() {
            let line = format!("{content}{line}");
            content.clear();
            assert!(records.get_mut(&table).unwrap().insert(line), "duplicate record");
        }
    }
    records
}

/// Returns text that compresses badly.
fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    text
}

fn context(bytes: usize, step: u64) -> Value {
    json!({ "goal": "ship", "notes": noise(bytes, 7), "step": step })
}

#[test]
fn sqlite_to_postgres_and_back_keeps_every_record() {
    let first = Fixture::sqlite();
    first.fill();
    let expected = first.records();
    for table in ["sessions", "handoffs", "checkpoints", "workflows", "pending_queue", "tokens", "sequences"]
    {
        assert!(!expected[table].is_empty(), "{table}");
    }
    let Some(server) = Fixture::postgres() else { return };
    let restored = server.data(&["restore", &first.backup()]);
    assert_eq!(restored["kept"], Value::Null);
    assert!(server.records() == expected, "the records differ");
    assert_eq!(server.load("large"), context(900_000, 9));
    // Loading a checkpoint changes its record, so the records are read again.
    let expected = server.records();
    let last = Fixture::sqlite();
    let folder = server.file("exported");
    server.data(&["export", &folder]);
    let imported = last.data(&["import", "all", &folder]);
    assert_eq!((&imported["unchanged"], &imported["conflicting"]), (&json!(0), &json!(0)));
    assert!(last.records() == expected, "the records differ");
    assert_eq!(last.load("w"), context(20_000, 3));
    assert_eq!(last.load("large"), context(900_000, 9));
    assert!(std::fs::read_dir(last.home.data_dir().join("blobs")).unwrap().count() >= 2);
    let deep = last.run(&["doctor", "--deep"]);
    assert_eq!(deep.code, 0, "{}", deep.stdout);
}

#[test]
fn a_backup_has_mode_0600_and_is_overwritten_only_with_force() {
    for fixture in Fixture::each() {
        let file = fixture.file("store.backup");
        assert_eq!(fixture.refused(&["backup", &file]), (3, "not_found".into()), "no store exists yet");
        assert!(!Path::new(&file).exists());
        fixture.fill();
        let output = fixture.data(&["backup", &file]);
        let tables = fixture.records().into_iter().filter(|(table, _)| table != "sequences");
        let count: usize = tables.map(|(_, records)| records.len()).sum();
        assert_eq!(output["counts"]["records"], json!(count));
        assert_eq!(output["bytes"], json!(std::fs::metadata(&file).unwrap().len()));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fixture.refused(&["backup", &file]), (4, "file_exists".into()));
        fixture.data(&["backup", &file, "--force"]);
        let nowhere = fixture.file("no/such/folder/store.backup");
        assert_eq!(fixture.refused(&["backup", &nowhere]), (1, "write_failed".into()));
        let left = std::fs::read_dir(fixture.home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".partial")));
    }
}

#[test]
fn restore_replaces_data_only_with_force_and_keeps_the_old_data() {
    for fixture in Fixture::each() {
        fixture.fill();
        let (old, file) = (fixture.records(), fixture.backup());
        fixture.save("later", &json!({ "n": 1 }));
        let newer = fixture.records();
        assert_eq!(fixture.refused(&["restore", &file]), (4, "store_not_empty".into()));
        assert!(fixture.records() == newer, "the store was changed");
        let restored = fixture.data(&["restore", &file, "--force"]);
        assert!(fixture.records() == old, "the records differ");
        assert_eq!(fixture.load("large"), context(900_000, 9));
        let kept = restored["kept"].as_str().unwrap();
        match &fixture.database {
            None => {
                let aside = fixture.home.run(&["export", "-", "--data-dir", kept]);
                assert!(records_of(&aside.stdout) == newer, "the kept records differ");
                let mode = std::fs::metadata(kept).unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o700);
            }
            Some(database) => {
                let schema = kept.strip_prefix("schema ").unwrap();
                let url = format!("{}?options=-csearch_path%3D{schema}", database.url);
                let aside = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&url).run(&["export", "-"]);
                assert!(records_of(&aside.stdout) == newer, "the kept records differ");
            }
        }
    }
}

#[test]
fn damaged_backups_are_rejected_and_change_nothing() {
    for fixture in Fixture::each() {
        fixture.fill();
        let (before, file) = (fixture.records(), fixture.backup());
        let bytes = std::fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        for damaged in
            [&[][..], b"no archive", &bytes[..bytes.len() / 2], &bytes[..bytes.len() - 1], &flipped]
        {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(fixture.refused(&["restore", &file, "--force"]), (7, "archive_damaged".into()));
            assert_eq!(fixture.refused(&["import", "all", &file]), (7, "archive_damaged".into()));
        }
        assert_eq!(fixture.refused(&["restore", "/no/such/file"]), (1, "read_failed".into()));
        assert!(fixture.records() == before, "records changed");
    }
}

#[test]
fn restore_fails_while_a_server_uses_the_store() {
    for fixture in Fixture::each() {
        fixture.fill();
        let file = fixture.backup();
        let server = fixture.home.serve();
        let started = server.post("/sod", &json!({ "agent": "b", "venture": "v", "repo": "o/r" }));
        assert_eq!(started.status, 200, "{}", started.text);
        let before = fixture.records();
        assert_eq!(fixture.refused(&["restore", &file, "--force"]), (6, "store_in_use".into()));
        let after = fixture.records();
        // The request log and the queue may change, because the server is running.
        for table in ["sessions", "checkpoints", "handoffs"] {
            assert!(after[table] == before[table], "{table} changed");
        }
        server.kill();
        fixture.data(&["restore", &file, "--force"]);
    }
}

#[test]
fn import_skips_identical_records_and_reports_conflicting_ones() {
    for fixture in Fixture::each() {
        fixture.fill();
        let stream = fixture.home.run(&["export", "-"]).stdout;
        let again = fixture
            .home
            .run_with_input(&["import", "all", "-", "--format", "json"], stream.as_bytes())
            .json();
        assert_eq!((&again["data"]["added"], &again["data"]["conflicting"]), (&json!(0), &json!(0)));
        assert!(again["data"]["unchanged"].as_u64() > Some(10), "{again}");
        // A later save changes the workflow, so that the archived record conflicts with it.
        let file = fixture.backup();
        fixture.save("w", &json!({ "n": 2 }));
        let before = fixture.records();
        let refused = fixture.run(&["import", "all", &file]);
        assert_eq!(refused.code, 4, "{refused:?}");
        let details = &refused.json()["error"]["details"];
        assert_eq!(details["conflicts"][0]["table"], "workflows", "{details}");
        assert!(fixture.records() == before, "records were overwritten");
        let kept = fixture.data(&["import", "all", &file, "--skip-conflicts"]);
        assert_eq!((&kept["added"], &kept["conflicting"]), (&json!(0), &json!(1)));
        assert!(fixture.records() == before, "records changed");
    }
}

/// A session and its handoff are written in one transaction, so a backup must contain both or neither.
#[test]
fn a_backup_made_while_clients_write_is_consistent() {
    for fixture in Fixture::each() {
        let server = fixture.home.serve();
        let is_over = AtomicBool::new(false);
        let target = Fixture::sqlite();
        std::thread::scope(|scope| {
            for client in 0..4 {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    for turn in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                        let start =
                            json!({ "agent": format!("a{client}-{turn}"), "venture": "v", "repo": "o/r" });
                        let session = server.post("/sod", &start).json()["session_id"].clone();
                        let end =
                            json!({ "session_id": session, "handoff": { "summary": noise(2_000, turn) } });
                        assert_eq!(server.post("/eod", &end).status, 200);
                    }
                });
            }
            let mut seen = 0;
            for _ in 0..5 {
                let file = fixture.backup();
                target.data(&["restore", &file, "--force"]);
                let records = target.records();
                let ids = |table: &str, field: &str, wanted: &dyn Fn(&Value) -> bool| -> BTreeSet<String> {
                    let parsed =
                        records[table].iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
                    let found = parsed.map(|line| line["record"].clone()).filter(|record| wanted(record));
                    found.map(|record| record[field].as_str().unwrap().to_owned()).collect()
                };
                let ended = ids("sessions", "id", &|session| session["status"] == "ended");
                let handed_over = ids("handoffs", "session_id", &|handoff| handoff["ends_session"] == 1);
                assert_eq!(ended, handed_over);
                seen = seen.max(ended.len());
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(seen > 0, "no session was ended during the backups");
        });
    }
}

/// Starts a verb and kills it once `is_time` returns true. Returns false if the verb ended before.
fn kill_when(fixture: &Fixture, arguments: &[&str], is_time: impl Fn() -> bool) -> bool {
    let mut child =
        fixture.home.command().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if is_time() {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
        std::thread::yield_now();
    }
}

#[test]
fn killed_backups_leave_no_backup_file_and_the_next_one_works() {
    let fixture = Fixture::sqlite();
    fixture.fill();
    let expected = fixture.records();
    let file = fixture.file("store.backup");
    let partial = PathBuf::from(format!("{file}.partial"));
    for length in [0, 1, 100_000, 300_000, 600_000] {
        let size = || std::fs::metadata(&partial).map(|file| file.len());
        if kill_when(&fixture, &["backup", &file], || size().is_ok_and(|size| size >= length)) {
            assert!(!Path::new(&file).exists(), "a partial backup must not have the final name");
        } else {
            std::fs::remove_file(&file).unwrap();
        }
    }
    fixture.data(&["backup", &file]);
    assert!(!partial.exists(), "the partial file of a killed backup must be replaced");
    let target = Fixture::sqlite();
    target.data(&["restore", &file]);
    assert!(target.records() == expected, "the records differ");
}

#[test]
fn killed_restores_leave_the_old_or_the_new_store() {
    for fixture in Fixture::each() {
        fixture.fill();
        let (new, file) = (fixture.records(), fixture.backup());
        fixture.save("later", &context(400_000, 1));
        let old = fixture.records();
        let old_file = fixture.file("old.backup");
        fixture.data(&["backup", &old_file]);
        let (mut kills, mut still_old) = (0, 0);
        for microseconds in (0..12).map(|step| step * step * 3_000) {
            let begun = std::time::Instant::now();
            let is_time = || begun.elapsed().as_micros() >= microseconds;
            kills += usize::from(kill_when(&fixture, &["restore", &file, "--force"], is_time));
            let found = fixture.records();
            assert!(
                found == old || found == new,
                "after {microseconds} µs there is neither the old nor the new store"
            );
            if found == old {
                still_old += 1;
            } else {
                assert_eq!(fixture.load("large"), context(900_000, 9));
                fixture.data(&["restore", &old_file, "--force"]);
            }
        }
        assert!(kills > 0 && still_old > 0, "{kills} {still_old}");
        fixture.data(&["restore", &file, "--force"]);
        assert!(fixture.records() == new, "the records differ");
        let left = std::fs::read_dir(fixture.home.data_dir()).into_iter().flatten();
        let left = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let partial: Vec<String> = left.filter(|name| name.ends_with(".partial")).collect();
        assert_eq!(partial, [] as [String; 0], "the next restore must remove partial copies");
    }
}

#[test]
fn an_unreadable_database_is_replaced_with_force_and_kept() {
    let fixture = Fixture::sqlite();
    fixture.fill();
    let (expected, file) = (fixture.records(), fixture.backup());
    let database = fixture.home.data_dir().join("baton.db");
    std::fs::write(&database, b"this is no database, whatever its name says").unwrap();
    let _ = std::fs::remove_file(fixture.home.data_dir().join("baton.db-wal"));
    assert_eq!(fixture.refused(&["restore", &file]), (4, "store_damaged".into()));
    let restored = fixture.data(&["restore", &file, "--force"]);
    assert!(fixture.records() == expected, "the records differ");
    let kept = Path::new(restored["kept"].as_str().unwrap()).join("baton.db");
    assert!(std::fs::read(kept).unwrap().starts_with(b"this is no database"));
}

#[test]
fn restore_reports_missing_encryption_keys() {
    let mut fixture = Fixture::sqlite();
    let key_file = fixture.file("keys");
    fixture.home =
        fixture.home.with("BATON_ENCRYPTION", "required").with("BATON_ENCRYPTION_KEY_FILE", &key_file);
    fixture.save("w", &context(20_000, 1));
    fixture.save("w", &context(20_000, 2));
    let file = fixture.backup();
    let stored = std::fs::read(&file).unwrap();
    let key = std::fs::read_to_string(&key_file).unwrap();
    assert!(!key.trim().is_empty());
    let export = fixture.home.run(&["export", "-"]).stdout;
    assert!(
        !export.contains(key.trim()) && !export.contains("\"goal\""),
        "an export must not contain keys or plain contexts"
    );
    assert!(!stored.windows(16).any(|part| key.as_bytes().windows(16).any(|of_key| of_key == part)));
    let other = Fixture::sqlite();
    let restored = other.run(&["restore", &file]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(restored.json()["data"]["missing_keys"].as_array().map(Vec::len), Some(1));
    assert!(restored.stderr.contains("which is not available here"), "{}", restored.stderr);
    let deep = other.run(&["doctor", "--deep"]);
    assert_eq!(deep.code, 0, "{}", deep.stdout);
    assert!(deep.stdout.contains("2 checkpoints are encrypted with key"), "{}", deep.stdout);
    // With the key the checkpoints can be read.
    let with_key = Fixture {
        home: other.home.with("BATON_ENCRYPTION", "required").with("BATON_ENCRYPTION_KEY_FILE", &key_file),
        database: None,
    };
    assert_eq!(with_key.load("w"), context(20_000, 2));
    assert_eq!(with_key.run(&["restore", &file, "--force"]).json()["data"]["missing_keys"], json!([]));
}

#[test]
fn backup_and_export_warn_of_checkpoints_that_are_damaged_in_the_store() {
    let fixture = Fixture::sqlite();
    fixture.fill();
    let written = fixture.run(&["backup", &fixture.file("sound.backup")]);
    assert_eq!(written.json()["data"]["damaged_checkpoints"], json!([]), "{written:?}");
    assert!(!written.stderr.contains("damaged"), "{}", written.stderr);
    let store = rusqlite::Connection::open(fixture.home.data_dir().join("baton.db")).unwrap();
    let find = |condition: &str| -> String {
        let sql = format!("SELECT id FROM checkpoints WHERE {condition}");
        store.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let in_row = find("workflow_id = 'w' AND position = 0");
    let in_blob = find("workflow_id = 'large' AND blob IS NOT NULL ORDER BY id LIMIT 1");
    store.execute("UPDATE checkpoints SET frame = zeroblob(100) WHERE id = ?1", [&in_row]).unwrap();
    let blob: String =
        store.query_row("SELECT blob FROM checkpoints WHERE id = ?1", [&in_blob], |row| row.get(0)).unwrap();
    let path = fixture.home.data_dir().join("blobs").join(blob);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[2_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let mut damaged = [in_row, in_blob];
    damaged.sort();
    let (file, folder) = (fixture.file("damaged.backup"), fixture.file("exported"));
    for arguments in [["backup", &file], ["export", &folder]] {
        let written = fixture.run(&arguments);
        assert_eq!(written.code, 0, "{written:?}");
        let mut listed: Vec<String> =
            serde_json::from_value(written.json()["data"]["damaged_checkpoints"].clone()).unwrap();
        listed.sort();
        assert_eq!(listed, damaged);
        assert!(damaged.iter().all(|id| written.stderr.contains(id)), "{}", written.stderr);
        assert!(written.stderr.contains("run baton doctor --deep"), "{}", written.stderr);
    }
    let other = Fixture::sqlite();
    assert_eq!(other.run(&["restore", &file]).code, 0, "the backup is complete");
}

/// Returns the error messages of `baton doctor --deep`.
#[track_caller]
fn damage(fixture: &Fixture) -> Vec<String> {
    let deep = fixture.run(&["doctor", "--deep"]);
    let answer = deep.json();
    let findings = answer["data"]["findings"].as_array().unwrap();
    let errors: Vec<&Value> = findings.iter().filter(|finding| finding["level"] == "error").collect();
    assert_eq!(deep.code, i32::from(!errors.is_empty()), "{answer}");
    assert!(errors.iter().all(|finding| finding["fix"].is_string()), "{answer}");
    errors.iter().map(|finding| finding["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn doctor_deep_reports_every_kind_of_damage() {
    let fixture = Fixture::sqlite();
    fixture.fill();
    assert_eq!(damage(&fixture), [] as [String; 0]);
    let folder = fixture.home.data_dir();
    let copy = fixture.file("sound");
    let restore = || {
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            std::process::Command::new("cp").args(["-a", &copy]).arg(&folder).status().unwrap().success()
        );
    };
    let open = || rusqlite::Connection::open(folder.join("baton.db")).unwrap();
    open().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert!(std::process::Command::new("cp").arg("-a").arg(&folder).arg(&copy).status().unwrap().success());

    // Flip a bit in a frame that three other checkpoints are differences of.
    let first: String = open()
        .query_row("SELECT id FROM checkpoints WHERE workflow_id = 'w' AND position = 0", [], |row| {
            row.get(0)
        })
        .unwrap();
    let mut frame: Vec<u8> =
        open().query_row("SELECT frame FROM checkpoints WHERE id = ?1", [&first], |row| row.get(0)).unwrap();
    frame[100] ^= 1;
    open().execute("UPDATE checkpoints SET frame = ?1 WHERE id = ?2", (&frame, &first)).unwrap();
    let found = damage(&fixture);
    assert_eq!(found.len(), 4, "the checkpoint and its three differences: {found:?}");
    assert!(found.iter().all(|message| message.contains(&first)), "{found:?}");
    restore();

    // Flip a bit in each blob, then delete the blobs.
    for blob in std::fs::read_dir(folder.join("blobs")).unwrap() {
        let path = blob.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[2_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let found = damage(&fixture);
    assert!(found.iter().any(|message| message.starts_with("checkpoint ckpt_")), "{found:?}");
    std::fs::remove_dir_all(folder.join("blobs")).unwrap();
    let found = damage(&fixture);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|message| message.contains("is missing")), "{found:?}");
    restore();

    // Change a count and delete a row.
    open().execute("UPDATE workflows SET checkpoint_count = 9 WHERE id = 'w'", []).unwrap();
    open().execute("DELETE FROM workflows WHERE id = 'large'", []).unwrap();
    let found = damage(&fixture);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("/w is damaged") && found[1].contains("/large is damaged"), "{found:?}");
    restore();

    // Overwrite a page of the database.
    let database = folder.join("baton.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let page = bytes.len() / 2 / 4_096 * 4_096;
    bytes[page..page + 4_096].fill(0xa5);
    std::fs::write(&database, bytes).unwrap();
    assert_ne!(damage(&fixture), [] as [String; 0]);
    restore();
    assert_eq!(damage(&fixture), [] as [String; 0]);
}
