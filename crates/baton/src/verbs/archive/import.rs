//! `baton import all PATH|-`: adds the records of a backup or export to the store.

use std::fs::File;
use std::io::{BufWriter, stdin};
use std::path::Path;

use baton_app::{Clock, SystemClock};
use baton_store::{
    ArchiveError, ArchiveReader, BlobFolder, ImportReport, Imported, LATEST_VERSION, Replace, StoreConfig,
    StreamReader, StreamWriter, Threads,
};
use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use super::{failure, open_archive, reading, store_of};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Counted, Progress};
use crate::store::require_local;

#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    /// Export folder, export stream or backup file to read, or - for standard input
    #[arg(value_name = "PATH|-")]
    source: String,
    /// Skip records that conflict with the store and import the others
    #[arg(long)]
    skip_conflicts: bool,
}

/// Maximum number of conflicts in the text output.
const MAX_SHOWN_CONFLICTS: usize = 10;

pub(crate) fn import_all(args: &AllArgs, config: &Config) -> Result<Answer, Failure> {
    require_local(config, "an import")?;
    let what = match args.source.as_str() {
        "-" => "import standard input".to_owned(),
        path => format!("import {path}"),
    };
    let failed = |error| failure(&what, &error);
    let (store, blobs) = store_of(config);
    let folder = DataDir::open(&config.data_dir).map(|_| config.data_dir.as_path())?;
    let progress = match args.source.as_str() {
        "-" => Progress::new("importing", Amount::Bytes),
        path => reading("importing", Path::new(path), 1),
    };
    let reader = if args.source == "-" {
        StreamReader::new(Counted { inner: stdin().lock(), progress: &progress })
            .map(|reader| Box::new(reader) as Box<dyn ArchiveReader>)
    } else {
        open_archive(Path::new(&args.source), &progress)
    };
    let mut reader = reader.map_err(failed)?;
    // Keeps the upgraded copy of an older archive until the import has finished.
    let mut upgraded = None;
    if reader.header().schema < LATEST_VERSION {
        let temporary = upgrade(reader.as_mut(), folder).map_err(failed)?;
        reader = open_archive(&temporary.path().join(UPGRADED), &progress).map_err(failed)?;
        upgraded = Some(temporary);
    }
    let imported = baton_store::import(&store, blobs.as_ref(), reader.as_mut(), args.skip_conflicts);
    drop(upgraded);
    match imported.map_err(failed)? {
        Imported::Kept(report) => Answer::new(&report, describe(&report)),
        Imported::Refused(report) => {
            let message = format!(
                "cannot {what}: {} records conflict with records of the store, nothing was imported{}",
                report.conflicting,
                conflicts(&report)
            );
            let mut failure = Failure::new(Exit::Conflict, "import_conflict", message).hint(
                "repeat with --skip-conflicts to import the other records, or import into an empty store",
            );
            failure.details = Some(json!(report));
            Err(failure)
        }
    }
}

fn describe(report: &ImportReport) -> String {
    let ImportReport { added, unchanged, conflicting, .. } = report;
    format!(
        "imported {added} records; {unchanged} were already present, {conflicting} conflicting records were skipped{}",
        conflicts(report)
    )
}

fn conflicts(report: &ImportReport) -> String {
    let named = report.conflicts.iter().take(MAX_SHOWN_CONFLICTS);
    let mut text: String = named
        .map(|conflict| format!("\n  {} {}: {}", conflict.table, conflict.key, conflict.reason))
        .collect();
    let more = report.conflicting.saturating_sub(MAX_SHOWN_CONFLICTS as u64);
    if more > 0 {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

const UPGRADED: &str = "upgraded.archive";

/// Upgrades an archive of an older schema by loading it into a temporary store and exporting that.
fn upgrade(reader: &mut dyn ArchiveReader, folder: &Path) -> Result<TempDir, ArchiveError> {
    let temporary =
        tempfile::Builder::new().prefix("import-").tempdir_in(folder).map_err(ArchiveError::Write)?;
    let path = temporary.path().join("baton.db");
    let store = StoreConfig::Sqlite { path, threads: Threads::Caller };
    let blobs = BlobFolder::at(temporary.path().join("blobs"));
    baton_store::replace(&store, reader, &Replace { blobs: Some(&blobs), force: false, stamp: "0" })?;
    let file = File::create(temporary.path().join(UPGRADED)).map_err(ArchiveError::Write)?;
    let mut writer = StreamWriter::compressed(BufWriter::new(file))?;
    baton_store::export(&store, Some(&blobs), &mut writer, SystemClock.now())?;
    Ok(temporary)
}
