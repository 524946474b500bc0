//! Encryption with the real binary: no plain text of a context is on disk, and a missing key is never
//! replaced with a new one.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_testkit::binary::{Finished, Home};
use serde_json::{Value, json};

/// Marker text that occurs nowhere else.
const CANARY: &str = "canary-4f1d8a";

/// Home with encryption settings.
struct Encrypted {
    home: Home,
    mode: &'static str,
    key_file: Option<PathBuf>,
}

impl Encrypted {
    fn with_key_file(mode: &'static str) -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_baton"));
        let key_file = Some(home.path().join("keys"));
        Self { home, mode, key_file }
    }

    fn with_keychain(mode: &'static str) -> Self {
        Self { home: Home::new(env!("CARGO_BIN_EXE_baton")), mode, key_file: None }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command();
        command.env("BATON_ENCRYPTION", self.mode).args(arguments).args(["--format", "json"]);
        if let Some(path) = &self.key_file {
            command.env("BATON_ENCRYPTION_KEY_FILE", path);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        finished(&mut self.command(arguments))
    }

    fn data(&self, arguments: &[&str]) -> Value {
        let finished = self.run(arguments);
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    }

    /// Saves a context and returns the result.
    fn save(&self, context: &Value) -> Finished {
        let file = self.home.path().join("context.json");
        std::fs::write(&file, context.to_string()).unwrap();
        let saved = self.run(&["checkpoint", "save", "--session", "s", "--file", file.to_str().unwrap()]);
        std::fs::remove_file(&file).unwrap();
        saved
    }

    fn loaded(&self) -> Value {
        self.data(&["checkpoint", "load", "--session", "s"])["context"].clone()
    }
}

fn finished(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns a context of about this size that compresses badly and contains the canary in every line.
fn context(bytes: usize, step: u32) -> Value {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut lines = Vec::new();
    let mut size = 0;
    while size < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let line = format!("{CANARY} {state:016x}{:016x}", state.rotate_left(31).wrapping_mul(31));
        size += line.len();
        lines.push(line);
    }
    json!({ "goal": CANARY, "lines": lines, "step": step })
}

/// Returns the files below a folder that contain the canary.
fn files_with_canary(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_canary(&path));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(CANARY.len())
            .any(|window| window == CANARY.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_plain_text_of_a_context_is_on_disk() {
    let encrypted = Encrypted::with_key_file("required");
    let folder = encrypted.home.data_dir();
    // Stored uncompressed, in full, as a difference, and as a blob.
    let contexts = [context(10, 1), context(20_000, 2), context(20_000, 3), context(3_000_000, 4)];
    for context in &contexts {
        assert_eq!(encrypted.save(context).code, 0);
        assert_eq!(encrypted.loaded(), *context);
    }
    assert_eq!(std::fs::read_dir(folder.join("blobs")).unwrap().count(), 1);
    // Saved to the outbox, because the database cannot be opened.
    let database = folder.join("baton.db");
    std::fs::rename(&database, encrypted.home.path().join("away.db")).unwrap();
    std::fs::create_dir(&database).unwrap();
    let saved = encrypted.save(&context(5_000, 5));
    assert_eq!(saved.json()["data"]["degraded"], true, "{saved:?}");
    assert_eq!(encrypted.loaded(), context(5_000, 5));
    assert_eq!(files_with_canary(&folder), [] as [PathBuf; 0]);
    // Check of the test itself: without encryption the canary is found.
    let plain = Encrypted { mode: "off", ..Encrypted::with_key_file("off") };
    assert_eq!(plain.save(&contexts[0]).code, 0);
    assert_ne!(files_with_canary(&plain.home.data_dir()), [] as [PathBuf; 0]);
}

#[test]
fn a_missing_key_is_an_error_and_never_replaced() {
    let encrypted = Encrypted::with_key_file("required");
    let key_file = encrypted.key_file.clone().unwrap();
    assert_eq!(encrypted.save(&context(2_000, 1)).code, 0);
    let away = encrypted.home.path().join("away");
    std::fs::rename(&key_file, &away).unwrap();
    let loaded = encrypted.run(&["checkpoint", "load", "--session", "s"]);
    assert_eq!((loaded.code, loaded.json()["error"]["code"].as_str()), (9, Some("store_unavailable")));
    assert_eq!(loaded.stderr, "", "a failure must be reported once");
    assert!(
        loaded.json()["error"]["hint"].as_str().unwrap().contains("BATON_ENCRYPTION_KEY_FILE"),
        "{loaded:?}"
    );
    let saved = encrypted.save(&context(2_000, 2));
    assert_eq!((saved.code, saved.json()["error"]["code"].as_str()), (9, Some("store_unavailable")));
    assert!(!key_file.exists(), "no new key may be created");
    let status = encrypted.data(&["key", "status"]);
    assert_eq!(status["missing"].as_array().map(Vec::len), Some(1), "{status}");
    // A wrong key is an error of the key and not reported as damage.
    std::fs::write(&key_file, "11".repeat(32)).unwrap();
    let loaded = encrypted.run(&["checkpoint", "load", "--session", "s"]);
    assert_eq!(loaded.json()["error"]["code"], "store_unavailable", "{loaded:?}");
    std::fs::rename(&away, &key_file).unwrap();
    assert_eq!(encrypted.loaded(), context(2_000, 1));
}

#[test]
fn preferred_mode_without_a_key_stores_plain_text_and_warns() {
    let preferred =
        Encrypted { key_file: Some("/nowhere/at/all/keys".into()), ..Encrypted::with_key_file("preferred") };
    let saved = preferred.save(&context(10, 1));
    assert_eq!(saved.code, 0, "{saved:?}");
    assert!(saved.stderr.contains("stored unencrypted"), "{saved:?}");
    let again = preferred.save(&context(10, 1));
    for (save, status) in [(&saved, "SAVED"), (&again, "SKIPPED_UNCHANGED")] {
        let data = &save.json()["data"];
        assert_eq!(data["status"], status);
        assert!(data["warning"].as_str().unwrap().contains("stored unencrypted"), "{data}");
    }
    let file = preferred.home.path().join("shown.json");
    std::fs::write(&file, "{}").unwrap();
    let shown = finished(
        preferred
            .home
            .command()
            .env("BATON_ENCRYPTION", "preferred")
            .env("BATON_ENCRYPTION_KEY_FILE", "/nowhere/at/all/keys")
            .args(["checkpoint", "save", "--file", file.to_str().unwrap()]),
    );
    assert!(shown.stdout.contains("warning: the context is stored unencrypted"), "{shown:?}");
    let required = Encrypted { mode: "required", ..preferred };
    let refused = required.save(&context(10, 2));
    assert_eq!(refused.json()["error"]["code"], "store_unavailable", "{refused:?}");
    assert_eq!(required.loaded(), context(10, 1), "plain checkpoints must still be readable");
}

#[test]
fn rotate_encrypts_all_checkpoints_with_a_new_key() {
    let encrypted = Encrypted { mode: "off", ..Encrypted::with_key_file("off") };
    for step in 0..3 {
        assert_eq!(encrypted.save(&context(20_000, step)).code, 0);
    }
    assert_eq!(encrypted.save(&context(3_000_000, 9)).code, 0);
    assert_eq!(encrypted.run(&["key", "rotate"]).code, 2, "encryption is off");
    let encrypted = Encrypted { mode: "required", ..encrypted };
    let first = encrypted.data(&["key", "rotate"]);
    assert_eq!(first["resealed"], 4, "plain checkpoints must be encrypted too: {first}");
    assert_eq!(files_with_canary(&encrypted.home.data_dir().join("blobs")), [] as [PathBuf; 0]);
    let second = encrypted.data(&["key", "rotate", "--drop-old"]);
    assert_eq!((&second["resealed"], &second["dropped_keys"]), (&json!(4), &json!(1)));
    assert_ne!(first["key_id"], second["key_id"]);
    let status = encrypted.data(&["key", "status"]);
    assert_eq!(status["in_use"], json!([{ "key_id": second["key_id"], "checkpoints": 4 }]));
    assert_eq!(status["keys"], json!([second["key_id"]]));
    let doctor = encrypted.run(&["doctor", "--deep"]);
    assert_eq!(doctor.code, 0, "the sizes of workflows must be updated: {doctor:?}");
    assert_eq!(encrypted.loaded(), context(3_000_000, 9));
    let listed = encrypted.data(&["checkpoint", "list", "--session", "s"]);
    for (checkpoint, step) in listed["checkpoints"].as_array().unwrap().iter().skip(1).zip([2, 1, 0]) {
        let id = checkpoint["checkpointId"].as_str().unwrap();
        assert_eq!(encrypted.data(&["checkpoint", "load", id])["context"], context(20_000, step));
    }
    // With encryption off, encrypted data is still readable.
    let off = Encrypted { mode: "off", ..encrypted };
    assert_eq!(off.loaded(), context(3_000_000, 9));
}

#[test]
fn an_invalid_key_file_is_an_error_and_not_changed() {
    let encrypted = Encrypted::with_key_file("required");
    for content in ["", "short", "zz".repeat(32).as_str(), "11 22"] {
        std::fs::write(encrypted.key_file.as_ref().unwrap(), content).unwrap();
        let refused = encrypted.save(&context(10, 1));
        assert_eq!(refused.code, 9, "{content:?}: {refused:?}");
        assert_eq!(
            std::fs::read_to_string(encrypted.key_file.as_ref().unwrap()).unwrap(),
            content,
            "the key file must not be changed"
        );
    }
}

/// Exit code of `scripts/with-keychain` if a required program is missing.
const MISSING: i32 = 69;

/// Runs a shell script in its own desktop session, where `baton` is the binary. Returns `None` if no keychain is
/// available, which is an error on CI.
#[expect(clippy::print_stderr, reason = "a skipped test must be reported")]
fn in_desktop(options: &[&str], script: &str) -> Option<Finished> {
    let prelude = "set -u; export BATON_DATA_DIR=$HOME/data-of-baton BATON_ENCRYPTION=required\n\
                   baton() { \"$BATON\" \"$@\"; }; save() { echo \"{\\\"step\\\":$1}\" | baton checkpoint save --session s; }\n\
                   lock() { dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets \
                   org.freedesktop.Secret.Service.Lock array:objpath:/org/freedesktop/secrets/collection/login >/dev/null; }\n";
    let script_path = Path::new("../../scripts/with-keychain");
    let done =
        finished(Command::new(script_path).env("BATON", env!("CARGO_BIN_EXE_baton")).args(options).args([
            "sh",
            "-c",
            &format!("{prelude}{script}"),
        ]));
    if done.code == MISSING {
        assert!(std::env::var_os("CI").is_none(), "{}", done.stderr);
        eprintln!("left out: {}", done.stderr);
        return None;
    }
    Some(done)
}

#[test]
fn keys_are_stored_in_the_desktop_keychain() {
    let script =
        "save 1 && save 2 && baton key status && baton key rotate && baton checkpoint load --session s";
    let Some(done) = in_desktop(&[], script) else { return };
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("keys are kept in the keychain"), "{done:?}");
    assert!(done.stdout.contains("2 checkpoints are encrypted with"), "{done:?}");
    assert!(done.stdout.contains("encrypted 2 checkpoints with it"), "{done:?}");
    assert!(done.stdout.contains("\"step\": 2"), "{done:?}");
}

#[test]
fn a_locked_keychain_gets_no_new_key() {
    let script = "save 1 || exit 7; lock; save 2; echo \"save: $?\"; baton checkpoint load --session s; echo \"load: $?\"";
    let Some(done) = in_desktop(&[], script) else { return };
    assert!(done.stdout.contains("save: 9") && done.stdout.contains("load: 9"), "{done:?}");
}

#[test]
fn a_missing_keychain_is_an_error_with_a_hint() {
    let Some(done) = in_desktop(&["--without-service"], "save 1; echo \"save: $?\"") else { return };
    assert!(done.stdout.contains("save: 9"), "{done:?}");
    assert!(done.stderr.contains("BATON_ENCRYPTION_KEY_FILE"), "{done:?}");
}

#[test]
fn an_unresponsive_bus_times_out() {
    let encrypted = Encrypted::with_keychain("required");
    let socket = encrypted.home.path().join("bus");
    let _listener = UnixListener::bind(&socket).unwrap();
    let file = encrypted.home.path().join("context.json");
    std::fs::write(&file, "{}").unwrap();
    let mut command =
        encrypted.command(&["checkpoint", "save", "--session", "s", "--file", file.to_str().unwrap()]);
    let refused =
        finished(command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", socket.display())));
    assert_eq!(refused.code, 9, "{refused:?}");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("did not answer"), "{refused:?}");
}

#[test]
fn a_running_server_uses_a_rotated_key_before_the_old_one_is_deleted() {
    let encrypted = Encrypted::with_key_file("required");
    let key_file = encrypted.key_file.clone().unwrap();
    let server = encrypted.home.serve_with(&[
        ("BATON_ENCRYPTION", "required"),
        ("BATON_ENCRYPTION_KEY_FILE", key_file.to_str().unwrap()),
    ]);
    let save = |session: &str| {
        let body = json!({ "sessionId": session, "context": context(2_000, 1) });
        let saved = server.post("/api/checkpoints", &body);
        assert_eq!(saved.status, 200, "{}", saved.text);
    };
    save("before");
    encrypted.data(&["key", "rotate"]);
    save("between");
    let loaded = server.get("/api/checkpoints/load?sessionId=before");
    assert_eq!(loaded.status, 200, "re-encrypted checkpoints must be readable: {}", loaded.text);
    encrypted.data(&["key", "rotate", "--drop-old"]);
    save("after");
    drop(server);
    for session in ["before", "between", "after"] {
        assert_eq!(
            encrypted.data(&["checkpoint", "load", "--session", session])["context"],
            context(2_000, 1)
        );
    }
    assert_eq!(encrypted.data(&["key", "status"])["missing"], json!([]));
}

#[test]
fn rotate_replays_the_outbox() {
    let encrypted = Encrypted::with_key_file("required");
    assert_eq!(encrypted.save(&context(10, 1)).code, 0);
    let (database, away) =
        (encrypted.home.data_dir().join("baton.db"), encrypted.home.path().join("away.db"));
    std::fs::rename(&database, &away).unwrap();
    std::fs::write(&database, "no database").unwrap();
    assert_eq!(encrypted.save(&context(10, 2)).json()["data"]["degraded"], true);
    std::fs::rename(&away, &database).unwrap();
    encrypted.data(&["key", "rotate", "--drop-old"]);
    assert_eq!(encrypted.loaded(), context(10, 2));
}

#[test]
fn without_its_key_a_workflow_continues_only_in_preferred_mode() {
    let encrypted = Encrypted::with_key_file("required");
    assert_eq!(encrypted.save(&context(2_000, 1)).code, 0);
    std::fs::remove_file(encrypted.key_file.as_ref().unwrap()).unwrap();
    assert_eq!(encrypted.save(&context(2_000, 2)).code, 9);
    let doctor = encrypted.home.command().env("BATON_ENCRYPTION", "required").arg("doctor").output().unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let preferred = Encrypted { mode: "preferred", ..encrypted };
    let saved = preferred.save(&context(2_000, 3));
    assert_eq!((saved.code, &saved.json()["data"]["degraded"]), (0, &json!(false)), "{saved:?}");
    assert!(saved.stderr.contains("stored unencrypted"), "{saved:?}");
    assert_eq!(preferred.loaded(), context(2_000, 3));
}
