//! History of a file (sessions, decisions) and of a command (earlier runs).

use std::collections::{HashMap, HashSet};

use baton_core::observation::Observation;
use baton_core::recall::{ItemKind, ends_with_path, terms};
use baton_core::{Fault, ObservationId, Repo, SessionId, Sha256Hash, Timestamp, Venture, one_line};
use baton_store::{FileOf, NoteFilter, ObservationFilter, Page, RecallFilter, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::{Find, rank_documents};
use super::item::{Item, Loader};
use crate::note::NoteView;

/// Maximum number of tool uses of a file that are read; the newest are read.
const MAX_USES: u32 = 1_000;
/// Maximum number of turns that are listed for a session.
const MAX_TURNS: usize = 5;
/// Maximum number of notes about a file.
const MAX_NOTES: u32 = 20;
/// Maximum number of files of an item whose content is compared.
const MAX_COMPARED_FILES: usize = 20;
/// Maximum number of matching tool uses among which runs of a command are looked for.
const MAX_MATCHES: usize = 300;
/// Maximum length of a turn's title in characters.
const TITLE_CHARS: usize = 100;
/// Name of the tool that runs commands.
const SHELL_TOOL: &str = "Bash";

/// Number of latest observations of a session that are searched for changed files.
const OBSERVATIONS_OF_SESSION: u32 = 30;

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) struct HistoryScope {
    pub(crate) ventures: Vec<Venture>,
    pub(crate) repo: Option<Repo>,
    /// Maximum number of sessions or runs.
    pub(crate) limit: usize,
}

/// What is recorded about a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileHistory {
    /// The path as given.
    pub path: String,
    /// Number of sessions that used the file.
    pub session_count: u64,
    /// Sessions that used the file, latest first.
    pub sessions: Vec<FileSession>,
    /// Notes about the file, newest first: decisions, rejected approaches, gotchas.
    pub notes: Vec<NoteView>,
    /// True if the content differs from the content that an agent saw last; null if that is unknown.
    pub changed_since: Option<bool>,
}

/// Use of a file by a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileSession {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Agent, for example `claude-1`, or null.
    pub agent: Option<String>,
    /// Git branch, for example `feature/login`, or null.
    pub branch: Option<String>,
    /// Path that the file had in this session; it may have been renamed later.
    pub path: String,
    /// Time of the last use.
    pub last_used_at: Timestamp,
    /// Number of tool uses that changed the file.
    pub changes: u64,
    /// Number of tool uses that read the file.
    pub reads: u64,
    /// Turns in which the file was used, latest first, at most five.
    pub turns: Vec<FileTurn>,
}

/// A turn in which a file was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileTurn {
    /// Turn id. Pass it to `get`.
    pub id: String,
    /// Beginning of the request.
    pub title: String,
}

/// Earlier runs of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandHistory {
    /// The command as given.
    pub command: String,
    /// Runs whose command contains all words of the given one, latest first.
    pub runs: Vec<CommandRun>,
}

/// One run of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Id of the observation. Pass it to `get`.
    pub id: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Agent, for example `claude-1`, or null.
    pub agent: Option<String>,
    /// Time of the run.
    pub created_at: Timestamp,
    /// Title: the command and its result.
    pub title: String,
    /// Result in a few sentences.
    pub summary: String,
}

/// Returns what is recorded about a file. `current` is the hash of its present content.
pub(crate) fn file_history(
    tx: &mut dyn Tx,
    path: &str,
    scope: &HistoryScope,
    current: Option<Sha256Hash>,
    now: Timestamp,
) -> Result<FileHistory, Fault> {
    let path = path.trim_start_matches("./");
    let filter = ObservationFilter {
        ventures: Some(scope.ventures.clone()),
        repo: scope.repo.clone(),
        file: Some(path.to_owned()),
        ..ObservationFilter::default()
    };
    let uses = tx.observations(&filter, Page::first(MAX_USES))?;
    let mut sessions = file_sessions(tx, path, &uses, scope.limit)?;
    let changed_since = match (uses.first(), sessions.first(), current) {
        (Some(used), Some(session), Some(current)) => {
            let file = FileOf { venture: &used.venture, repo: &used.repo, path: &session.path };
            tx.file_version(file, now)?.map(|seen| seen != current)
        }
        _ => None,
    };
    let filter = NoteFilter {
        ventures: Some(scope.ventures.clone()),
        repo: scope.repo.clone(),
        file: Some(path.to_owned()),
        ..NoteFilter::default()
    };
    let notes = tx.notes(&filter, Page::first(MAX_NOTES))?;
    let session_count = sessions.len() as u64;
    sessions.truncate(scope.limit);
    Ok(FileHistory {
        path: path.to_owned(),
        session_count,
        sessions,
        notes: notes.into_iter().map(Into::into).collect(),
        changed_since,
    })
}

