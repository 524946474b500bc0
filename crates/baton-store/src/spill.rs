//! The folder of spilled checkpoints: checkpoints that could not be written to the database, one self-contained file
//! each.
//!
//! A file is one line of JSON with the metadata and the target database, followed by the frame. Files are replayed into
//! that database in the order of their names, which begin with the checkpoint id and so with the time. A file is
//! removed after the replay is committed. Files for another database are not touched.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, WorkflowId};
use baton_core::{Agent, CheckpointId, Repo, SessionId, Sha256Hash, Timestamp, Venture};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::files::{file_error, make_folder, remove_stale_temporaries, write_durably};
use crate::frame::Encoding;
use crate::rows::{Frame, FrameBody, StoredFrame};
use crate::target::Target;

const FORMAT: &str = "baton checkpoint 2";
const ENDING: &str = ".spilled";
/// Limit for the JSON line and the frame together.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;
/// Limit for the JSON line when only the target database of a file is needed.
const MAX_HEAD_BYTES: u64 = 1024 * 1024;

/// A checkpoint stored outside the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spilled {
    /// Metadata of the checkpoint. Its place is assigned when it is replayed.
    pub checkpoint: Checkpoint,
    /// Name of the workflow.
    pub workflow_name: Option<String>,
    /// Repository of the workflow.
    pub repo: Option<Repo>,
    /// The whole context; never a delta.
    pub frame: Frame,
}

/// The JSON line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    target: Target,
    checkpoint_id: CheckpointId,
    venture: Venture,
    workflow_id: WorkflowId,
    workflow_name: Option<String>,
    repo: Option<Repo>,
    labels: Labels,
    session_id: Option<SessionId>,
    agent: Option<Agent>,
    created_at: Timestamp,
    context_bytes: u64,
    context_hash: Sha256Hash,
    restores_size: bool,
    encoding: String,
    key_id: Option<String>,
    frame_hash: Sha256Hash,
}

/// A folder of spilled checkpoints.
#[derive(Debug, Clone)]
pub struct SpillFolder {
    path: PathBuf,
    target: Target,
}

impl SpillFolder {
    /// Uses a folder, which is created with the first file. Files are read and written for `target`.
    pub fn at(path: impl Into<PathBuf>, target: Target) -> Self {
        Self { path: path.into(), target }
    }

    /// Returns true if there is no file for the database. A file with an unreadable target counts as a file for it.
    pub fn is_empty(&self) -> bool {
        self.names().is_ok_and(|names| names.iter().all(|name| self.is_for_another(name)))
    }

    /// Counts the files for other databases.
    pub fn count_for_others(&self) -> usize {
        self.names().map_or(0, |names| names.iter().filter(|name| self.is_for_another(name)).count())
    }

    fn is_for_another(&self, name: &str) -> bool {
        let head = || {
            let mut line = Vec::new();
            let file = File::open(self.path.join(name)).ok()?;
            BufReader::new(file).take(MAX_HEAD_BYTES).read_until(b'\n', &mut line).ok()?;
            serde_json::from_slice::<Head>(&line).ok()
        };
        head().is_some_and(|head| head.target != self.target)
    }

    /// Returns the highest id of the spilled checkpoints.
    pub fn newest_id(&self) -> Option<CheckpointId> {
        let names = self.names().ok()?;
        names.iter().rev().find_map(|name| name.strip_suffix(ENDING)?.parse().ok())
    }

    /// Writes a checkpoint and syncs it to disk.
    pub fn put(&self, spilled: &Spilled) -> Result<(), StoreError> {
        let FrameBody::Row(frame) = &spilled.frame.body else {
            return Err(StoreError::corrupt("spill", "a spilled frame is kept in its own file"));
        };
        make_folder(&self.path).map_err(|source| file_error(&self.path, source))?;
        let head = serde_json::to_string(&Head::of(spilled, &self.target))
            .map_err(|problem| StoreError::corrupt("spill", problem))?;
        let path = self.path.join(format!("{}{ENDING}", spilled.checkpoint.id));
        let bytes = [head.as_bytes(), b"\n", frame].concat();
        write_durably(&path, &bytes).map_err(|source| file_error(&path, source))
    }

    /// Reads all checkpoints for the database, oldest first. Files that cannot be read are logged and kept.
    pub fn entries(&self) -> Result<Vec<Spilled>, StoreError> {
        let mut entries = Vec::new();
        for name in self.names()? {
            if self.is_for_another(&name) {
                continue;
            }
            let path = self.path.join(&name);
            match read(&path) {
                Ok(entry) => entries.push(entry),
                Err(problem) => {
                    tracing::error!(path = %path.display(), problem, "a spilled checkpoint cannot be read");
                }
            }
        }
        Ok(entries)
    }

    /// Removes temporary files left by killed writers, here and in the folders directly below, and returns their
    /// number.
    pub fn remove_stale_temporaries(&self) -> Result<u64, StoreError> {
        remove_stale_temporaries(&self.path)
    }

    /// Removes a checkpoint after its replay. A missing file is not an error.
    pub fn remove(&self, id: CheckpointId) -> Result<(), StoreError> {
        let path = self.path.join(format!("{id}{ENDING}"));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(&path, error)),
            _ => Ok(()),
        }
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(file_error(&self.path, source)),
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(ENDING))
            .collect();
        names.sort_unstable();
        Ok(names)
    }
}

