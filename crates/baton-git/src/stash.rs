//! The stash of a repository.

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::object::ObjectId;
use crate::repository::Repository;

/// State of the stash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stash {
    /// The newest entry.
    pub tip: ObjectId,
    /// Number of entries.
    pub count: u64,
}

impl Stash {
    /// Reads the stash; `None` if it is empty.
    pub(crate) fn read(repository: &Repository) -> Result<Option<Self>, GitError> {
        let log = if repository.has_ref_files() {
            let path = repository.common_dir().join("logs/refs/stash");
            match std::fs::read(&path) {
                Ok(log) => log,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(GitError::folder(path)(error)),
            }
        } else {
            let arguments = ["show", "--no-abbrev-commit", "--format=%H %H", "refs/stash"];
            let (output, ended) = repository.call("reflog").arguments(arguments).attempt()?;
            if !ended.status.success() {
                return Ok(None);
            }
            // `git reflog` lists the newest entry first, the file lists it last.
            let mut lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
            lines.reverse();
            lines.join(&b'\n')
        };
        let entries: Vec<&[u8]> = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let newest = entries.last().and_then(|line| line.split(|byte| *byte == b' ').nth(1));
        let tip = newest.and_then(ObjectId::from_hex);
        Ok(tip.map(|tip| Self { tip, count: entries.len() as u64 }))
    }
}