/// Returns the sessions that used a file, latest first. The first `with_turns` sessions have their turns. `uses` are
/// newest first.
fn file_sessions(
    tx: &mut dyn Tx,
    path: &str,
    uses: &[Observation],
    with_turns: usize,
) -> Result<Vec<FileSession>, Fault> {
    let mut sessions: Vec<FileSession> = Vec::new();
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    let mut loader = Loader::default();
    for used in uses {
        let id = used.session_id;
        let place = *places.entry(id).or_insert(sessions.len());
        if place == sessions.len() {
            let session = tx.session(id)?;
            let file = used.files.iter().find(|file| ends_with_path(file, path)).cloned();
            sessions.push(FileSession {
                session_id: id,
                agent: session.as_ref().map(|session| session.tuple.agent.to_string()),
                branch: session.and_then(|session| session.facts.branch),
                path: file.unwrap_or_else(|| path.to_owned()),
                last_used_at: used.captured_at,
                changes: 0,
                reads: 0,
                turns: Vec::new(),
            });
        }
        let session = &mut sessions[place];
        if used.compressed.files_touched.iter().any(|file| ends_with_path(file, path)) {
            session.changes += 1;
        } else {
            session.reads += 1;
        }
        if place < with_turns
            && session.turns.len() < MAX_TURNS
            && let Some(turn) = loader.turn_at(tx, id, used.captured_at)?
            && session.turns.iter().all(|known| known.id != turn.to_string())
            && let Some(turn) = tx.turn(turn)?
        {
            let title = one_line(&turn.prompt, TITLE_CHARS);
            session.turns.push(FileTurn { id: turn.id.to_string(), title });
        }
    }
    Ok(sessions)
}

/// Returns the files of an item whose content changed since the item was recorded, as far as their content is known.
pub(crate) fn files_changed_since(
    tx: &mut dyn Tx,
    item: &Item,
    now: Timestamp,
) -> Result<Vec<String>, Fault> {
    let Some(repo) = &item.repo else { return Ok(Vec::new()) };
    // The work of a turn ends after its request.
    let recorded_at = match item.turn.filter(|_| item.kind == ItemKind::Turn) {
        Some(turn) => tx.turn(turn)?.and_then(|turn| turn.ended_at).unwrap_or(now),
        None => item.created_at,
    };
    let mut changed = Vec::new();
    for path in item.files.iter().take(MAX_COMPARED_FILES) {
        let file = FileOf { venture: &item.venture, repo, path };
        if let Some(recorded) = tx.file_version(file, recorded_at)?
            && tx.file_version(file, now)? != Some(recorded)
        {
            changed.push(path.clone());
        }
    }
    Ok(changed)
}

/// Returns earlier runs of a command, latest first.
pub(crate) fn command_history(
    tx: &mut dyn Tx,
    command: &str,
    scope: &HistoryScope,
    now: Timestamp,
) -> Result<CommandHistory, Fault> {
    let words: HashSet<String> = terms(command).into_iter().collect();
    let asked = Find {
        text: command.to_owned(),
        filter: RecallFilter {
            ventures: scope.ventures.clone(),
            repo: scope.repo.clone(),
            kind: Some(ItemKind::Observation),
            ..RecallFilter::default()
        },
        limit: MAX_MATCHES,
        ..Find::default()
    };
    let (_, _, found) = rank_documents(tx, &asked, now)?;
    let matching = found.iter().map(|found| &found.document).filter(|document| {
        let text: HashSet<&str> = document.text.terms().collect();
        !words.is_empty() && words.iter().all(|word| text.contains(word.as_str()))
    });
    let ids: Vec<ObservationId> = matching.filter_map(|document| document.item.parse().ok()).collect();
    let mut runs = tx.observations_with_ids(&ids)?;
    runs.retain(|run| run.tool_name == SHELL_TOOL);
    runs.sort_by_key(|run| std::cmp::Reverse((run.captured_at, run.id)));
    runs.truncate(scope.limit);
    let mut output = CommandHistory { command: command.to_owned(), runs: Vec::new() };
    for run in runs {
        let session = tx.session(run.session_id)?;
        output.runs.push(CommandRun {
            id: run.id.to_string(),
            repo: run.repo,
            session_id: run.session_id,
            agent: session.map(|session| session.tuple.agent.to_string()),
            created_at: run.captured_at,
            title: run.compressed.title,
            summary: run.compressed.summary,
        });
    }
    Ok(output)
}

/// Returns the files that the latest tool uses of a session changed.
pub(crate) fn files_changed_in_session(
    tx: &mut dyn Tx,
    id: SessionId,
    most: usize,
) -> Result<Vec<String>, Fault> {
    let filter = ObservationFilter { session_id: Some(id), ..ObservationFilter::default() };
    let mut files: Vec<String> = Vec::new();
    for observation in tx.files_of_observations(&filter, Page::first(OBSERVATIONS_OF_SESSION))? {
        for file in observation.files_touched {
            if files.len() < most && !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}
