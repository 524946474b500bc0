//! Reports that could not be stored: kept as files, without secrets, and stored as soon as that can be done.
//!
//! A file says when its report was made and whom it is for, so that it ends where it would have ended, as of then. Whoever
//! stores them holds a lock on the folder meanwhile: they are stored in their order, and before what came later.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_app::observation::{Intake, Report};
use baton_app::{Clock, SystemClock};
use baton_core::{ErrorCode, Timestamp};
use baton_store::{DurableFile, make_folder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Journal;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// How long somebody waits who finds another one at the files.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A report that breaks whoever stores it is tried for so long.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(86_400);
/// The first line of a file is no longer.
const MAX_LABEL_BYTES: u64 = 16 * 1024;
/// What the files of reports end in. Earlier versions wrote the second, in another form, and the third while they stored one;
/// they leave the first alone.
const WAITING: [&str; 3] = [".report", ".json", ".taking"];
const REFUSED: &str = ".refused";

/// Whom reports are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Addressee {
    /// The store of this machine.
    Store,
    /// The server at this address.
    Server(String),
}

/// What is on the first line of a file; the rest of it is the report.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    /// None where the configuration could not be read: it is for whomever reports go to once it can be.
    #[serde(rename = "for")]
    addressee: Option<Addressee>,
    at: Timestamp,
}

/// The file of an earlier version.
#[derive(Debug, Deserialize)]
struct Earlier {
    #[serde(rename = "for")]
    addressee: Option<Addressee>,
    at: Timestamp,
    report: Map<String, Value>,
}

/// A report that waits, before it is read.
struct Waiting {
    label: Label,
    rest: Rest,
}

enum Rest {
    /// It is the rest of the file.
    Unread(BufReader<File>),
    /// It is read already.
    Read(Map<String, Value>),
}

/// What became of a report that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is stored.
    Stored,
    /// It will never be, for this reason.
    Refused(String),
    /// Storing it failed in a way that may be its own fault.
    Broken(String),
    /// Nothing can be stored now.
    Unavailable,
}

impl From<&Failure> for Taken {
    fn from(failure: &Failure) -> Self {
        let message = failure.message.clone();
        match failure.exit {
            Exit::StoreUnavailable => Self::Unavailable,
            Exit::Validation | Exit::SecretFound | Exit::Conflict => Self::Refused(message),
            // A server that has no such path may be the wrong one, or an older one.
            Exit::Ok | Exit::Failure | Exit::Usage | Exit::NotFound | Exit::Drift | Exit::Blocked => {
                Self::Broken(message)
            }
        }
    }
}

/// What became of the reports that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenIn {
    /// How many were stored.
    pub(crate) stored: usize,
    /// How many wait on: for somebody else, or because storing them fails.
    pub(crate) left: usize,
    /// Whether others still wait that must be stored first.
    pub(crate) blocked: bool,
}

/// The folder of reports that could not be stored.
#[derive(Debug)]
pub(crate) struct HookSpill {
    folder: PathBuf,
    journal: Journal,
}