impl Head {
    fn of(spilled: &Spilled, target: &Target) -> Self {
        let Spilled { checkpoint, workflow_name, repo, frame } = spilled;
        Self {
            format: FORMAT.into(),
            target: target.clone(),
            checkpoint_id: checkpoint.id,
            venture: checkpoint.venture.clone(),
            workflow_id: checkpoint.workflow_id.clone(),
            workflow_name: workflow_name.clone(),
            repo: repo.clone(),
            labels: checkpoint.labels.clone(),
            session_id: checkpoint.session_id,
            agent: checkpoint.agent.clone(),
            created_at: checkpoint.created_at,
            context_bytes: checkpoint.context_bytes,
            context_hash: checkpoint.context_hash,
            restores_size: checkpoint.restores_size,
            encoding: frame.encoding.as_str().into(),
            key_id: frame.key_id.clone(),
            frame_hash: frame.hash,
        }
    }
}

impl Spilled {
    /// Returns the frame in the form in which a database returns it.
    pub fn stored_frame(&self) -> StoredFrame {
        StoredFrame {
            checkpoint_id: self.checkpoint.id,
            place: self.checkpoint.place,
            context_bytes: self.checkpoint.context_bytes,
            context_hash: self.checkpoint.context_hash,
            frame: self.frame.clone(),
        }
    }
}

fn read(path: &Path) -> Result<Spilled, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("{size} bytes exceed the limit of a spilled checkpoint"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("its first line does not end")?;
    let (line, frame) = bytes.split_at(end);
    let head: Head = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if head.format != FORMAT {
        return Err(format!("its format is {:?}, not {FORMAT:?}", head.format));
    }
    let frame = frame.get(1..).unwrap_or_default().to_vec();
    if Sha256Hash::of(&frame) != head.frame_hash {
        return Err("its frame does not have the recorded hash".into());
    }
    let encoding = Encoding::from_wire(&head.encoding).ok_or("its encoding is unknown")?;
    Ok(Spilled {
        checkpoint: Checkpoint {
            id: head.checkpoint_id,
            venture: head.venture,
            workflow_id: head.workflow_id,
            place: Place::FIRST,
            status: CheckpointStatus::Active,
            labels: head.labels,
            session_id: head.session_id,
            agent: head.agent,
            created_at: head.created_at,
            context_bytes: head.context_bytes,
            context_hash: head.context_hash,
            restores_size: head.restores_size,
            stored_bytes: frame.len() as u64,
        },
        workflow_name: head.workflow_name,
        repo: head.repo,
        frame: Frame {
            encoding,
            key_id: head.key_id,
            hash: head.frame_hash,
            size_bytes: frame.len() as u64,
            body: FrameBody::Row(frame),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spilled(number: u128) -> Spilled {
        let frame = vec![b'{', b'\n', b'}'];
        Spilled {
            checkpoint: Checkpoint {
                id: CheckpointId::new(baton_core::Ulid::from(number)),
                venture: "v".parse().unwrap(),
                workflow_id: "w".parse().unwrap(),
                place: Place::FIRST,
                status: CheckpointStatus::Active,
                labels: Labels { name: Some("é ☕".parse().unwrap()), tags: vec!["t".parse().unwrap()] },
                session_id: None,
                agent: Some("a".parse().unwrap()),
                created_at: Timestamp::from_millis(7),
                context_bytes: 3,
                context_hash: Sha256Hash::of(&frame),
                restores_size: true,
                stored_bytes: 3,
            },
            workflow_name: Some("auth".into()),
            repo: Some("o/r".parse().unwrap()),
            frame: Frame {
                encoding: Encoding::Plain,
                key_id: Some("0123456789abcdef".into()),
                hash: Sha256Hash::of(&frame),
                size_bytes: 3,
                body: FrameBody::Row(frame),
            },
        }
    }

    #[test]
    fn entries_are_listed_in_order_until_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = SpillFolder::at(home.path().join("spill"), Target::sqlite());
        assert!(folder.is_empty());
        let [first, second] = [spilled(1), spilled(2)];
        folder.put(&second).unwrap();
        folder.put(&first).unwrap();
        assert!(!folder.is_empty());
        assert_eq!(folder.entries().unwrap(), [first.clone(), second.clone()]);
        folder.remove(first.checkpoint.id).unwrap();
        folder.remove(first.checkpoint.id).unwrap();
        assert_eq!(folder.entries().unwrap(), [second]);
    }

    #[test]
    fn unreadable_files_are_kept_and_skipped() {
        let home = tempfile::tempdir().unwrap();
        let folder = SpillFolder::at(home.path(), Target::sqlite());
        folder.put(&spilled(2)).unwrap();
        let path = home.path().join(format!("{}{ENDING}", spilled(2).checkpoint.id));
        let sound = std::fs::read(&path).unwrap();
        let mut flipped = sound.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for (number, bytes) in
            [b"".as_slice(), b"{}\n", b"no line", &sound[..sound.len() - 1], &flipped].iter().enumerate()
        {
            std::fs::write(home.path().join(format!("bad-{number}{ENDING}")), bytes).unwrap();
        }
        assert_eq!(folder.entries().unwrap(), [spilled(2)]);
        assert!(home.path().join(format!("bad-0{ENDING}")).exists());
    }

    #[test]
    fn entries_for_another_database_are_not_listed() {
        let home = tempfile::tempdir().unwrap();
        let here = SpillFolder::at(home.path(), Target::sqlite());
        let there = SpillFolder::at(home.path(), Target::postgres("postgres://db/shop"));
        there.put(&spilled(1)).unwrap();
        assert!(here.is_empty() && !there.is_empty());
        assert_eq!((here.count_for_others(), there.count_for_others()), (1, 0));
        assert_eq!((here.entries().unwrap(), there.entries().unwrap()), (vec![], vec![spilled(1)]));
    }
}
