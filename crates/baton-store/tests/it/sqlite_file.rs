//! The SQLite file on disk: permissions, backups, and files that are rejected without being changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use baton_store::{LockTimeout, QueueWatch, Store, StoreConfig, StoreError, Threads};
use baton_testkit::contract::fixture::{NOW, queue_item, session, tuple};
use baton_testkit::contract::migration::{build_first_version, open_at_once};
use baton_testkit::contract::{Database, TestPlace, read, write};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::open(&StoreConfig::Sqlite { path: path.to_owned(), threads: Threads::Background })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn schema_version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn backups(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().ends_with(".backup.db")).collect()
}

/// Run in a child process by the test below, because a umask belongs to the whole process.
#[test]
#[ignore = "run by files_and_folders_are_private_whatever_the_umask"]
fn under_a_lax_umask() {
    let folder = TempDir::new().unwrap();
    let witness = folder.path().join("witness");
    fs::write(&witness, "").unwrap();
    assert_eq!(mode(&witness), 0o666, "the umask must be lax, or the test proves nothing");

    let data = folder.path().join("deep").join("data");
    let file = data.join("baton.db");
    let store = open(&file).unwrap();
    let written = session(tuple("agent"));
    let id = written.id;
    write(&store, move |tx| tx.insert_session(&written));
    assert!(read(&store, move |tx| tx.session(id)).is_some());

    assert_eq!((mode(&data), mode(data.parent().unwrap())), (0o700, 0o700));
    let mut names = Vec::new();
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["baton.db", "baton.db-reserve", "baton.db-shm", "baton.db-wal"]);
}

#[test]
fn files_and_folders_are_private_whatever_the_umask() {
    let output = Command::new("sh")
        .args(["-c", "umask 000 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "sqlite_file::under_a_lax_umask"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_process_for_one_write_leaves_a_short_log_to_the_next_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("baton.db");
    let config = StoreConfig::Sqlite { path: path.clone(), threads: Threads::Caller };
    let log = || fs::metadata(folder.path().join("baton.db-wal")).map_or(0, |log| log.len());
    let (mut written, mut kept) = (Vec::new(), 0);
    for number in 0..60 {
        let store = Store::open_current(&config, LockTimeout::Short).unwrap();
        let one = session(tuple(&format!("agent-{number}")));
        written.push(one.id);
        write(&store, move |tx| tx.insert_session(&one));
        drop(store);
        kept += usize::from(log() > 0);
        assert!(number == 0 || log() < 512 * 1024, "{} bytes", log());
    }
    assert!(kept >= 50, "the log was deleted {} times", 60 - kept);
    let store = Store::open(&config).unwrap();
    for id in written {
        assert!(read(&store, move |tx| tx.session(id)).is_some());
    }
    drop(store);
    assert_eq!(log(), 0, "the last process of another kind removes the log");
}

#[test]
fn older_file_is_backed_up_before_migration() {
    let place = TestPlace::create(Database::Sqlite).unwrap();
    build_first_version(&place);
    let file = place.file();
    assert_eq!(schema_version(&file), 1);

    drop(place.open().unwrap());

    let [backup] = &backups(file.parent().unwrap())[..] else { panic!("exactly one backup is expected") };
    assert_eq!(backup.file_name().unwrap(), "baton-v1.backup.db");
    assert_eq!(mode(backup), 0o600);
    assert_eq!(schema_version(backup), 1);
    let connection = Connection::open(backup).unwrap();
    let agent: String = connection.query_row("SELECT agent FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(agent, "agent");
    assert!(schema_version(&file) > 1);

    drop(place.open().unwrap());
    assert_eq!(backups(file.parent().unwrap()).len(), 1, "a current file needs no backup");
}

/// Returns a file of schema version 1 that was not opened yet.
fn older_place() -> TestPlace {
    let place = TestPlace::create(Database::Sqlite).unwrap();
    build_first_version(&place);
    place
}

/// Returns the names of all files beside the database, without the side files of SQLite.
fn beside(file: &Path) -> Vec<String> {
    let entries = fs::read_dir(file.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("baton.db")).collect();
    names.sort();
    names
}

#[test]
fn failed_migration_leaves_no_backup() {
    let place = older_place();
    let file = place.file();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE handoffs (in_the_way TEXT)").unwrap();
    for _ in 0..3 {
        let answer = place.open();
        assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
        assert_eq!((schema_version(&file), beside(&file)), (1, Vec::new()));
    }
    Connection::open(&file).unwrap().execute_batch("DROP TABLE handoffs").unwrap();
    drop(place.open().unwrap());
    assert_eq!(beside(&file), ["baton-v1.backup.db"]);
}

#[test]
fn torn_backup_is_removed_and_earlier_backup_of_the_version_is_replaced() {
    let place = older_place();
    let file = place.file();
    let torn = file.with_file_name("baton-upgrade.backup.db.tmp");
    fs::write(&torn, [0xA5; 100_000]).unwrap();
    fs::write(file.with_file_name("baton-v1.backup.db"), "an earlier one").unwrap();
    for ending in ["", "-journal"] {
        fs::write(file.with_file_name(format!("baton-v1-1794787816426.backup.db{ending}")), "torn").unwrap();
    }
    drop(place.open().unwrap());
    assert_eq!(beside(&file), ["baton-v1.backup.db"]);
    assert_eq!(schema_version(&file.with_file_name("baton-v1.backup.db")), 1);
}

#[test]
fn torn_backup_is_removed_even_if_the_migration_fails() {
    let place = older_place();
    let file = place.file();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE handoffs (in_the_way TEXT)").unwrap();
    fs::write(file.with_file_name("baton-upgrade.backup.db.tmp"), [0xA5; 100_000]).unwrap();
    assert!(place.open().is_err());
    assert_eq!(beside(&file), [""; 0]);
}

#[test]
fn upgrade_waits_for_another_process_but_open_current_does_not() {
    let place = older_place();
    let file = place.file();
    let upgrading = fs::File::open(file.parent().unwrap()).unwrap();
    upgrading.lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| place.open());
        let refused = Store::open_current(place.config(), LockTimeout::Minimal);
        assert!(matches!(refused, Err(StoreError::OlderSchema { found: 1, .. })), "{refused:?}");
        assert!(!waiting.is_finished());
        assert_eq!((schema_version(&file), beside(&file)), (1, Vec::new()));
        upgrading.unlock().unwrap();
        assert!(waiting.join().unwrap().is_ok());
    });
    assert_eq!(beside(&file), ["baton-v1.backup.db"]);
}