impl HookSpill {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: DataDir::at(data_dir).spill().join("hooks"), journal: Journal::of(data_dir) }
    }

    /// Keeps a report, durably.
    pub(crate) fn put(
        &self,
        id: &ReportId,
        addressee: Option<&Addressee>,
        report: &Report,
        intake: &Intake,
    ) -> std::io::Result<()> {
        make_folder(&self.folder)?;
        let reported_at = report.fields.get("reported_at").and_then(Value::as_str);
        let at = reported_at.and_then(|at| at.parse().ok()).unwrap_or_else(|| SystemClock.now());
        let label = Label { addressee: addressee.cloned(), at };
        let name = format!("{:020}-{}.report", self.next_position(), id.0);
        let mut document =
            intake.document(report).map_err(|fault| std::io::Error::other(fault.to_string()))?;
        let mut file = DurableFile::create(&self.folder.join(name))?;
        writeln!(file, "{}", serde_json::to_string(&label)?)?;
        std::io::copy(&mut document, &mut file)?;
        file.finish()
    }

    /// The position of a new file: the time, or one past the last file when the clock was set back. Files are replayed
    /// in the order of their positions.
    fn next_position(&self) -> u128 {
        let last = self.names().iter().filter_map(|name| name.split_once('-')?.0.parse().ok()).max();
        nanoseconds().max(last.map_or(0, |last: u128| last + 1))
    }

    /// Tells whether no report waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count(&WAITING) == 0
    }

    /// Tells how many reports wait.
    pub(crate) fn len(&self) -> usize {
        self.count(&WAITING)
    }

    /// Tells how many reports were put aside, because they can never be stored.
    pub(crate) fn refused(&self) -> usize {
        self.count(&[REFUSED])
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn count(&self, endings: &[&str]) -> usize {
        self.names().iter().filter(|name| endings.iter().any(|ending| name.ends_with(ending))).count()
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Stores what waits for `addressee`, oldest first, through `store`, which is given a key so that nothing is stored
    /// twice. Stops when nothing can be stored, and after `within`.
    pub(crate) fn take_in(
        &self,
        addressee: &Addressee,
        within: Duration,
        intake: &Intake,
        mut store: impl FnMut(&Report, &str) -> Taken,
    ) -> TakenIn {
        let mut taken = TakenIn { stored: 0, left: 0, blocked: false };
        let deadline = Instant::now() + within;
        // Held until the end. Where there is no folder, nothing waits.
        let Ok(folder) = File::open(&self.folder) else { return taken };
        if !lock(&folder, PATIENCE.min(within)) {
            return TakenIn { blocked: true, ..taken };
        }
        let mut names = self.names();
        names.sort_unstable();
        for name in names {
            let Some(stem) = WAITING.iter().find_map(|ending| name.strip_suffix(ending)) else { continue };
            if Instant::now() > deadline {
                taken.blocked = true;
                break;
            }
            let path = self.folder.join(&name);
            let Waiting { label: Label { addressee: meant, at }, rest } = match open(&path, stem) {
                Ok(waiting) => waiting,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    self.put_aside(&path, "spill", &format!("it is no report: {error}"));
                    continue;
                }
                Err(error) => {
                    self.put_aside(&path, "spill", &format!("it cannot be read: {error}"));
                    continue;
                }
            };
            if meant.is_some_and(|meant| meant != *addressee) {
                taken.left += 1;
                continue;
            }
            let report = match rest {
                Rest::Unread(file) => intake.read_as(stem, file, |_| {}),
                Rest::Read(fields) => Ok(Report { fields, output: None }),
            };
            let report = match report {
                Ok(report) => dated(report, at),
                Err(fault) if fault.code == ErrorCode::StoreUnavailable => {
                    taken.blocked = true;
                    break;
                }
                Err(fault) => {
                    self.put_aside(&path, "spill", &format!("it is no report: {}", fault.message));
                    continue;
                }
            };
            let event = report.fields.get("event").and_then(Value::as_str).unwrap_or("spill").to_owned();
            match store(&report, &key_of(stem)) {
                Taken::Stored => {
                    taken.stored += 1;
                    if let Err(error) = std::fs::remove_file(&path) {
                        self.journal.record(&event, &format!("{} stays behind: {error}", path.display()));
                    }
                }
                Taken::Refused(why) => self.put_aside(&path, &event, &why),
                Taken::Broken(why) if at.plus(GIVEN_UP_AFTER) < SystemClock.now() => {
                    self.put_aside(&path, &event, &why);
                }
                Taken::Broken(_) => taken.left += 1,
                Taken::Unavailable => {
                    taken.blocked = true;
                    break;
                }
            }
        }
        taken
    }

    /// Keeps a report that can never be stored for a person to look at.
    fn put_aside(&self, path: &Path, event: &str, why: &str) {
        let aside = path.with_extension(REFUSED.trim_start_matches('.'));
        let message = match std::fs::rename(path, &aside) {
            Ok(()) => {
                format!("a report that waited cannot be stored: {why}; it is kept as {}", aside.display())
            }
            Err(error) => format!("a report that waited cannot be stored: {why}; nor put aside: {error}"),
        };
        self.journal.record(event, &message);
    }
}

