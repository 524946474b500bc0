//! Hook reports that could not be stored: one file each, without secrets, replayed in order once the store is available.
//!
//! The first line of a file names the operation, its idempotency key, its time and its target store; the rest of the file is the
//! report. Files are in the data folder or, when that cannot be written, in the fallback folder. A process that replays them
//! holds a lock on the folders, so that they are stored in order, once, and before later reports.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_app::observation::{Hook, Intake, Report};
use baton_app::{Clock, Operation, SystemClock};
use baton_core::{ErrorCode, Timestamp};
use baton_store::{DurableFile, Target, make_folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Journal;
use super::fallback::FallbackFolder;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A report that fails by an internal error is retried for so long.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(86_400);
/// The first line of a file is no longer.
const MAX_HEAD_BYTES: u64 = 16 * 1024;
const SPOOLED: &str = ".report";
const REFUSED: &str = ".refused";

/// The first line of a file; the rest of it are the parameters of the operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    operation: String,
    key: String,
    at: Timestamp,
    /// None when the configuration could not be read: the report then goes to the store that is configured later.
    target: Option<Target>,
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

/// Where a report was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the data folder.
    InDataFolder,
    /// In this folder, because of this failure of the data folder.
    InFallbackFolder(PathBuf, String),
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

/// What became of the spooled reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenIn {
    /// Number of stored reports.
    pub(crate) stored: usize,
    /// Number of reports that stay: for another target, or because storing them fails.
    pub(crate) left: usize,
    /// Returns true while reports for the target could not be replayed; later ones must wait behind them.
    pub(crate) blocked: bool,
}

/// How long replaying may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayLimits {
    /// Time to wait for another process that replays.
    pub(crate) lock: Duration,
    /// Time for all reports; those beyond it stay.
    pub(crate) total: Duration,
}

/// The folders of spooled reports.
#[derive(Debug)]
pub(crate) struct HookSpill {
    folder: PathBuf,
    fallback: FallbackFolder,
    journal: Journal,
}

