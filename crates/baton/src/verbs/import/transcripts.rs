//! `baton import claude-code|codex|gemini|opencode|cursor [PATH]`: imports recorded chats.
//!
//! Files are read line by line, databases chat by chat, and records are sent in batches, so memory stays bounded. The
//! store records the progress of each chat: an import that was interrupted continues, and a file that has grown is read
//! from its last turn on.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use baton_app::observation::{ImportTranscript, TranscriptProgress};
use baton_core::{Timestamp, counted};
use baton_observation::transcript::{Line, TranscriptFormat, TranscriptParser};
use serde::Serialize;
use serde_json::Value;

use super::folder_repository::FolderRepositories;
use super::invalid::InvalidLines;
use super::records::Records;
use super::source::Source;
use super::{TranscriptArgs, discover};
use crate::backend::Backend;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, warn};
use crate::progress::{Amount, Progress};
use crate::transcript::transcript_folder;
use crate::verbs::worker::start_if_absent;

/// Maximum number of reports in one request.
const MAX_BATCH_REPORTS: usize = 500;
/// Maximum size of the lines of one request in bytes, apart from the last line.
const MAX_BATCH_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of records that are searched for the facts of a chat.
const MAX_HEAD_RECORDS: usize = 200;
/// Maximum number of threads that import chats.
const MAX_THREADS: usize = 4;

pub(super) fn import(
    format: TranscriptFormat,
    args: &TranscriptArgs,
    config: &Config,
) -> Result<Answer, Failure> {
    let path = args
        .path
        .clone()
        .or_else(|| transcript_folder(format))
        .ok_or_else(|| Failure::usage("cannot find the home folder").hint("name the folder to import"))?;
    let sources = Source::find(format, &path).map_err(|error| not_found(&path, &error))?;
    let paths: HashSet<&Path> = sources.iter().map(Source::path).collect();
    let total = paths.iter().filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum();
    let import = Import {
        format,
        backend: Backend::open(config)?,
        repo: args.repo.clone(),
        agent: args.agent.clone().or_else(|| config.agent.as_ref().map(ToString::to_string)),
        venture: config.chosen_venture(args.venture.as_deref()),
        repositories: FolderRepositories::default(),
        progress: Progress::new("importing", Amount::BytesOf(total)),
    };
    let totals = import.run(&sources)?;
    drop(import);
    if totals.sessions > 0 {
        start_if_absent(config);
    }
    totals.answer(args.path.as_deref())
}

fn not_found(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot import {}: {error}", path.display());
    let failure = match error.kind() {
        ErrorKind::NotFound => Failure::new(Exit::NotFound, "not_found", message),
        ErrorKind::InvalidData => Failure::new(Exit::Validation, "not_a_transcript", message),
        _ => Failure::new(Exit::Failure, "read_failed", message),
    };
    failure.hint("name a file of this client, or a folder that contains its chats; see baton import --help")
}

struct Import {
    format: TranscriptFormat,
    backend: Backend,
    repo: Option<String>,
    agent: Option<String>,
    venture: Option<String>,
    repositories: FolderRepositories,
    progress: Progress,
}

/// Result of an import.
#[derive(Default, Serialize)]
struct Totals {
    files: u64,
    unchanged: u64,
    foreign: Vec<String>,
    failed: Vec<FailedFile>,
    sessions: u64,
    turns: u64,
    observations: u64,
    #[serde(flatten)]
    invalid: InvalidLines,
}

/// A file that cannot be read.
#[derive(Serialize)]
struct FailedFile {
    file: String,
    reason: String,
}

