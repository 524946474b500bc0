//! `baton export DIR|-`: an uncompressed archive, as a folder of files or as one stream.

use std::io::{BufWriter, stdout};
use std::path::Path;

use baton_app::{Clock, SystemClock};
use baton_store::{FolderWriter, StreamWriter};
use clap::Args;
use serde_json::json;

use super::{counts, failure, store_of, warn_of_damage};
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Counted, Progress};
use crate::store::require_local;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// New or empty folder to write, or - for standard output
    #[arg(value_name = "DIR|-")]
    target: String,
}

const WHAT: &str = "export the store";

pub(crate) fn export(args: &ExportArgs, config: &Config) -> Result<Answer, Failure> {
    require_local(config, "an export")?;
    let (store, blobs) = store_of(config);
    let now = SystemClock.now();
    let failed = |error| failure(WHAT, &error);
    if args.target == "-" {
        let progress = Progress::new("exporting", Amount::Bytes);
        let mut writer = StreamWriter::plain(BufWriter::with_capacity(
            256 * 1024,
            Counted { inner: stdout().lock(), progress: &progress },
        ));
        let written = baton_store::export(&store, blobs.as_ref(), &mut writer, now).map_err(failed)?;
        warn_of_damage(&written);
        return Ok(Answer::silent());
    }
    let folder = Path::new(&args.target);
    let is_taken = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.exists(),
    };
    if is_taken {
        let message = format!("cannot {WHAT}: {} is not an empty folder", folder.display());
        return Err(Failure::new(Exit::Conflict, "file_exists", message)
            .hint("choose a folder that does not exist or is empty"));
    }
    let written = FolderWriter::new(folder)
        .and_then(|mut writer| baton_store::export(&store, blobs.as_ref(), &mut writer, now));
    let written = written.map_err(|error| {
        // A partial export is useless. The folder was new or empty before.
        let _ = std::fs::remove_dir_all(folder);
        failed(error)
    })?;
    warn_of_damage(&written);
    let text = format!("wrote {} records to {}", written.totals.all(), folder.display());
    let data = json!({
        "path": folder, "schema_version": written.schema, "counts": counts(&written.totals),
        "missing_blobs": written.missing_blobs, "damaged_checkpoints": written.damaged_checkpoints,
    });
    Answer::new(&data, text)
}
