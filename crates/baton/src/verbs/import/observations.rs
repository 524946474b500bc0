//! `baton import observations FILE|-`

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use baton_app::observation::{ImportObservations, ImportedObservation, MAX_IMPORTED_OBSERVATIONS};
use baton_core::counted;
use clap::Args;
use serde::Serialize;

use super::invalid::InvalidLines;
use super::lines::{Lines, MAX_LINE_BYTES};
use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Progress};

pub(crate) const FORMAT: &str = "\
Each line is a JSON object:
  title, summary   required texts
  detail           further text
  files_touched    list of paths
  external_id      id in the other program; a known id is skipped
  repo             owner/name
  session          groups observations that belong together
  agent            agent that worked
  created_at       time, for example 2026-02-11T15:31:21Z

Example:
  $ baton import observations notes.jsonl --repo acme/webshop";

/// Maximum size of the lines of one request in bytes.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct ObservationsArgs {
    /// File with one JSON object per line, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: String,
    /// Repository of lines without one [default: the current checkout, else local/import]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
}

pub(super) fn import(args: &ObservationsArgs, config: &Config) -> Result<Answer, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Exit::Failure, "read_failed", format!("cannot import {}: {error}", args.file))
            .hint("check that the file exists and is readable")
    };
    let (source, bytes): (Box<dyn BufRead>, u64) = if args.file == "-" {
        (Box::new(stdin().lock()), 0)
    } else {
        let path = Path::new(&args.file);
        if path.is_dir() {
            return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map(|data| data.len()).unwrap_or_default();
        (Box::new(BufReader::with_capacity(256 * 1024, file)), bytes)
    };
    let mut batch = Batch::new(config, args.repo.as_deref(), args.venture.as_deref())?;
    let mut invalid = InvalidLines::default();
    let (mut lines, progress) = (Lines::new(source), Progress::new("importing", Amount::BytesOf(bytes)));
    loop {
        let before = lines.position();
        let Some(line) = lines.next().map_err(unreadable)? else { break };
        match parse(line.content) {
            Ok(None) => {}
            Ok(Some(observation)) => batch.add(observation, line.content.map_or(0, <[u8]>::len))?,
            Err(reason) => invalid.add(&args.file, line.number, reason),
        }
        progress.add(lines.position() - before);
    }
    batch.send()?;
    drop(progress);
    report(&batch, &invalid)
}

/// Parses and checks a line; `None` for an empty line.
pub(super) fn parse(content: Option<&[u8]>) -> Result<Option<ImportedObservation>, String> {
    let content = content.ok_or_else(|| format!("the line is longer than {MAX_LINE_BYTES} bytes"))?;
    if content.is_empty() {
        return Ok(None);
    }
    let one: ImportedObservation = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    one.check().map_err(|fault| fault.message)?;
    Ok(Some(one))
}

/// Parameters of [`ImportObservations`].
#[derive(Serialize)]
struct Observations<'a> {
    repo: &'a str,
    venture: Option<&'a str>,
    observations: Vec<ImportedObservation>,
}

/// Observations that are sent together.
pub(super) struct Batch {
    backend: Backend,
    repo: String,
    venture: Option<String>,
    observations: Vec<ImportedObservation>,
    bytes: usize,
    added: u64,
    unchanged: u64,
}

impl Batch {
    /// Creates an empty batch. Observations without a repository belong to `repo`, else to the current checkout.
    pub(super) fn new(config: &Config, repo: Option<&str>, venture: Option<&str>) -> Result<Self, Failure> {
        let repo = match repo {
            Some(repo) => repo.to_owned(),
            None => repository_here()?.map_or_else(|| "local/import".to_owned(), String::from),
        };
        Ok(Self {
            backend: Backend::open(config)?,
            repo,
            venture: config.chosen_venture(venture),
            observations: Vec::new(),
            bytes: 0,
            added: 0,
            unchanged: 0,
        })
    }

    pub(super) fn add(&mut self, observation: ImportedObservation, bytes: usize) -> Result<(), Failure> {
        self.observations.push(observation);
        self.bytes += bytes;
        let is_full = self.observations.len() >= MAX_IMPORTED_OBSERVATIONS || self.bytes >= MAX_BATCH_BYTES;
        if is_full { self.send() } else { Ok(()) }
    }

    pub(super) fn send(&mut self) -> Result<(), Failure> {
        let observations = std::mem::take(&mut self.observations);
        self.bytes = 0;
        if observations.is_empty() {
            return Ok(());
        }
        let params = Observations { repo: &self.repo, venture: self.venture.as_deref(), observations };
        let output = self.backend.call::<ImportObservations>(&params, None)?;
        self.added += output.added;
        self.unchanged += output.unchanged;
        Ok(())
    }
}

pub(super) fn report(batch: &Batch, invalid: &InvalidLines) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Report<'a> {
        added: u64,
        unchanged: u64,
        #[serde(flatten)]
        invalid: &'a InvalidLines,
    }
    let &Batch { added, unchanged, .. } = batch;
    let text = format!(
        "imported {}; {unchanged} were already stored{}",
        counted(added, "observation"),
        invalid.describe()
    );
    let is_useless = added == 0 && unchanged == 0 && invalid.count() > 0;
    let exit = if is_useless { Exit::Validation } else { Exit::Ok };
    Ok(Answer { exit, ..Answer::new(&Report { added, unchanged, invalid }, text)? })
}