impl Import {
    /// Imports all chats on a few threads. Stops at the first failure of the store.
    fn run(&self, sources: &[Source]) -> Result<Totals, Failure> {
        let (next, result) = (AtomicUsize::new(0), Mutex::new(Ok::<_, Failure>(Totals::default())));
        let work = || {
            while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = self.source(source);
                let Ok(mut result) = result.lock() else { return };
                match outcome {
                    Ok(outcome) => {
                        if let Ok(totals) = result.as_mut() {
                            totals.add(source.label(), outcome);
                        }
                    }
                    Err(failure) => {
                        next.store(sources.len(), Ordering::Relaxed);
                        // The first failure is returned.
                        if result.is_ok() {
                            *result = Err(failure);
                        }
                    }
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(sources.len()) {
                scope.spawn(work);
            }
            work();
        });
        result.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Imports one chat. Fails only if the store fails.
    fn source(&self, source: &Source) -> Result<Outcome, Failure> {
        let mut records = match source.records() {
            Ok(records) => records,
            Err(error) => return Ok(Outcome::Failed(error.to_string())),
        };
        let size = records.size();
        let head = self.head(&mut records).and_then(|parser| records.rewind().map(|()| parser));
        let mut parser = match head {
            Ok(Some(parser)) => parser,
            Ok(None) => {
                return Ok(self.skip(size, if size == 0 { Outcome::Unchanged } else { Outcome::Foreign }));
            }
            Err(error) => return Ok(Outcome::Failed(error.to_string())),
        };
        let Some(chat) = self.chat(source.path(), &parser) else {
            return Ok(self.skip(size, Outcome::Failed("no record has a time".into())));
        };
        let name = source.name();
        let known = self.backend.call::<ImportTranscript>(&self.params(&chat, Vec::new(), None), None)?;
        let before = known.progress.into_iter().find(|known| known.file == name);
        if before.as_ref().is_some_and(|before| before.size == Some(size)) {
            return Ok(self.skip(size, Outcome::Unchanged));
        }
        // A file that shrank was written anew; records that are stored already are recognised.
        let start = before.map(|before| before.position).filter(|position| *position <= size).unwrap_or(0);
        let start = if records.is_append_only() { start } else { 0 };
        parser.restart();
        let mut reading = Reading {
            import: self,
            chat: &chat,
            label: source.label(),
            parser,
            progress: TranscriptProgress { file: name, position: start, size: None },
            reports: Vec::new(),
            bytes: 0,
            stored: Stored::default(),
        };
        match reading.read(records, start) {
            Ok(()) => Ok(Outcome::Imported(reading.stored)),
            Err(failure) if failure.exit == Exit::Validation => Ok(Outcome::Failed(failure.message)),
            Err(failure) => Err(failure),
        }
    }

    fn skip(&self, bytes: u64, outcome: Outcome) -> Outcome {
        self.progress.add(bytes);
        outcome
    }

    /// Reads the first records; `None` if another client wrote them.
    fn head(&self, records: &mut Records) -> std::io::Result<Option<TranscriptParser>> {
        let mut parser = TranscriptParser::new(self.format);
        let mut is_known = false;
        for _ in 0..MAX_HEAD_RECORDS {
            let Some(record) = records.next(0)? else { break };
            let Some(Ok(value)) = record.content else { continue };
            is_known |= parser.line(&value) != Line::Foreign;
            let facts = parser.facts();
            if facts.session_id.is_some() && facts.started_at.is_some() && facts.cwd.is_some() {
                break;
            }
        }
        Ok(is_known.then_some(parser))
    }

    /// Identifies the chat of a transcript; `None` if it has no time.
    fn chat(&self, path: &Path, parser: &TranscriptParser) -> Option<Chat> {
        let mut facts = parser.facts().clone();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let session_id = facts.session_id.clone().or(stem)?;
        if parser.is_subagent()
            && let Some(parent) = discover::parent_of(path, &session_id)
            && let Ok(mut records) = Source::of_file(self.format, parent).records()
            && let Ok(Some(parent)) = self.head(&mut records)
        {
            facts = parent.facts().clone();
        }
        facts.cwd = facts.cwd.or_else(|| discover::project_folder(self.format, path));
        let session_id = facts.session_id.clone().unwrap_or(session_id);
        let repo = self.repo.clone().or_else(|| self.repositories.repo(&facts).map(String::from));
        Some(Chat {
            session_id,
            repo,
            cwd: facts.cwd.unwrap_or_else(|| "/unknown".to_owned()),
            branch: facts.branch,
            started_at: facts.started_at?,
        })
    }

    fn params<'a>(
        &'a self,
        chat: &'a Chat,
        reports: Vec<Value>,
        progress: Option<&'a TranscriptProgress>,
    ) -> Reports<'a> {
        let (agent, venture) = (self.agent.as_deref(), self.venture.as_deref());
        Reports { client: self.format.client(), agent, venture, chat, reports, progress }
    }
}

/// Parameters of [`ImportTranscript`].
#[derive(Serialize)]
struct Reports<'a> {
    client: &'a str,
    agent: Option<&'a str>,
    venture: Option<&'a str>,
    #[serde(flatten)]
    chat: &'a Chat,
    reports: Vec<Value>,
    progress: Option<&'a TranscriptProgress>,
}

/// Identity of a chat.
#[derive(Serialize)]
struct Chat {
    #[serde(rename = "client_session_id")]
    session_id: String,
    repo: Option<String>,
    cwd: String,
    branch: Option<String>,
    started_at: Timestamp,
}

/// Outcome of one file.
enum Outcome {
    Imported(Stored),
    Unchanged,
    Foreign,
    Failed(String),
}

/// Records of one file.
#[derive(Default)]
struct Stored {
    turns: u64,
    observations: u64,
    invalid: InvalidLines,
}