/// Names one report, so that it is stored once even when it is sent directly and also spooled.
#[derive(Debug, Clone)]
pub(crate) struct ReportId(String);

impl ReportId {
    pub(crate) fn new() -> Self {
        Self(format!("{}-{}", nanoseconds(), std::process::id()))
    }

    /// The idempotency key of the report.
    pub(crate) fn key(&self) -> String {
        format!("hook-{}", self.0)
    }
}

/// The idempotency key of a spooled report. `<position>-<time>-<pid>` carries the id of the report; earlier versions
/// wrote `<time>-<pid>`, which is the id itself.
fn key_of(stem: &str) -> String {
    match stem.split_once('-') {
        Some((_, id)) if id.contains('-') => format!("hook-{id}"),
        _ => format!("hook-{stem}"),
    }
}

/// Opens the file of a report, and reads whom it is for.
fn open(path: &Path, stem: &str) -> std::io::Result<Waiting> {
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    file.by_ref().take(MAX_LABEL_BYTES).read_until(b'\n', &mut line)?;
    if let Ok(label) = serde_json::from_slice(&line) {
        return Ok(Waiting { label, rest: Rest::Unread(file) });
    }
    // An earlier version: the report inside its label, or alone with its time in its name.
    let no_report = |error: serde_json::Error| std::io::Error::new(ErrorKind::InvalidData, error);
    let fields: Map<String, Value> = serde_json::from_slice(&std::fs::read(path)?).map_err(no_report)?;
    if !fields.contains_key("event") {
        let Earlier { addressee, at, report } =
            serde_json::from_value(Value::Object(fields)).map_err(no_report)?;
        return Ok(Waiting { label: Label { addressee, at }, rest: Rest::Read(report) });
    }
    let nanoseconds: Option<i64> = stem.split('-').next().and_then(|time| time.parse().ok());
    let at = nanoseconds.map_or_else(|| SystemClock.now(), |time| Timestamp::from_millis(time / 1_000_000));
    Ok(Waiting { label: Label { addressee: None, at }, rest: Rest::Read(fields) })
}

/// Says in a report when it was made.
fn dated(mut report: Report, at: Timestamp) -> Report {
    report.fields.entry("reported_at").or_insert_with(|| at.to_string().into());
    report
}

