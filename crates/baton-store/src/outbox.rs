//! The outbox: writes that the store could not accept, one durable file each, replayed in order once it works again.
//!
//! The first line of a file is JSON: operation, idempotency key, time, target store, and parameters of the operation. The
//! rest of the file is the body, whose format the operation defines. A process that replays files holds a lock on the
//! folders, so that each write is stored once, in order, and before later ones.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baton_core::{ActorKeyId, Sha256Hash, Timestamp};
use baton_files::{DurableFile, LockFile, make_folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::fallback_folder::FallbackFolder;
use crate::files::remove_stale_temporaries;
use crate::target::Target;

const SPOOLED: &str = ".spooled";
/// Extension of a file that can never be stored. The file is kept for inspection.
const REJECTED: &str = ".refused";
/// Period for which a write is retried after an internal error.
const RETRY_PERIOD: Duration = Duration::from_secs(86_400);
const MAX_HEAD_BYTES: u64 = 1024 * 1024;

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpooledWrite {
    /// Wire name of the operation.
    pub operation: String,
    /// Idempotency key of the call.
    pub key: Option<String>,
    /// Hash of the request, if the call had a key. A request with the same key and another hash is another request. None
    /// in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<Sha256Hash>,
    /// Credential of the call; none for calls of the local user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKeyId>,
    /// Time of the call.
    pub at: Timestamp,
    /// Store that the write is for. None if the configuration could not be read: the write then goes to the store that is
    /// configured when it is replayed.
    pub target: Option<Target>,
    /// Parameters of the operation, besides the body.
    #[serde(default)]
    pub params: Value,
}

/// Folder that a write was saved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpooledTo {
    /// The outbox folder.
    Folder,
    /// The fallback folder at this path, because of this failure of the outbox folder.
    Fallback(PathBuf, String),
}

/// Result of replaying one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayResult {
    /// The write is stored; its file is removed.
    Stored,
    /// The write can never be stored, for this reason; its file is set aside.
    Rejected(String),
    /// The write failed by an internal error, which may be caused by the write itself.
    Failed(String),
    /// Nothing can be stored now; this write and all later ones stay.
    Unavailable,
}

/// Summary of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replay {
    /// Number of stored writes.
    pub stored: usize,
    /// Number of writes that stay in the outbox: for another target, or because of internal errors.
    pub left: usize,
    /// True if writes for the target could not be replayed. Later writes must be saved to the outbox as well.
    pub is_blocked: bool,
    /// Messages about files that were set aside or could not be removed.
    pub problems: Vec<String>,
}

/// Time limits of a replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLimits {
    /// Time to wait for another process that replays.
    pub lock: Duration,
    /// Time for all writes; the rest stays.
    pub total: Duration,
}

/// A folder with writes that are not stored yet.
#[derive(Debug, Clone)]
pub struct Outbox {
    folder: PathBuf,
    fallback: Option<FallbackFolder>,
    target: Option<Target>,
}

/// A file of the outbox.
#[derive(Debug, Clone)]
pub struct OutboxEntry {
    /// First line of the file.
    pub write: SpooledWrite,
    /// File name without extension. It never changes.
    pub name: String,
    path: PathBuf,
}

impl OutboxEntry {
    /// Returns the size of the body in bytes; 0 if the file is gone.
    pub fn body_bytes(&self) -> u64 {
        let Ok((_, mut file)) = open(&self.path) else { return 0 };
        let (Ok(start), Ok(metadata)) = (file.stream_position(), file.get_ref().metadata()) else { return 0 };
        metadata.len().saturating_sub(start)
    }

    pub fn read_body(&self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        open(&self.path)?.1.read_to_end(&mut body)?;
        Ok(body)
    }
}

impl Outbox {
    /// Uses a folder, which is created with the first file. `target` is the store that files are written and read for.
    pub fn at(folder: impl Into<PathBuf>, target: Option<Target>) -> Self {
        Self { folder: folder.into(), fallback: None, target }
    }

