//! Records of the files that setup changed, in `setup/` of the data folder: the original content, so that removal can
//! restore it byte by byte.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_core::Sha256Hash;
use baton_files::{make_folder, write_durably};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileRecord {
    pub(super) path: PathBuf,
    /// Agents that were set up with this file.
    pub(super) agents: Vec<String>,
    /// Content before setup, stored in base64; `None` if the file did not exist.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub(super) original: Option<String>,
    /// Hash of the content that setup wrote.
    written: String,
    /// Folders that setup created for the file, outermost first.
    pub(super) folders: Vec<PathBuf>,
}

impl FileRecord {
    pub(super) fn new(path: &Path, original: Option<&str>, written: &str) -> Self {
        Self {
            path: path.to_owned(),
            agents: Vec::new(),
            original: original.map(str::to_owned),
            written: hash(written),
            folders: Vec::new(),
        }
    }

    /// Returns the record after the file was written again.
    pub(super) fn rewritten(self, original: Option<&str>, written: &str) -> Self {
        Self { agents: self.agents, folders: self.folders, ..Self::new(&self.path, original, written) }
    }

    /// Returns true if the file still has the content that setup wrote.
    pub(super) fn is_unchanged(&self, current: &str) -> bool {
        self.written == hash(current)
    }
}

fn to_base64<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_ref().map(|text| STANDARD.encode(text)).serialize(serializer)
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(encoded) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let bytes = STANDARD.decode(encoded).map_err(Error::custom)?;
    String::from_utf8(bytes).map(Some).map_err(Error::custom)
}

fn hash(text: &str) -> String {
    Sha256Hash::of(text.as_bytes()).to_string()
}

/// The records of a data folder.
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: DataDir::at(data_dir).setup() }
    }

    /// Returns true if an agent is set up.
    pub(crate) fn exist(&self) -> bool {
        std::fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_some())
    }

    fn file_of(&self, path: &Path) -> PathBuf {
        let name: String =
            Sha256Hash::of(path.as_os_str().as_encoded_bytes()).to_string().chars().take(32).collect();
        self.folder.join(format!("{name}.json"))
    }

    /// Returns the record of a file. A damaged record counts as none: removal then edits the file in place.
    pub(super) fn read(&self, path: &Path) -> Option<FileRecord> {
        let text = std::fs::read(self.file_of(path)).ok()?;
        serde_json::from_slice(&text).ok().filter(|record: &FileRecord| record.path == path)
    }

    pub(super) fn write(&self, record: &FileRecord) -> Result<(), Failure> {
        let write = || -> std::io::Result<()> {
            make_folder(&self.folder)?;
            write_durably(&self.file_of(&record.path), &serde_json::to_vec(record)?)
        };
        write().map_err(|error| {
            let message =
                format!("cannot back up {} to {}: {error}", record.path.display(), self.folder.display());
            Failure::new(Exit::StoreUnavailable, "store_unavailable", message)
                .hint("make the data folder writable for you, then run setup again")
        })
    }

    /// Restores records after a failure.
    pub(super) fn restore(&self, before: &[(PathBuf, Option<FileRecord>)]) {
        for (path, record) in before {
            match record {
                // The failure that caused this is reported.
                Some(record) => drop(self.write(record)),
                None => self.delete(path),
            }
        }
    }

    pub(super) fn delete(&self, path: &Path) {
        // A leftover record is replaced by the next setup.
        let _ = std::fs::remove_file(self.file_of(path));
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Removes folders that setup created, if they are empty. Folders that another agent still uses are kept for the
    /// next removal.
    pub(super) fn remove_folders(&self, mut folders: Vec<PathBuf>) {
        let list = self.folder.join("folders");
        let kept = std::fs::read(&list).unwrap_or_default();
        folders.extend(serde_json::from_slice::<Vec<PathBuf>>(&kept).unwrap_or_default());
        // Inner folders come first.
        folders.sort_by(|one, other| other.cmp(one));
        folders.dedup();
        folders.retain(|folder| std::fs::remove_dir(folder).is_err() && folder.is_dir());
        let _ = std::fs::remove_file(&list);
        // Without any record, no other agent is set up.
        if std::fs::remove_dir(&self.folder).is_err()
            && self.folder.is_dir()
            && !folders.is_empty()
            && let Ok(text) = serde_json::to_vec(&folders)
        {
            let _ = write_durably(&list, &text);
        }
    }
}
