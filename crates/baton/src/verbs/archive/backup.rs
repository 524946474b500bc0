//! `baton backup FILE`: a compressed archive, verified before it is renamed to its final name.

use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::path::PathBuf;

use baton_app::{Clock, SystemClock};
use baton_files::DurableFile;
use baton_store::{ArchiveError, StreamReader, StreamWriter, verify};
use clap::Args;
use serde_json::json;

use super::{counts, failure, reading, store_of, warn_of_damage};
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Counted, Progress};
use crate::store::require_local;
use crate::terminal::size;

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// File to write
    file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

const WHAT: &str = "back up the store";

pub(crate) fn backup(args: &BackupArgs, config: &Config) -> Result<Answer, Failure> {
    require_local(config, "a backup")?;
    let path = &args.file;
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!("cannot {WHAT}: {name} is a folder"))
            .hint("name a file, or use baton export to write a folder"));
    }
    if path.exists() && !args.force {
        return Err(Failure::new(Exit::Conflict, "file_exists", format!("cannot {WHAT}: {name} exists"))
            .hint("choose another name, or repeat with --force to overwrite it"));
    }
    let mut file = DurableFile::create_exclusively(path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            let message = format!("cannot {WHAT}: another backup is writing {name}");
            Failure::new(Exit::Blocked, "file_busy", message).hint("wait until it has finished")
        }
        _ => failure(WHAT, &ArchiveError::Write(error)),
    })?;
    let (store, blobs) = store_of(config);
    let progress = Progress::new("writing the backup", Amount::Bytes);
    let written = {
        let output = Counted { inner: &mut file, progress: &progress };
        let output = BufWriter::with_capacity(256 * 1024, output);
        let mut writer = StreamWriter::compressed(output).map_err(|error| failure(WHAT, &error))?;
        baton_store::export(&store, blobs.as_ref(), &mut writer, SystemClock.now())
    };
    let written = written.map_err(|error| failure(WHAT, &error))?;
    drop(progress);
    // Sync first, so that the verification reads what is on disk.
    file.sync().map_err(|error| failure(WHAT, &ArchiveError::Write(error)))?;
    let progress = reading("verifying the backup", file.temporary(), 1);
    let read = File::open(file.temporary())
        .map_err(ArchiveError::Read)
        .and_then(|inner| verify(&mut StreamReader::new(Counted { inner, progress: &progress })?))
        .map_err(|error| failure(WHAT, &error))?;
    drop(progress);
    if read != written.totals {
        let error =
            ArchiveError::Damaged { problem: "the totals read back differ from those written".into() };
        return Err(failure(WHAT, &error));
    }
    file.finish().map_err(|error| failure(WHAT, &ArchiveError::Write(error)))?;
    let bytes = std::fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    warn_of_damage(&written);
    let text = format!(
        "wrote {name}: {} records, {}; the file was read back and is complete\n\
         checked the hash of every checkpoint; baton doctor --deep checks everything else\n\
         encryption keys are not part of a backup",
        read.all(),
        size(bytes)
    );
    let data = json!({
        "path": path, "bytes": bytes, "schema_version": written.schema, "counts": counts(&read),
        "sha256": read.sha256, "missing_blobs": written.missing_blobs,
        "damaged_checkpoints": written.damaged_checkpoints,
    });
    Answer::new(&data, text)
}