    /// Adds a folder for writes that cannot be saved to the outbox folder.
    #[must_use]
    pub fn with_fallback(mut self, fallback: FallbackFolder) -> Self {
        self.fallback = Some(fallback);
        self
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the store that files are written and read for.
    pub const fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Writes a file durably, to the outbox folder or, if that fails, to the fallback folder. `body` is called for each
    /// attempt.
    ///
    /// # Errors
    ///
    /// Fails if neither folder can be written, or the body cannot be read.
    pub fn put<R: Read>(
        &self,
        id: &str,
        write: &SpooledWrite,
        body: impl Fn() -> io::Result<R>,
    ) -> io::Result<SpooledTo> {
        let name = format!("{:020}-{id}{SPOOLED}", self.next_position());
        let put_into = |folder: &Path| {
            let mut body = body()?;
            let mut file = DurableFile::create(&folder.join(&name))?;
            writeln!(file, "{}", serde_json::to_string(write)?)?;
            io::copy(&mut body, &mut file)?;
            file.finish()
        };
        let Err(error) = make_folder(&self.folder).and_then(|()| put_into(&self.folder)) else {
            return Ok(SpooledTo::Folder);
        };
        let Some(fallback) = &self.fallback else { return Err(error) };
        match fallback.create().and_then(|folder| put_into(folder).map(|()| folder.to_owned())) {
            Ok(folder) => Ok(SpooledTo::Fallback(folder, error.to_string())),
            Err(second) => Err(io::Error::other(format!("{error}; in the temporary folder: {second}"))),
        }
    }

    /// Returns the position of a new file: the time, or one past the last file if the clock was set back. Files are
    /// replayed in the order of their positions.
    fn next_position(&self) -> u128 {
        let files = self.files();
        let positions = files.iter().filter_map(|(name, _)| name.split_once('-')?.0.parse().ok());
        nanoseconds().max(positions.max().map_or(0, |last: u128| last + 1))
    }

    /// Returns true if the outbox has no file for the target. A file that cannot be read counts as a file for
    /// the target.
    pub fn is_empty(&self) -> bool {
        self.spooled().all(|(_, path)| self.is_for_another_store(&path))
    }

    /// Returns the number of files in the outbox for any target.
    pub fn count(&self) -> usize {
        self.spooled().count()
    }

    /// Returns the number of files that were set aside because they can never be stored.
    pub fn rejected(&self) -> usize {
        self.files().into_iter().filter(|(name, _)| name.ends_with(REJECTED)).count()
    }

    /// Returns the number of files in the outbox for each other target.
    pub fn for_other_targets(&self) -> Vec<(String, usize)> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for (_, path) in self.spooled() {
            let other = open(&path).ok().and_then(|(write, _)| write.target);
            let Some(other) = other.filter(|other| Some(other) != self.target.as_ref()) else { continue };
            match counts.iter_mut().find(|(known, _)| known == other.as_str()) {
                Some((_, count)) => *count += 1,
                None => counts.push((other.as_str().to_owned(), 1)),
            }
        }
        counts
    }

