//! Power cuts at any time: acknowledged data is kept, no data is partial, and a retry has one effect. Recorded and
//! replayed with `baton_testkit::power_cut`; run by `scripts/test --full`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use baton_core::observation::QueueStatus;
use baton_store::{BlobFolder, RawOutput, Store, StoreConfig, StoreError, Threads, unpack_raw};
use baton_testkit::binary::{Home, ServerProcess};
use baton_testkit::contract::fixture::Dice;
use baton_testkit::power_cut::{Disk, check_each_cut};
use baton_testkit::processes::wait_until;
use baton_testkit::rounds;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::checkout::{Checkout, TASK};
use crate::task_crash::read_with_artifacts;

/// Number of power cuts of each test.
const CUTS: u64 = 100;
const BINARY: &str = env!("CARGO_BIN_EXE_baton");

/// Creates a folder in memory if possible, because the checks sync often.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

fn mount(folder: &TempDir) -> Disk {
    let mounted = Disk::mount(folder.path());
    mounted
        .map_err(|error| format!("cannot mount a FUSE file system: {error}; load the module fuse"))
        .unwrap()
}

/// A step of a workload: the positions of the disk before it began and when it was acknowledged.
struct Step<T> {
    began: usize,
    acknowledged: usize,
    what: T,
}

impl<T> Step<T> {
    fn run(disk: &Disk, step: impl FnOnce() -> T) -> Self {
        let began = disk.position();
        let what = step();
        Self { began, acknowledged: disk.position(), what }
    }
}

fn acknowledged<T>(steps: &[Step<T>]) -> Vec<usize> {
    steps.iter().map(|step| step.acknowledged).collect()
}

/// Returns text that does not compress, deterministic per number.
fn noise(number: u64, bytes: usize) -> String {
    let mut dice = Dice::new(number);
    (0..bytes / 8).map(|_| format!("{:08x}", dice.below(1 << 32))).collect()
}

// The store: sessions, handoffs, checkpoints and hook reports of several clients at once.

/// A request that can be repeated with its key.
#[derive(Clone)]
struct Request {
    path: &'static str,
    key: String,
    body: Value,
    /// The id in the response.
    id: String,
}

const CLIENTS: u64 = 3;
const TURNS: u64 = 4;
const VENTURE: &str = "cut";

fn post(server: &ServerProcess, path: &str, key: &str, body: &Value) -> Value {
    let answer = server.send("POST", path, &[("idempotency-key", key)], body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{path} {key}: {}", answer.text);
    answer.json()
}

fn id_field(path: &str) -> &'static str {
    match path {
        "/sod" => "session_id",
        "/eod" => "handoff_id",
        _ => "checkpointId",
    }
}

/// Returns a context. Depending on the number it is stored as a row, a difference or a blob.
fn context(workflow: &str, number: u64) -> Value {
    // Hexadecimal digits compress to half their size; more than 256 KiB become a blob.
    let size = if number % 6 == 5 { 600_000 } else { 2_000 };
    json!({ "workflow": workflow, "number": number, "noise": noise(number, size), "same": noise(1, 3_000) })
}

fn hook_report(number: u64) -> Value {
    let output = format!("{} end-of-{number}", noise(number, if number % 6 == 1 { 600_000 } else { 500 }));
    json!({
        "session_id": "chat", "venture": VENTURE, "repo": "o/r", "tool_name": "Bash",
        "tool_input": { "command": "make" }, "tool_use_id": format!("use-{number}"),
        "tool_response": { "stdout": output, "stderr": "" },
    })
}

/// Runs concurrent clients and hooks that write through a server.
fn write_to_store(
    disk: &Disk,
    home: &Home,
    round: u64,
    requests: &Mutex<Vec<Step<Request>>>,
    reports: &Mutex<Vec<Step<u64>>>,
) {
    let server = home.serve_as(&["--no-worker"], &[]);
    let send = |path: &'static str, key: String, body: Value| -> String {
        let step = Step::run(disk, || {
            let id = post(&server, path, &key, &body)[id_field(path)].as_str().unwrap().to_owned();
            Request { path, key, body, id }
        });
        let id = step.what.id.clone();
        requests.lock().unwrap().push(step);
        id
    };
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let send = &send;
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let name = format!("r{round}-c{client}-t{turn}");
                    let session = json!({
                        "agent": "a", "venture": VENTURE, "repo": "o/r", "client_session_id": name,
                    });
                    let session_id = send("/sod", format!("{name}-start"), session);
                    let workflow = format!("w{client}");
                    let number = round * TURNS + turn;
                    let save = json!({
                        "sessionId": workflow, "venture": VENTURE, "context": context(&workflow, number),
                    });
                    send("/api/checkpoints", format!("{name}-save"), save);
                    if turn.is_multiple_of(2) {
                        let end = json!({ "session_id": session_id, "handoff": { "summary": name } });
                        send("/eod", format!("{name}-end"), end);
                    }
                }
            });
        }
        scope.spawn(|| {
            for number in round * TURNS..(round + 1) * TURNS {
                let step = Step::run(disk, || {
                    report(home, number);
                    number
                });
                reports.lock().unwrap().push(step);
            }
        });
    });
    server.kill();
}

