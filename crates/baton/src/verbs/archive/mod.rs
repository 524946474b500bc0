//! `baton backup`, `baton restore`, `baton export` and `baton import all`: every record of the local store, in one file, a
//! folder or a stream.

mod backup;
mod export;
mod import;
mod restore;

use std::fs::File;
use std::path::Path;

use baton_core::{ErrorCode, Timestamp, counted};
use baton_store::{
    ArchiveError, ArchiveReader, BlobFolder, Exported, FolderReader, StoreConfig, StreamReader, Threads,
    Totals,
};
use serde_json::{Value, json};

pub(crate) use backup::{BackupArgs, backup};
pub(crate) use export::{ExportArgs, export};
pub(crate) use import::{AllArgs, import_all};
pub(crate) use restore::{RestoreArgs, restore};

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::{Failure, warn};
use crate::progress::{Amount, Counted, Progress};
use crate::store::{store_config, store_failure};

pub(crate) const BACKUP_EXAMPLES: &str = "\
Examples:
  $ baton backup baton.backup
  $ baton backup --force baton.backup   # replace the previous file";

pub(crate) const RESTORE_EXAMPLES: &str = "\
Stop baton serve, baton worker and baton mcp first.

Examples:
  $ baton restore baton.backup
  $ baton restore --force baton.backup   # the store holds data";

/// Returns the configured store and its blob folder.
fn store_of(config: &Config) -> (StoreConfig, Option<BlobFolder>) {
    // With PostgreSQL all content is in the database.
    let is_local = config.database_url.is_none();
    let blobs = is_local.then(|| BlobFolder::at(DataDir::at(&config.data_dir).blobs()));
    (store_config(config, Threads::Caller), blobs)
}

/// Opens an archive: a folder, or a compressed or plain file.
fn open_archive<'a>(
    path: &Path,
    progress: &'a Progress,
) -> Result<Box<dyn ArchiveReader + 'a>, ArchiveError> {
    if path.is_dir() {
        return Ok(Box::new(FolderReader::new(path)?));
    }
    let inner = File::open(path).map_err(ArchiveError::Read)?;
    Ok(Box::new(StreamReader::new(Counted { inner, progress })?))
}

/// Returns the progress of work that reads a file `passes` times.
fn reading(work: &'static str, path: &Path, passes: u64) -> Progress {
    let total = std::fs::metadata(path).map_or(0, |file| file.len() * passes);
    Progress::new(work, Amount::BytesOf(total))
}

/// Converts an archive error to a failure with exit code and hint.
fn failure(what: &str, error: &ArchiveError) -> Failure {
    let (exit, code, hint) = match error {
        ArchiveError::Store(error) | ArchiveError::Record { source: error, .. } => {
            let inner = store_failure(error);
            return Failure { message: format!("cannot {what}: {}", inner.message), ..inner };
        }
        ArchiveError::Write(_) => {
            (Exit::Failure, "write_failed", "check the free space and the permissions of the target")
        }
        ArchiveError::Read(_) => (Exit::Failure, "read_failed", "check that the file exists and is readable"),
        ArchiveError::Damaged { .. } => {
            (Exit::Validation, "archive_damaged", "use another backup or export; nothing was changed")
        }
        ArchiveError::Newer { .. } => (
            Exit::Validation,
            "archive_newer",
            "use the baton version that wrote the archive, or a newer one",
        ),
        ArchiveError::OtherSchema { .. } => (
            Exit::Validation,
            "archive_schema",
            "load it into an empty store with baton restore, which upgrades it, and export that",
        ),
        ArchiveError::NoDatabase { .. } => (
            Exit::NotFound,
            ErrorCode::NotFound.as_str(),
            "check BATON_DATA_DIR and BATON_DATABASE_URL with baton config show",
        ),
        ArchiveError::NotEmpty => (
            Exit::Conflict,
            "store_not_empty",
            "repeat with --force to replace the store; the replaced data is kept under another name",
        ),
        ArchiveError::DamagedTarget { .. } => (
            Exit::Conflict,
            "store_damaged",
            "repeat with --force to replace the damaged database; its files are kept under another name",
        ),
        ArchiveError::InUse { .. } => (
            Exit::Blocked,
            "store_in_use",
            "stop baton serve, baton worker and baton mcp, then repeat the command",
        ),
    };
    Failure::new(exit, code, format!("cannot {what}: {error}")).hint(hint)
}

/// Record counts of an archive as JSON.
fn counts(totals: &Totals) -> Value {
    json!({ "records": totals.all(), "tables": totals.records })
}

/// Maximum number of damaged checkpoints named in a warning.
const NAMED: usize = 20;

/// Warns about records whose blob files are missing and about damaged checkpoints.
fn warn_of_damage(written: &Exported) {
    let Exported { missing_blobs, damaged_checkpoints, .. } = written;
    if let Some(first) = missing_blobs.first() {
        warn(&format!(
            "{} records refer to files that are missing from blobs/, for example {first}; run baton doctor --deep",
            missing_blobs.len()
        ));
    }
    if !damaged_checkpoints.is_empty() {
        let count = damaged_checkpoints.len();
        let named: Vec<&str> = damaged_checkpoints.iter().take(NAMED).map(String::as_str).collect();
        warn(&format!(
            "copied {} unchanged: {}{}; run baton doctor --deep",
            counted(count as u64, "damaged checkpoint"),
            named.join(", "),
            if count > NAMED { ", …" } else { "" }
        ));
    }
}

/// Formats a time for use in a file name.
fn stamp(now: Timestamp) -> String {
    now.to_string().chars().filter(char::is_ascii_alphanumeric).collect()
}
