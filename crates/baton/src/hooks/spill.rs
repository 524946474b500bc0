//! Reports that could not be stored: kept as files, without secrets, and stored as soon as that can be done.
//!
//! A file says when its report was made and whom it is for, so that it ends where it would have ended, as of then. Whoever
//! stores them holds a lock on the folder meanwhile: they are stored in their order, and before what came later.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_app::{Clock, SystemClock};
use baton_core::Timestamp;
use baton_core::observation::make_private;
use baton_store::{make_folder, write_durably};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Journal;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// How long somebody waits who finds another one at the files.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A report that breaks whoever stores it is tried for so long.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(86_400);
/// What the files of reports end in; those with the second name were being stored by an earlier version that ended.
const WAITING: [&str; 2] = [".json", ".taking"];
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

/// A report as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// None where the configuration could not be read: it is for whomever reports go to once it can be.
    #[serde(rename = "for")]
    addressee: Option<Addressee>,
    at: Timestamp,
    report: Value,
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
    pub(crate) fn put(&self, addressee: Option<&Addressee>, mut report: Value) -> std::io::Result<()> {
        make_private(&mut report);
        make_folder(&self.folder)?;
        let at = SystemClock.now();
        let name = format!("{:020}-{}.json", nanoseconds(), std::process::id());
        let kept = serde_json::to_vec(&Kept { addressee: addressee.cloned(), at, report })?;
        write_durably(&self.folder.join(name), &kept)
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
        mut store: impl FnMut(Value, &str) -> Taken,
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
            let kept = match std::fs::read(&path) {
                Ok(bytes) => read(&bytes, stem),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.put_aside(&path, "spill", &format!("it cannot be read: {error}"));
                    continue;
                }
            };
            let Kept { addressee: meant, at, report } = match kept {
                Ok(kept) => kept,
                Err(error) => {
                    self.put_aside(&path, "spill", &format!("it is no report: {error}"));
                    continue;
                }
            };
            if meant.is_some_and(|meant| meant != *addressee) {
                taken.left += 1;
                continue;
            }
            let event = report["event"].as_str().unwrap_or("spill").to_owned();
            match store(dated(report, at), &format!("hook-{stem}")) {
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

/// Reads a report. Earlier versions kept it alone, and its time in its name.
fn read(bytes: &[u8], stem: &str) -> Result<Kept, serde_json::Error> {
    let value: Value = serde_json::from_slice(bytes)?;
    if value.get("event").is_none() {
        return serde_json::from_value(value);
    }
    let nanoseconds: Option<i64> = stem.split('-').next().and_then(|time| time.parse().ok());
    let at = nanoseconds.map_or_else(|| SystemClock.now(), |time| Timestamp::from_millis(time / 1_000_000));
    Ok(Kept { addressee: None, at, report: value })
}

/// Says in a report when it was made.
fn dated(mut report: Value, at: Timestamp) -> Value {
    if let Value::Object(fields) = &mut report {
        fields.entry("reported_at").or_insert_with(|| at.to_string().into());
    }
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
        spill.put(addressee.as_ref(), report).unwrap();
    }

    #[test]
    fn reports_are_stored_once_in_order_and_wait_while_they_cannot_be() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        let none = spill.take_in(&Addressee::Store, LONG, |_, _| panic!("there is nothing"));
        assert_eq!(none, TakenIn { stored: 0, left: 0, blocked: false });
        for number in 0..3 {
            put(&spill, number, Some(Addressee::Store));
        }
        assert_eq!((spill.len(), spill.is_empty()), (3, false));
        let blocked = spill.take_in(&Addressee::Store, LONG, |_, _| Taken::Unavailable);
        assert_eq!(blocked, TakenIn { stored: 0, left: 0, blocked: true });
        let mut seen = Vec::new();
        let taken = spill.take_in(&Addressee::Store, LONG, |report, key| {
            assert!(key.starts_with("hook-"), "{key}");
            assert_eq!(report["prompt"], "a [private]");
            assert!(report["reported_at"].as_str().unwrap().parse::<Timestamp>().is_ok());
            seen.push(report["number"].clone());
            Taken::Stored
        });
        assert_eq!((taken.stored, spill.len()), (3, 0));
        assert_eq!(seen, [0, 1, 2]);
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
            spill.take_in(addressee, LONG, |report, _| {
                seen.push(report["number"].as_u64().unwrap());
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
        let taken = spill.take_in(&Addressee::Store, LONG, |report, _| match report["number"].as_u64() {
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