fn open_store(home: &Home) -> Store {
    Store::open(&StoreConfig::Sqlite { path: database(home), threads: Threads::Caller }).unwrap()
}

/// Returns the stored output of each captured tool use.
fn captured(home: &Home) -> BTreeMap<String, String> {
    let store = open_store(home);
    let items =
        store.read::<_, StoreError, _>(|tx| tx.queue_items(QueueStatus::Raw, None, 200)).wait().unwrap();
    let blobs = BlobFolder::at(home.data_dir().join("blobs"));
    let mut found = BTreeMap::new();
    for item in items {
        let raw = store.read::<_, StoreError, _>(move |tx| tx.queue_raw(item.id)).wait().unwrap().unwrap();
        let packed = match raw {
            RawOutput::Row(packed) => packed,
            RawOutput::Blob(name) => blobs.get(&name).unwrap().unwrap(),
        };
        let text = String::from_utf8(unpack_raw(&packed).unwrap()).unwrap();
        let other = found.insert(item.tool_use_id.unwrap(), text);
        assert_eq!(other, None, "a tool use was captured twice");
    }
    found
}

/// Number of the report that is sent after a cut.
const LATER: u64 = 900;

fn report(home: &Home, number: u64) {
    let report = hook_report(number).to_string();
    let finished = home.run_with_input(&["hook", "post-tool-use"], report.as_bytes());
    assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{finished:?}");
}

/// Reports once more, which replays the outbox, until these reports are stored. A hook that takes longer than
/// five seconds leaves the rest in the outbox, so a busy machine may need several. Returns everything that is
/// stored.
fn replayed(home: &Home, expected: &[u64]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    wait_until("every acknowledged report is stored", || {
        report(home, LATER);
        found = captured(home);
        expected.iter().chain([&LATER]).all(|number| found.contains_key(&format!("use-{number}")))
    });
    for (use_id, text) in &found {
        let number = use_id.replace("use-", "");
        assert!(text.contains(&format!("end-of-{number}")), "{use_id} is not whole");
    }
    found
}