    /// Reads the first lines of the files for the target, oldest first. Unreadable files are logged and skipped.
    pub fn entries(&self) -> Vec<OutboxEntry> {
        let mut entries = Vec::new();
        for (name, path) in self.spooled() {
            match open(&path) {
                Ok((write, _)) if self.is_for_this_store(&write) => {
                    entries.push(OutboxEntry { write, name, path })
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "cannot read a write in the outbox")
                }
            }
        }
        entries
    }

    /// Replays the files for the target through `store`, oldest first, until nothing can be stored.
    pub fn replay(
        &self,
        limits: ReplayLimits,
        mut store: impl FnMut(&OutboxEntry, BufReader<File>) -> ReplayResult,
    ) -> Replay {
        let mut replay = Replay::default();
        let deadline = Instant::now() + limits.total;
        // The locks on these folders are held until the replay ends.
        let locks: Vec<LockFile> = self.folders().filter_map(|folder| LockFile::open(folder).ok()).collect();
        // Where folders cannot be locked, the idempotency key prevents a write from being stored twice.
        if !locks.iter().all(|lock| lock.lock_within(limits.lock).unwrap_or(true)) {
            return Replay { is_blocked: true, ..replay };
        }
        for (name, path) in self.spooled() {
            if Instant::now() > deadline {
                replay.is_blocked = true;
                break;
            }
            let (write, body) = match open(&path) {
                Ok(opened) => opened,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    replay.problems.push(set_aside(&path, &format!("it cannot be read: {error}")));
                    continue;
                }
            };
            if !self.is_for_this_store(&write) {
                replay.left += 1;
                continue;
            }
            let entry = OutboxEntry { write, name, path };
            match store(&entry, body) {
                ReplayResult::Stored => {
                    replay.stored += 1;
                    if let Err(error) = std::fs::remove_file(&entry.path) {
                        replay.problems.push(format!("cannot remove {}: {error}", entry.path.display()));
                    }
                }
                ReplayResult::Rejected(why) => replay.problems.push(set_aside(&entry.path, &why)),
                ReplayResult::Failed(why) if is_retry_period_over(entry.write.at) => {
                    replay.problems.push(set_aside(&entry.path, &why));
                }
                ReplayResult::Failed(_) => replay.left += 1,
                ReplayResult::Unavailable => {
                    replay.is_blocked = true;
                    break;
                }
            }
        }
        replay
    }

    /// Removes temporary files that killed processes left in the outbox folder and the folders below it, and returns their
    /// number.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be read.
    pub fn remove_stale_temporaries(&self) -> Result<u64, StoreError> {
        remove_stale_temporaries(&self.folder)
    }

    fn is_for_this_store(&self, write: &SpooledWrite) -> bool {
        write.target.as_ref().is_none_or(|target| Some(target) == self.target.as_ref())
    }

    fn is_for_another_store(&self, path: &Path) -> bool {
        open(path).is_ok_and(|(write, _)| !self.is_for_this_store(&write))
    }

    /// Returns the outbox folder, and the fallback folder if it exists.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        let fallback = self.fallback.as_ref().and_then(FallbackFolder::existing);
        [Some(self.folder.as_path()), fallback].into_iter().flatten()
    }

    /// Returns the files of the outbox in order, with their names without extension.
    fn spooled(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let files = self.files().into_iter();
        files.filter_map(|(name, path)| Some((name.strip_suffix(SPOOLED)?.to_owned(), path)))
    }

    fn files(&self) -> Vec<(String, PathBuf)> {
        let in_folder = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let files =
                entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
            files.collect::<Vec<_>>()
        };
        let mut files: Vec<_> = self.folders().flat_map(in_folder).collect();
        files.sort_unstable();
        files
    }
}

/// Opens a file and reads its first line.
fn open(path: &Path) -> io::Result<(SpooledWrite, BufReader<File>)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    file.by_ref().take(MAX_HEAD_BYTES).read_until(b'\n', &mut line)?;
    Ok((serde_json::from_slice(&line)?, file))
}

/// Renames a file that can never be stored, so that it is not replayed again, and returns a message about it.
fn set_aside(path: &Path, why: &str) -> String {
    let aside = path.with_extension(REJECTED.trim_start_matches('.'));
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("cannot store a write of the outbox, which is kept as {}: {why}", aside.display()),
        Err(error) => format!("cannot store a write of the outbox: {why}; cannot rename its file: {error}"),
    }
}

fn is_retry_period_over(at: Timestamp) -> bool {
    let now = i64::try_from(nanoseconds() / 1_000_000).unwrap_or(i64::MAX);
    at.plus(RETRY_PERIOD) < Timestamp::from_millis(now)
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