fn nanoseconds() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Locks the folder; false when somebody else has it for too long.
fn lock(folder: &File, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        match folder.try_lock() {
            Ok(()) => return true,
            // Where folders cannot be locked, the key keeps a report from being stored twice.
            Err(TryLockError::Error(_)) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => return false,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LONG: Duration = Duration::from_secs(60);

    fn put(spill: &HookSpill, number: u32, addressee: Option<Addressee>) {
        let report = json!({ "event": "stop", "number": number, "prompt": "a <private>b</private>" });
        let fields = report.as_object().unwrap().clone();
        spill
            .put(&ReportId::new(), addressee.as_ref(), &Report { fields, output: None }, &Intake::default())
            .unwrap();
    }

    fn take_in(
        spill: &HookSpill,
        addressee: &Addressee,
        store: impl FnMut(&Report, &str) -> Taken,
    ) -> TakenIn {
        spill.take_in(addressee, LONG, &Intake::default(), store)
    }

    #[test]
    fn reports_are_stored_once_in_order_and_wait_while_they_cannot_be() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let none = take_in(&spill, &Addressee::Store, |_, _| panic!("there is nothing"));
        assert_eq!(none, TakenIn { stored: 0, left: 0, blocked: false });
        for number in 0..3 {
            put(&spill, number, Some(Addressee::Store));
        }
        assert_eq!((spill.len(), spill.is_empty()), (3, false));
        let blocked = take_in(&spill, &Addressee::Store, |_, _| Taken::Unavailable);
        assert_eq!(blocked, TakenIn { stored: 0, left: 0, blocked: true });
        let mut seen = Vec::new();
        let taken = take_in(&spill, &Addressee::Store, |report, key| {
            assert!(key.starts_with("hook-"), "{key}");
            assert_eq!(report.fields["prompt"], "a [private]");
            assert!(report.fields["reported_at"].as_str().unwrap().parse::<Timestamp>().is_ok());
            seen.push(report.fields["number"].clone());
            Taken::Stored
        });
        assert_eq!((taken.stored, spill.len()), (3, 0));
        assert_eq!(seen, [0, 1, 2]);
    }

    #[test]
    fn a_report_spooled_after_the_clock_was_set_back_is_replayed_last() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        put(&spill, 1, Some(Addressee::Store));
        let written = spill.names().pop().unwrap();
        let an_hour_ahead = nanoseconds() + 3_600_000_000_000;
        let renamed = format!("{an_hour_ahead:020}-{}", written.split_once('-').unwrap().1);
        std::fs::rename(spill.folder().join(&written), spill.folder().join(renamed)).unwrap();
        put(&spill, 2, Some(Addressee::Store));
        let mut seen = Vec::new();
        take_in(&spill, &Addressee::Store, |report, _| {
            seen.push(report.fields["number"].as_u64().unwrap());
            Taken::Stored
        });
        assert_eq!(seen, [1, 2]);
    }

    #[test]
    fn a_spooled_report_has_the_key_under_which_it_was_sent() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let id = ReportId::new();
        let fields = json!({ "event": "stop" }).as_object().unwrap().clone();
        spill.put(&id, None, &Report { fields, output: None }, &Intake::default()).unwrap();
        let mut keys = Vec::new();
        take_in(&spill, &Addressee::Store, |_, key| {
            keys.push(key.to_owned());
            Taken::Stored
        });
        assert_eq!(keys, [id.key()]);
        assert_eq!(key_of("01700000000000000000-42"), "hook-01700000000000000000-42");
    }

    #[test]
    fn reports_go_to_whom_they_are_for() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let server = Addressee::Server("http://one".to_owned());
        put(&spill, 1, Some(server.clone()));
        put(&spill, 2, Some(Addressee::Store));
        put(&spill, 3, None);
        let seen = |addressee: &Addressee| {
            let mut seen = Vec::new();
            take_in(&spill, addressee, |report, _| {
                seen.push(report.fields["number"].as_u64().unwrap());
                Taken::Stored
            });
            seen
        };
        assert_eq!(seen(&Addressee::Server("http://other".to_owned())), [3]);
        assert_eq!(seen(&Addressee::Store), [2]);
        assert_eq!((seen(&server), spill.len()), (vec![1], 0));
    }

    #[test]
    fn what_can_never_be_stored_is_put_aside_and_told() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        put(&spill, 1, None);
        std::fs::write(spill.folder().join("1.json"), b"{\"trunc").unwrap();
        let old = json!({ "event": "stop", "number": 2 }).to_string();
        std::fs::write(spill.folder().join("00000000000000000002-1.json"), old).unwrap();
        let taken = take_in(&spill, &Addressee::Store, |report, _| match report.fields["number"].as_u64() {
            Some(2) => Taken::Broken("it breaks".to_owned()),
            _ => Taken::Refused("it is wrong".to_owned()),
        });
        assert_eq!(taken, TakenIn { stored: 0, left: 0, blocked: false });
        assert_eq!((spill.len(), spill.refused()), (0, 3));
        let told: Vec<String> =
            Journal::of(home.path()).latest(9).into_iter().map(|trouble| trouble.message).collect();
        assert_eq!(told.len(), 3);
        for (told, why) in told.iter().zip(["it breaks", "it is wrong", "it is no report"]) {
            assert!(told.contains(why) && told.contains(".refused"), "{told}");
        }
    }
}
