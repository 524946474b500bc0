//! `baton restore FILE`: replaces the contents of the store with a backup or export.

use std::path::PathBuf;

use baton_app::{Clock, SystemClock};
use baton_store::{Replace, verify};
use clap::Args;
use serde_json::json;

use super::{failure, open_archive, reading, stamp, store_of};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::encryption::ConfiguredKeys;
use crate::exit::Exit;
use crate::output::{Answer, Failure, print_message, warn};
use crate::store::require_local;
use crate::verbs::key::keys_in_use;
use crate::verbs::worker::{LockState, WorkerLock};

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Backup file, export stream or export folder to read
    file: PathBuf,
    /// Replace a store that holds data; the replaced data is kept under another name
    #[arg(long)]
    force: bool,
}

const WHAT: &str = "restore the store";

pub(crate) fn restore(args: &RestoreArgs, config: &Config) -> Result<Answer, Failure> {
    require_local(config, "a restore")?;
    if let LockState::Held(_) = WorkerLock::state(&config.data_dir) {
        let message = format!("cannot {WHAT}: the background worker is running");
        return Err(Failure::new(Exit::Blocked, "store_in_use", message)
            .hint("run baton worker stop, then repeat the command"));
    }
    let path = args.file.as_path();
    let what = format!("{WHAT} from {}", path.display());
    let failed = |error| failure(&what, &error);
    // The whole archive is verified before the store is changed.
    let progress = reading("restoring", path, 2);
    let read = || open_archive(path, &progress);
    read().and_then(|mut reader| verify(reader.as_mut())).map_err(failed)?;
    let (store, blobs) = store_of(config);
    if blobs.is_some() {
        DataDir::open(&config.data_dir)?;
    }
    let how = Replace { blobs: blobs.as_ref(), force: args.force, stamp: &stamp(SystemClock.now()) };
    let mut reader = read().map_err(failed)?;
    let created_at = reader.header().created_at;
    let (report, kept) = baton_store::replace(&store, reader.as_mut(), &how).map_err(failed)?;
    let missing = missing_keys(config)?;
    let mut lines =
        vec![format!("restored {} records from {}, written at {created_at}", report.added, path.display())];
    lines.extend(kept.iter().map(|kept| format!("kept the replaced data in {kept}")));
    let data = json!({
        "path": path, "records": report.added, "created_at": created_at, "kept": kept,
        "missing_keys": missing,
    });
    Answer::new(&data, lines.join("\n"))
}

/// Returns the ids of keys that restored checkpoints need and that are not available here.
fn missing_keys(config: &Config) -> Result<Vec<String>, Failure> {
    let used = keys_in_use(config)?;
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let keys = ConfiguredKeys::of(config);
    let known: Vec<String> = match keys.source().read() {
        Ok((ring, _)) => ring.ids().map(|id| id.to_string()).collect(),
        Err(_) => Vec::new(),
    };
    let missing: Vec<(String, u64)> = used.into_iter().filter(|(id, _)| !known.contains(id)).collect();
    for (id, count) in &missing {
        warn(&format!("{count} checkpoints are encrypted with key {id}, which is not available here"));
    }
    if !missing.is_empty() {
        print_message(
            "next: put the key file in place (BATON_ENCRYPTION_KEY_FILE), then run baton doctor --deep",
        );
    }
    Ok(missing.into_iter().map(|(id, _)| id).collect())
}