fn assert_sound_database(home: &Home) {
    let connection = rusqlite::Connection::open(database(home)).unwrap();
    let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// Repeats every request that had started before the cut and compares the stored data with the requests.
fn check_store(home: &Home, cut: usize, requests: &[Step<Request>], reports: &[Step<u64>]) {
    let begun_reports = || reports.iter().filter(|report| report.began < cut);
    let stored: Vec<u64> =
        begun_reports().filter(|report| report.acknowledged <= cut).map(|report| report.what).collect();
    replayed(home, &stored);
    let server = home.serve_as(&["--no-worker"], &[]);
    let begun: Vec<&Step<Request>> = requests.iter().filter(|request| request.began < cut).collect();
    let mut ids = BTreeMap::new();
    for Step { acknowledged, what, .. } in &begun {
        // An unacknowledged session may get another id; requests that depend on it had not been sent.
        let answer = post(&server, what.path, &what.key, &what.body);
        let id = answer[id_field(what.path)].as_str().unwrap().to_owned();
        if *acknowledged <= cut {
            assert_eq!(id, what.id, "{} is not the acknowledged one", what.key);
        }
        assert!(ids.insert(id, what).is_none(), "an id is used twice");
    }
    for (id, request) in &ids {
        match request.path {
            "/sod" => assert_eq!(server.get(&format!("/sessions/{id}")).status, 200, "{}", request.key),
            "/eod" => {
                let shown = server.get(&format!("/handoffs/{id}")).json();
                let sent = &request.body["handoff"]["summary"];
                assert_eq!(shown["handoff"]["summary"], *sent, "{}", request.key);
            }
            _ => {
                let path = format!("/api/checkpoints/{id}?venture={VENTURE}");
                let loaded = server.get(&path).json();
                assert!(loaded["context"] == request.body["context"], "{} is not whole", request.key);
            }
        }
    }
    let count = |path: &str| begun.iter().filter(|request| request.what.path == path).count();
    let listed = server.get(&format!("/handoffs?venture={VENTURE}&limit=100")).json();
    assert_eq!(listed["handoffs"].as_array().unwrap().len(), count("/eod"), "a handoff was stored twice");
    let saved: usize = (0..CLIENTS)
        .map(|client| {
            let path = format!("/api/checkpoints?sessionId=w{client}&venture={VENTURE}&limit=100");
            server.get(&path).json()["checkpoints"].as_array().map_or(0, Vec::len)
        })
        .sum();
    assert_eq!(saved, count("/api/checkpoints"), "a checkpoint was stored twice");
    server.kill();
    // Repeat the interrupted reports and some acknowledged ones.
    for begun in begun_reports().filter(|begun| begun.acknowledged > cut || begun.what.is_multiple_of(4)) {
        report(home, begun.what);
    }
    let all: Vec<u64> = begun_reports().map(|report| report.what).collect();
    assert_eq!(replayed(home, &all).len(), all.len() + 1, "a report was stored twice");
    assert_sound_database(home);
}

#[test]
#[ignore = "run by scripts/test --full"]
fn power_cut_keeps_sessions_handoffs_checkpoints_and_reports() {
    let folder = folder();
    let disk = mount(&folder);
    let home = Home::at(folder.path(), BINARY);
    let (requests, reports) = (Mutex::default(), Mutex::default());
    for round in 0..2 {
        write_to_store(&disk, &home, round, &requests, &reports);
        // The last process that closes the database checkpoints its WAL and removes it.
        assert_eq!(home.run(&["session", "list", "--venture", VENTURE]).code, 0);
    }
    let recording = disk.unmount();
    let (requests, reports) = (requests.into_inner().unwrap(), reports.into_inner().unwrap());
    let marks = [acknowledged(&requests), acknowledged(&reports)].concat();
    check_each_cut(&recording, folder.path(), &marks, rounds(CUTS), |cut| {
        check_store(&home, cut, &requests, &reports);
    });
}

// The outbox: checkpoints and hook reports while the database cannot be used, and their replay.

const NO_DATABASE: &str = "this is not a database";
const SPOOLED: u64 = 6;

fn database(home: &Home) -> PathBuf {
    home.data_dir().join("baton.db")
}

fn save(home: &Home, number: u64) -> String {
    let body = context("spooled", number).to_string();
    let saved = home
        .run_with_input(&["checkpoint", "save", "--session", "spooled", "--format", "json"], body.as_bytes());
    assert_eq!(saved.code, 0, "{saved:?}");
    saved.json()["data"]["checkpointId"].as_str().unwrap().to_owned()
}

/// Returns the ids of the checkpoints, oldest first. Listing replays the outbox.
fn saved(home: &Home) -> Vec<String> {
    let listed =
        home.run(&["checkpoint", "list", "--session", "spooled", "--limit", "100", "--format", "json"]);
    let listed = match listed.code {
        0 => listed.json()["data"]["checkpoints"].as_array().unwrap().clone(),
        code => {
            assert_eq!(code, 3, "{listed:?}");
            Vec::new()
        }
    };
    listed.iter().rev().map(|one| one["checkpointId"].as_str().unwrap().to_owned()).collect()
}

/// An item in the outbox: a checkpoint or a hook report.
enum Spooled {
    Checkpoint { id: String, number: u64 },
    Report { number: u64 },
}

fn check_spool(home: &Home, cut: usize, steps: &[Step<Spooled>]) {
    if std::fs::read(database(home)).is_ok_and(|bytes| bytes == NO_DATABASE.as_bytes()) {
        std::fs::remove_file(database(home)).unwrap();
    }
    let (found, kept) = (saved(home), |step: &&Step<Spooled>| step.acknowledged <= cut);
    let mut last = None;
    for step in steps.iter().filter(kept) {
        if let Spooled::Checkpoint { id, number } = &step.what {
            let place = found.iter().position(|other| other == id);
            assert!(place.is_some(), "checkpoint {number} is lost: {found:?}");
            assert!(place > last, "checkpoint {number} is out of order: {found:?}");
            last = place;
        }
    }
    for id in &found {
        let loaded = home.run(&["checkpoint", "load", id, "--format", "json"]).json();
        let context_found = &loaded["data"]["context"];
        let number = context_found["number"].as_u64().unwrap();
        assert!(*context_found == context("spooled", number), "checkpoint {number} is not whole");
    }
    let begun = steps.iter().filter(|step| step.began < cut);
    assert!(
        found.len() <= begun.clone().filter(|step| matches!(step.what, Spooled::Checkpoint { .. })).count()
    );
    let number = |step: &Step<Spooled>| match step.what {
        Spooled::Report { number } => Some(number),
        Spooled::Checkpoint { .. } => None,
    };
    let stored: Vec<u64> = steps.iter().filter(kept).filter_map(number).collect();
    let reports = replayed(home, &stored);
    assert!(reports.len() <= 1 + begun.filter(|step| matches!(step.what, Spooled::Report { .. })).count());
    assert_sound_database(home);
}

#[test]
#[ignore = "run by scripts/test --full"]
fn power_cut_keeps_the_outbox_and_its_replay() {
    let folder = folder();
    let disk = mount(&folder);
    let home = Home::at(folder.path(), BINARY);
    std::fs::create_dir(home.data_dir()).unwrap();
    std::fs::write(database(&home), NO_DATABASE).unwrap();
    disk.sync_everything();
    let mut steps = Vec::new();
    for number in 0..SPOOLED {
        steps.push(Step::run(&disk, || Spooled::Checkpoint { id: save(&home, number), number }));
        steps.push(Step::run(&disk, || {
            report(&home, number);
            Spooled::Report { number }
        }));
    }
    // The database can be used again.
    std::fs::remove_file(database(&home)).unwrap();
    disk.sync_everything();
    assert_eq!(saved(&home).len() as u64, SPOOLED);
    steps.push(Step::run(&disk, || {
        report(&home, SPOOLED);
        Spooled::Report { number: SPOOLED }
    }));
    wait_until("the outbox is replayed", || {
        report(&home, SPOOLED);
        captured(&home).len() as u64 == SPOOLED + 1
    });
    let recording = disk.unmount();
    check_each_cut(&recording, folder.path(), &acknowledged(&steps), rounds(CUTS), |cut| {
        check_spool(&home, cut, &steps);
    });
}

// Task files: contexts, artifacts and the objects of snapshots.

/// Content of `context.json` after a verb; `None` before the first one.
type Context = Option<Vec<u8>>;

fn context_file(checkout: &Checkout) -> Context {
    std::fs::read(checkout.path(&format!(".agent-output/{TASK}/context.json"))).ok()
}

/// Runs verbs one after the other. All other files of the checkout are synced before each verb.
fn work_on_task(disk: &Disk, checkout: &Checkout) -> Vec<Step<Context>> {
    let mut steps = Vec::new();
    let mut run = |arguments: &[&str]| {
        disk.sync_everything();
        steps.push(Step::run(disk, || {
            checkout.task(arguments);
            context_file(checkout)
        }));
    };
    run(&["init-context", TASK]);
    for role in ["implementer", "reviewer", "validator"] {
        run(&["update-agent", TASK, "--agent", role, "--status", "in_progress"]);
        checkout.write("src/main.rs", &format!("fn main() {{ {role}() }} // {}\n", noise(7, 20_000)));
        checkout.write(&format!("src/{role}.rs"), &noise(8, 30_000));
        checkout.write("qa.log", &format!("3 passed in 0.1s\n{}", noise(9, 20_000)));
        run(&["record-qa", TASK, "--agent", role, "--from", "qa.log"]);
        run(&["snapshot-worktree", TASK, "--agent", role]);
        run(&["update-agent", TASK, "--agent", role, "--status", "done"]);
    }
    steps
}

/// Reads every object of a snapshot from the object folder or the repository.
fn assert_objects_are_there(checkout: &Checkout, tree: &str) {
    let output = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_DIR", checkout.path(".agent-output/.objects"))
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", checkout.path(".git/objects"))
        .args(["archive", "--format=tar", "--output=/dev/null", tree])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn check_task(checkout: &Checkout, cut: usize, steps: &[Step<Context>]) {
    let last = steps.iter().rposition(|step| step.acknowledged <= cut);
    let next = steps.iter().find(|step| step.began < cut && step.acknowledged > cut);
    let found = context_file(checkout);
    let acknowledged = last.and_then(|last| steps[last].what.clone());
    let in_flight = next.is_some_and(|next| next.what == found);
    assert!(
        found == acknowledged || in_flight,
        "the context is neither the acknowledged one nor the next one"
    );
    let Some(context) = read_with_artifacts(checkout.root(), TASK) else { return };
    checkout.task(&["get-context", TASK]);
    for snapshot in &context.snapshots {
        assert_objects_are_there(checkout, &snapshot.tree);
    }
    if let Some(snapshot) = context.snapshots.last() {
        checkout.task(&["get-diff", TASK, "--agent", &snapshot.agent.to_string(), "--content"]);
    }
    // The task can be continued.
    checkout.task(&["attach-evidence", TASK, "--type", "plan", "--path", "README.md"]);
    read_with_artifacts(checkout.root(), TASK).unwrap();
}

#[test]
#[ignore = "run by scripts/test --full"]
fn power_cut_keeps_task_files() {
    let folder = folder();
    let disk = mount(&folder);
    let checkout = Checkout::unborn_in(Home::at(folder.path(), BINARY));
    checkout.commit();
    disk.sync_everything();
    let begun = disk.position();
    let steps = work_on_task(&disk, &checkout);
    let recording = disk.unmount();
    check_each_cut(&recording, folder.path(), &acknowledged(&steps), rounds(CUTS), |cut| {
        // Earlier cuts interrupt git while it creates the repository, which is not tested here.
        if cut > begun {
            check_task(&checkout, cut, &steps);
        }
    });
}