#[test]
fn concurrent_opens_of_an_older_file_make_one_backup() {
    let place = older_place();
    drop(open_at_once(&place, 8));
    assert_eq!(beside(&place.file()), ["baton-v1.backup.db"]);
}

#[test]
fn foreign_database_is_rejected_and_unchanged() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("baton.db");
    for sql in [
        "CREATE TABLE notes (id TEXT)",
        "CREATE TABLE sessions (id TEXT)",
        "CREATE TABLE notes (id TEXT); PRAGMA user_version = 3",
    ] {
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(&file).unwrap();
        let answer = open(&file);
        assert!(matches!(answer, Err(StoreError::ForeignDatabase { .. })), "{sql}: {answer:?}");
        assert!(fs::read(&file).unwrap() == before, "the file was changed");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn new_file_is_not_backed_up() {
    let place = TestPlace::create(Database::Sqlite).unwrap();
    drop(place.open().unwrap());
    assert_eq!(backups(place.file().parent().unwrap()), [""; 0].map(PathBuf::from));
}

#[test]
fn newer_file_keeps_its_journal_mode() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("baton.db");
    Connection::open(&file)
        .unwrap()
        .execute_batch(
            "PRAGMA journal_mode = DELETE; CREATE TABLE later (id TEXT); PRAGMA user_version = 9999",
        )
        .unwrap();
    let before = fs::read(&file).unwrap();
    assert!(matches!(open(&file), Err(StoreError::NewerSchema { found: 9999, .. })));
    assert!(fs::read(&file).unwrap() == before, "the file was changed");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
}

#[test]
fn file_that_is_not_a_database_is_rejected_and_unchanged() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("baton.db");
    for garbage in [&b"no"[..], b"notes to myself\n", &[0xA5; 100_000]] {
        fs::write(&file, garbage).unwrap();
        let answer = open(&file);
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        assert!(fs::read(&file).unwrap() == garbage, "the file was changed");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }
}

#[test]
fn error_names_the_path_that_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // Both fail for every user; a folder without permissions would not stop root.
    for (path, named) in [
        (file.join("data").join("baton.db"), file.join("data")),
        (folder.path().into(), folder.path().into()),
    ] {
        match open(&path) {
            Err(StoreError::Folder { path, .. }) => assert_eq!(path, named),
            other => panic!("opening {} gave {other:?}", path.display()),
        }
    }
}

/// The file may be deleted at any time; workers are then still notified.
#[test]
fn queue_is_watched_after_the_notification_file_is_removed() {
    const DEADLINE: Duration = Duration::from_secs(30);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("baton.db");
    let store = open(&path).unwrap();
    let (sender, changes) = channel();
    let config = StoreConfig::Sqlite { path, threads: Threads::Background };
    let watch = QueueWatch::start(&config, move || _ = sender.send(())).unwrap();
    assert_eq!(changes.recv_timeout(DEADLINE), Ok(()), "the watch is not active");
    fs::remove_file(folder.path().join("baton.db-bell")).unwrap();
    assert_eq!(changes.recv_timeout(DEADLINE), Ok(()), "the removal was not noticed");
    write(&store, |tx| tx.enqueue(&queue_item(NOW)));
    assert_eq!(changes.recv_timeout(DEADLINE), Ok(()), "the new item was not reported");
    drop(watch);
}
