//! Hooks while the store is unavailable: older schema, another target, a data folder that cannot be written.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baton_store::LATEST_VERSION;
use baton_testkit::contract::migration::build_first_version;
use baton_testkit::contract::{Database, TestPlace};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::hooked::{Hooked, files_below};

/// Creates a database of the first schema version in a data folder.
pub(crate) fn put_older_database(data_dir: &Path) {
    let place = TestPlace::create(Database::Sqlite).unwrap();
    build_first_version(&place);
    std::fs::create_dir_all(data_dir).unwrap();
    std::fs::copy(place.file(), data_dir.join("baton.db")).unwrap();
}

pub(crate) fn schema_version(data_dir: &Path) -> i64 {
    let connection = Connection::open(data_dir.join("baton.db")).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Returns the names of all backups of schema upgrades, complete or not.
pub(crate) fn backups(data_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data_dir).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.contains(".backup.")).collect()
}

#[test]
fn hooks_save_reports_to_the_outbox_until_the_database_is_upgraded() {
    let hooked = Hooked::new();
    let data_dir = hooked.home.data_dir();
    put_older_database(&data_dir);
    for number in 0..3 {
        let report = hooked.bash("ls", &number.to_string());
        hooked.call(&["post-tool-use"], report.to_string().as_bytes());
    }
    assert_eq!((schema_version(&data_dir), backups(&data_dir)), (1, Vec::new()));
    assert_eq!(hooked.spilled().len(), 3, "{:?}", hooked.troubles());
    let message = hooked.troubles()[0]["message"].to_string();
    assert!(message.contains("must be upgraded"), "{message}");
    assert_eq!((hooked.work(), hooked.spilled().len()), (3, 0));
    assert_eq!(schema_version(&data_dir), LATEST_VERSION);
    assert_eq!(backups(&data_dir), ["baton-v1.backup.db"]);
}

/// Sends a report to a prepared command and returns its output.
fn send(mut command: Command, report: &Value) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(report.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_report_for_postgres_is_not_replayed_into_sqlite() {
    let hooked = Hooked::new();
    let mut command = hooked.home.command();
    command.args(["hook", "post-tool-use"]);
    command.env("BATON_DATABASE_URL", "postgres://baton:s3cret-word@127.0.0.1:1/shop");
    send(command, &hooked.bash("ls", "for the server"));
    let waiting = hooked.spilled();
    assert_eq!(waiting.len(), 1);
    let text = std::fs::read_to_string(&waiting[0]).unwrap();
    assert!(text.contains("postgres://127.0.0.1:1/shop") && !text.contains("s3cret-word"), "{text}");
    hooked.hook("post-tool-use", &hooked.bash("ls", "for the file"));
    assert_eq!((hooked.work(), hooked.spilled()), (1, waiting));
    assert_eq!(hooked.raw(&hooked.observations()[0])["tool_response"]["stdout"], "for the file");
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("postgres://127.0.0.1:1/shop"), "{level} {message}");
}

/// Returns the reports that were saved to the temporary folder.
fn in_temporary_folder(hooked: &Hooked) -> Vec<PathBuf> {
    let files = files_below(&hooked.home.path().join("tmp"));
    files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "spooled")).collect()
}

fn start(hooked: &Hooked) -> String {
    let report = hooked.claude("SessionStart", json!({ "source": "startup" }));
    hooked.call(&["session-start"], report.to_string().as_bytes()).stdout
}

#[test]
fn an_unusable_data_folder_is_reported_and_its_reports_are_replayed_later() {
    let hooked = Hooked::new();
    // A file instead of the folder is unusable even for root.
    std::fs::write(hooked.home.data_dir(), "").unwrap();
    let report = hooked.bash("ls", "kept in the temporary folder").to_string();
    hooked.call(&["post-tool-use"], report.as_bytes());
    assert_eq!(in_temporary_folder(&hooked).len(), 1);
    for file in files_below(&hooked.home.path().join("tmp")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{}: {text}", file.display());
    }
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains(": 1 hook report; the data folder cannot be written ("));
    assert!(message.contains("; the report was saved to ") && !message.contains("lost"), "{message}");
    let status = hooked.home.run(&["status"]);
    assert!(status.code == 9 && status.stderr.contains(": 1 hook report; "), "{status:?}");
    let response = start(&hooked);
    assert!(response.contains("SessionStart") && response.contains(": 2 hook reports; "), "{response}");

    std::fs::remove_file(hooked.home.data_dir()).unwrap();
    let response = start(&hooked);
    assert!(response.contains("Baton warning") && response.contains("baton doctor"), "{response}");
    assert!(in_temporary_folder(&hooked).is_empty());
    assert!(!start(&hooked).contains("Baton warning"), "the warning must be printed once");
    assert_eq!(hooked.data(&["status"])["capture_failure"], Value::Null);
    assert_eq!(hooked.work(), 1);
}

#[test]
fn a_lost_report_is_reported_with_the_time_of_the_first_failure() {
    let hooked = Hooked::new();
    hooked.hook("stop", &hooked.claude("Stop", json!({})));
    let mend = hooked.break_database();
    // Neither the outbox in the data folder nor the temporary folder can be used.
    std::fs::write(hooked.home.data_dir().join("spill"), "").unwrap();
    let lose = |number: u32| {
        let mut command = hooked.home.command();
        command.args(["hook", "post-tool-use"]).env("TMPDIR", hooked.home.path().join("missing"));
        send(command, &hooked.bash("ls", &number.to_string()));
    };
    lose(1);
    let first = hooked.troubles().pop().unwrap()["at"].as_str().unwrap()[..19].to_owned();
    lose(2);
    let (level, message) = hooked.diagnosis();
    assert!(level == "warning" && message.contains("2 lost, 0 kept"), "{level} {message}");
    assert!(message.contains(&format!("from {first}")), "{first}: {message}");
    mend();
    std::fs::remove_file(hooked.home.data_dir().join("spill")).unwrap();
    let failure = hooked.data(&["status"])["capture_failure"].clone();
    assert_eq!((&failure["lost"], &failure["kept_elsewhere"]), (&json!(2), &json!(0)));
    assert!(failure["since"].as_str().unwrap().starts_with(&first), "{failure}");
    assert!(start(&hooked).contains("2 lost"));
    let (_, message) = hooked.diagnosis();
    assert!(message.contains("2 lost"), "the log must keep the message: {message}");
}