impl HookSpill {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self {
            folder: DataDir::at(data_dir).spill().join("hooks"),
            fallback: FallbackFolder::of(data_dir),
            journal: Journal::of(data_dir),
        }
    }

    /// Keeps a report durably: in the data folder or, when that fails, in the fallback folder.
    pub(crate) fn put(
        &self,
        id: &ReportId,
        target: Option<&Target>,
        report: &Report,
        intake: &Intake,
    ) -> std::io::Result<Kept> {
        let reported_at = report.fields.get("reported_at").and_then(Value::as_str);
        let head = Head {
            operation: Hook::NAME.to_owned(),
            key: id.key(),
            at: reported_at.and_then(|at| at.parse().ok()).unwrap_or_else(|| SystemClock.now()),
            target: target.cloned(),
        };
        let name = format!("{:020}-{}{SPOOLED}", self.next_position(), id.0);
        let write = |folder: &Path| {
            let mut document =
                intake.document(report).map_err(|fault| std::io::Error::other(fault.to_string()))?;
            let mut file = DurableFile::create(&folder.join(&name))?;
            writeln!(file, "{}", serde_json::to_string(&head)?)?;
            std::io::copy(&mut document, &mut file)?;
            file.finish()
        };
        let Err(error) = make_folder(&self.folder).and_then(|()| write(&self.folder)) else {
            return Ok(Kept::InDataFolder);
        };
        let fallback = self.fallback.create().and_then(|folder| write(folder).map(|()| folder.to_owned()));
        match fallback {
            Ok(folder) => Ok(Kept::InFallbackFolder(folder, error.to_string())),
            Err(second) => Err(std::io::Error::other(format!("{error}; in the temporary folder: {second}"))),
        }
    }

    /// The position of a new file: the time, or one past the last file when the clock was set back. Files are replayed
    /// in the order of their positions.
    fn next_position(&self) -> u128 {
        let files = self.files();
        let positions = files.iter().filter_map(|(name, _)| name.split_once('-')?.0.parse().ok());
        nanoseconds().max(positions.max().map_or(0, |last: u128| last + 1))
    }

    /// Returns true when no report is spooled.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the spooled reports.
    pub(crate) fn len(&self) -> usize {
        self.count(SPOOLED)
    }

    /// Counts the reports that were put aside, because they can never be stored.
    pub(crate) fn refused(&self) -> usize {
        self.count(REFUSED)
    }

    /// Counts the spooled reports of each other target, by its name.
    pub(crate) fn for_other_targets(&self, target: &Target) -> Vec<(String, usize)> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for (name, path) in self.files() {
            let Some(other) = name.ends_with(SPOOLED).then(|| open(&path).ok()).flatten() else { continue };
            let Some(other) = other.0.target.filter(|other| other != target) else { continue };
            match counts.iter_mut().find(|(known, _)| known == other.as_str()) {
                Some((_, count)) => *count += 1,
                None => counts.push((other.as_str().to_owned(), 1)),
            }
        }
        counts
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn count(&self, ending: &str) -> usize {
        self.folders().flat_map(names).filter(|name| name.ends_with(ending)).count()
    }

    /// The folders that exist.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        [Some(self.folder.as_path()), self.fallback.existing()].into_iter().flatten()
    }

    /// The files of all folders, in the order of their names.
    fn files(&self) -> Vec<(String, PathBuf)> {
        let in_folder =
            |folder: &Path| names(folder).map(|name| (name.clone(), folder.join(name))).collect::<Vec<_>>();
        let mut files: Vec<_> = self.folders().flat_map(in_folder).collect();
        files.sort_unstable();
        files
    }

    /// Replays the reports for `target`, oldest first, through `store`, which is given an idempotency key. Stops when
    /// nothing can be stored.
    pub(crate) fn take_in(
        &self,
        target: &Target,
        limits: ReplayLimits,
        intake: &Intake,
        mut store: impl FnMut(&Report, &str) -> Taken,
    ) -> TakenIn {
        let mut taken = TakenIn { stored: 0, left: 0, blocked: false };
        let deadline = Instant::now() + limits.total;
        // Held until the end.
        let folders: Vec<File> = self.folders().filter_map(|folder| File::open(folder).ok()).collect();
        if !folders.iter().all(|folder| lock(folder, limits.lock)) {
            return TakenIn { blocked: true, ..taken };
        }
        for (name, path) in self.files() {
            let Some(stem) = name.strip_suffix(SPOOLED) else { continue };
            if Instant::now() > deadline {
                taken.blocked = true;
                break;
            }
            let (head, rest) = match open(&path) {
                Ok(opened) => opened,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    self.put_aside(&path, "spill", &format!("it cannot be read: {error}"));
                    continue;
                }
            };
            if head.target.is_some_and(|meant| meant != *target) {
                taken.left += 1;
                continue;
            }
            let report = match intake.read_as(stem, rest, |_| {}) {
                Ok(report) => dated(report, head.at),
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
            match store(&report, &head.key) {
                Taken::Stored => {
                    taken.stored += 1;
                    if let Err(error) = std::fs::remove_file(&path) {
                        self.journal.record(&event, &format!("cannot remove {}: {error}", path.display()));
                    }
                }
                Taken::Refused(why) => self.put_aside(&path, &event, &why),
                Taken::Broken(why) if head.at.plus(GIVEN_UP_AFTER) < SystemClock.now() => {
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
                format!("a spooled report cannot be stored: {why}; it is kept as {}", aside.display())
            }
            Err(error) => format!("a spooled report cannot be stored: {why}; nor put aside: {error}"),
        };
        self.journal.record(event, &message);
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Opens the file of a report and reads its first line.
fn open(path: &Path) -> std::io::Result<(Head, BufReader<File>)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    file.by_ref().take(MAX_HEAD_BYTES).read_until(b'\n', &mut line)?;
    let head: Head = serde_json::from_slice(&line)?;
    if head.operation != Hook::NAME {
        return Err(std::io::Error::other(format!("it is for the operation {}", head.operation)));
    }
    Ok((head, file))
}

/// Adds the time of the report to it.
fn dated(mut report: Report, at: Timestamp) -> Report {
    report.fields.entry("reported_at").or_insert_with(|| at.to_string().into());
    report
}

fn nanoseconds() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Locks the folder; false when another process holds the lock for too long.
fn lock(folder: &File, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        match folder.try_lock() {
            Ok(()) => return true,
            // Where folders cannot be locked, the key keeps a report from being stored twice.
            Err(TryLockError::Error(_)) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => return false,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIMITS: ReplayLimits =
        ReplayLimits { lock: Duration::from_secs(60), total: Duration::from_secs(60) };

    fn here() -> Target {
        Target::server("http://here")
    }

    fn put(spill: &HookSpill, number: u32, target: Option<Target>) {
        let report = json!({ "event": "stop", "number": number, "prompt": "a <private>b</private>" });
        let fields = report.as_object().unwrap().clone();
        let report = Report { fields, output: None };
        let kept = spill.put(&ReportId::new(), target.as_ref(), &report, &Intake::default()).unwrap();
        assert_eq!(kept, Kept::InDataFolder);
    }

    fn take_in(spill: &HookSpill, target: &Target, store: impl FnMut(&Report, &str) -> Taken) -> TakenIn {
        spill.take_in(target, LIMITS, &Intake::default(), store)
    }

    #[test]
    fn reports_are_stored_once_in_order_and_wait_while_they_cannot_be() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let none = take_in(&spill, &here(), |_, _| panic!("there is nothing"));
        assert_eq!(none, TakenIn { stored: 0, left: 0, blocked: false });
        for number in 0..3 {
            put(&spill, number, Some(here()));
        }
        assert_eq!((spill.len(), spill.is_empty()), (3, false));
        let blocked = take_in(&spill, &here(), |_, _| Taken::Unavailable);
        assert_eq!(blocked, TakenIn { stored: 0, left: 0, blocked: true });
        let mut seen = Vec::new();
        let taken = take_in(&spill, &here(), |report, key| {
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
    fn reports_go_to_whom_they_are_for() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let server = Target::server("http://one");
        put(&spill, 1, Some(server.clone()));
        put(&spill, 2, Some(here()));
        put(&spill, 3, None);
        let seen = |target: &Target| {
            let mut seen = Vec::new();
            take_in(&spill, target, |report, _| {
                seen.push(report.fields["number"].as_u64().unwrap());
                Taken::Stored
            });
            seen
        };
        assert_eq!(spill.for_other_targets(&here()), [("http://one".to_owned(), 1)]);
        assert_eq!(seen(&Target::server("http://other")), [3]);
        assert_eq!(seen(&here()), [2]);
        assert_eq!((seen(&server), spill.len()), (vec![1], 0));
    }

    #[test]
    fn reports_that_can_never_be_stored_are_put_aside() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        put(&spill, 1, None);
        std::fs::write(spill.folder().join("1-1-1.report"), b"{\"trunc").unwrap();
        let old = json!({ "operation": Hook::NAME, "key": "hook-1", "at": "2020-01-01T00:00:00.000Z", "target": null });
        let old = format!("{old}\n{}", json!({ "event": "stop", "number": 2 }));
        std::fs::write(spill.folder().join("00000000000000000002-1-1.report"), old).unwrap();
        let taken = take_in(&spill, &here(), |report, _| match report.fields["number"].as_u64() {
            Some(2) => Taken::Broken("it breaks".to_owned()),
            _ => Taken::Refused("it is wrong".to_owned()),
        });
        assert_eq!(taken, TakenIn { stored: 0, left: 0, blocked: false });
        assert_eq!((spill.len(), spill.refused()), (0, 3));
        let told: Vec<String> =
            Journal::of(home.path()).latest(9).into_iter().map(|trouble| trouble.message).collect();
        assert_eq!(told.len(), 3);
        for (told, why) in told.iter().zip(["it breaks", "it is wrong", "it cannot be read"]) {
            assert!(told.contains(why) && told.contains(".refused"), "{told}");
        }
    }

    #[test]
    fn a_report_spooled_after_the_clock_was_set_back_is_replayed_last() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        put(&spill, 1, Some(here()));
        let (written, path) = spill.files().pop().unwrap();
        let an_hour_ahead = nanoseconds() + 3_600_000_000_000;
        let renamed = format!("{an_hour_ahead:020}-{}", written.split_once('-').unwrap().1);
        std::fs::rename(path, spill.folder().join(renamed)).unwrap();
        put(&spill, 2, Some(here()));
        let mut seen = Vec::new();
        take_in(&spill, &here(), |report, _| {
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
        take_in(&spill, &here(), |_, key| {
            keys.push(key.to_owned());
            Taken::Stored
        });
        assert_eq!(keys, [id.key()]);
    }
}