/// A file that is being imported.
struct Reading<'a> {
    import: &'a Import,
    chat: &'a Chat,
    label: String,
    parser: TranscriptParser,
    progress: TranscriptProgress,
    reports: Vec<Value>,
    bytes: u64,
    stored: Stored,
}

impl Reading<'_> {
    /// Reads all records from `start` on and sends their reports. Fails with [`Exit::Validation`] if only this file is
    /// affected: it cannot be read, or the store rejects its reports.
    fn read(&mut self, mut records: Records, start: u64) -> Result<(), Failure> {
        let unreadable =
            |error: std::io::Error| Failure::new(Exit::Validation, "read_failed", error.to_string());
        while let Some(record) = records.next(start).map_err(unreadable)? {
            self.import.progress.add(record.bytes);
            match record.content {
                None => {}
                Some(Ok(value)) => self.record(&value, record.number, record.start, record.bytes)?,
                Some(Err(reason)) => self.stored.invalid.add(&self.label, record.number, reason),
            }
        }
        self.parser.finish();
        self.collect(0);
        self.progress.size = Some(records.position());
        self.send()
    }

    fn record(&mut self, value: &Value, number: u64, start: u64, bytes: u64) -> Result<(), Failure> {
        match self.parser.line(value) {
            Line::StartsTurn => self.progress.position = start,
            Line::Known
                if self.parser.is_subagent() && self.parser.is_settled() && self.reports.is_empty() =>
            {
                self.progress.position = start;
            }
            Line::Known => {}
            Line::Foreign => {
                let reason = format!("not a record of {}", self.import.format.client());
                self.stored.invalid.add(&self.label, number, reason);
            }
        }
        self.collect(bytes);
        if self.reports.len() >= MAX_BATCH_REPORTS || self.bytes >= MAX_BATCH_BYTES {
            self.send()?;
        }
        Ok(())
    }

    /// Adds the reports of the parser to the batch, with the root of their checkout.
    fn collect(&mut self, bytes: u64) {
        self.bytes += bytes;
        for mut report in self.parser.take_reports() {
            let folder = report["cwd"].as_str().unwrap_or(&self.chat.cwd);
            let root = self.import.repositories.of(folder).root.or_else(|| {
                // Without the folder, the first folder of the chat counts as the root of those below it.
                Path::new(folder).starts_with(&self.chat.cwd).then(|| self.chat.cwd.clone())
            });
            if let (Some(fields), Some(root)) = (report.as_object_mut(), root) {
                fields.insert("root".into(), root.into());
            }
            self.reports.push(report);
        }
    }

    fn send(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let reports = std::mem::take(&mut self.reports);
        let params = self.import.params(self.chat, reports, Some(&self.progress));
        let output = self.import.backend.call::<ImportTranscript>(&params, None)?;
        self.stored.turns += output.turns;
        self.stored.observations += output.observations;
        Ok(())
    }
}

impl Totals {
    fn add(&mut self, label: String, outcome: Outcome) {
        self.files += 1;
        match outcome {
            Outcome::Imported(stored) => {
                self.sessions += u64::from(stored.turns + stored.observations > 0);
                self.turns += stored.turns;
                self.observations += stored.observations;
                self.invalid.merge(stored.invalid);
            }
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Foreign => self.foreign.push(label),
            Outcome::Failed(reason) => self.failed.push(FailedFile { file: label, reason }),
        }
    }

    /// Describes the result. A single file that was named and is not a transcript is an error.
    fn answer(self, named: Option<&Path>) -> Result<Answer, Failure> {
        let only = |label: &str| named.is_some_and(|path| path.display().to_string() == label);
        if let Some(label) = self.foreign.iter().find(|label| only(label)) {
            let message = format!("cannot import {label}: it is not a transcript of this client");
            return Err(Failure::new(Exit::Validation, "not_a_transcript", message)
                .hint("use the import verb of the client that wrote the file; see baton import --help"));
        }
        if let Some(FailedFile { file, reason }) = self.failed.iter().find(|failed| only(&failed.file)) {
            let message = format!("cannot import {file}: {reason}");
            return Err(
                Failure::new(Exit::Failure, "read_failed", message).hint("check that the file is readable")
            );
        }
        for label in &self.foreign {
            warn(&format!("skipped {label}: it is not a transcript of this client"));
        }
        for FailedFile { file, reason } in &self.failed {
            warn(&format!("skipped {file}: {reason}"));
        }
        let text = format!(
            "imported {} and {} of {}; {} of {} files were unchanged{}",
            counted(self.turns, "turn"),
            counted(self.observations, "observation"),
            counted(self.sessions, "chat"),
            self.unchanged,
            self.files,
            self.invalid.describe()
        );
        let exit = if self.failed.is_empty() { Exit::Ok } else { Exit::Failure };
        Ok(Answer { exit, ..Answer::new(&self, text)? })
    }
}
