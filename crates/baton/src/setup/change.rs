//! Changes that setup makes to the files of an agent, and how removal takes them back.

use std::path::PathBuf;

use baton_core::shorten;
use serde::Serialize;
use similar::TextDiff;

use super::agent::Agent;
use super::agent_file::{AgentFile, Content};
use super::environment::SetupEnvironment;
use super::record::{FileRecord, Records};
use super::user_file::{Replacement, read, replace_all, resolve};
use crate::exit::Exit;
use crate::output::Failure;

/// Maximum length of a line of a shown difference in characters.
const MAX_LINE_CHARS: usize = 200;

/// Kind of a change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Action {
    Create,
    Update,
    Unchanged,
    Restore,
    Delete,
}

/// Change of one file.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) action: Action,
    /// Difference in the unified format.
    pub(crate) diff: String,
    /// Replacement of the file; `None` to leave it as it is.
    #[serde(skip)]
    replacement: Option<Replacement>,
    /// Record to write with the change; `None` to delete the record.
    #[serde(skip)]
    record: Option<FileRecord>,
    /// Folders to remove if they are empty.
    #[serde(skip)]
    folders: Vec<PathBuf>,
}

impl Change {
    /// Creates a change of the record only. The file stays as it is.
    const fn of_record(path: PathBuf, record: Option<FileRecord>, folders: Vec<PathBuf>) -> Self {
        Self { path, action: Action::Unchanged, diff: String::new(), replacement: None, record, folders }
    }
}

/// Returns the changes that set up an agent.
pub(crate) fn changes_to_add(
    agent: &Agent,
    environment: &SetupEnvironment,
    records: &Records,
) -> Result<Vec<Change>, Failure> {
    (agent.files)(environment).iter().map(|file| change_to_add(agent, file, records)).collect()
}

fn change_to_add(agent: &Agent, file: &AgentFile, records: &Records) -> Result<Change, Failure> {
    let path = resolve(&file.path)?;
    let current = read(&path)?;
    let text = current.as_ref().map(|(text, _)| text.as_str());
    let record = records.read(&path);
    require_own_script(file, text, record.as_ref())?;
    let new = file.content.add_to(text).map_err(|problem| uneditable(&path, &problem))?;
    let without = |text: &str| file.content.remove_from(text).map_err(|problem| uneditable(&path, &problem));
    let original = match (text, &record) {
        (Some(text), Some(record)) if record.is_unchanged(text) => record.original.clone(),
        // The user changed the file since setup, or Baton's entries were written by hand or by a colleague.
        (Some(text), Some(_)) => without(text)?,
        (Some(text), None) if file.content.is_in(text) => without(text)?,
        (text, _) => text.map(str::to_owned),
    };
    let mut record = match record {
        Some(record) if text == Some(new.as_str()) => record,
        Some(record) => record.rewritten(original.as_deref(), &new),
        None => FileRecord::new(&path, original.as_deref(), &new),
    };
    if !record.agents.iter().any(|other| other == agent.id) {
        record.agents.push(agent.id.to_owned());
    }
    if text == Some(new.as_str()) {
        return Ok(Change::of_record(path, Some(record), Vec::new()));
    }
    let action = if text.is_none() { Action::Create } else { Action::Update };
    let mode = current.as_ref().map_or(file.content.new_mode(), |(_, mode)| *mode);
    Ok(Change {
        diff: diff(text.unwrap_or_default(), &new),
        action,
        replacement: Some(Replacement { path: path.clone(), new: Some((new, mode)), old: current }),
        record: Some(record),
        folders: Vec::new(),
        path,
    })
}

/// Refuses to replace a script of the user: two programs cannot share it without being edited by hand.
fn require_own_script(
    file: &AgentFile,
    text: Option<&str>,
    record: Option<&FileRecord>,
) -> Result<(), Failure> {
    let (Content::Script(script), Some(text), None) = (&file.content, text, record) else { return Ok(()) };
    if text == script || text.contains("baton hook") {
        return Ok(());
    }
    let line = script.lines().last().unwrap_or_default().trim_start_matches("exec ");
    Err(uneditable(&file.path, "the script belongs to another program")
        .hint(format!("run Baton from it, with the same standard input: {line}")))
}

/// Returns the changes that remove an agent. `removed` are all agents that the command has removed by then, with this one.
/// Files without anything of Baton are omitted, unless they have a record.
pub(crate) fn changes_to_remove(
    agent: &Agent,
    removed: &[&Agent],
    environment: &SetupEnvironment,
    records: &Records,
) -> Result<Vec<Change>, Failure> {
    let changes =
        (agent.files)(environment).into_iter().map(|file| change_to_remove(removed, &file, records));
    changes.filter_map(Result::transpose).collect()
}

fn change_to_remove(
    removed: &[&Agent],
    file: &AgentFile,
    records: &Records,
) -> Result<Option<Change>, Failure> {
    let path = resolve(&file.path)?;
    let mut record = records.read(&path);
    if let Some(record) = &mut record {
        record.agents.retain(|agent| removed.iter().all(|removed| removed.id != agent));
    }
    let Some((text, mode)) = read(&path)? else {
        return Ok(record.map(|record| Change::of_record(path, None, record.folders)));
    };
    let new = match &record {
        Some(shared) if !shared.agents.is_empty() => {
            return Ok(Some(Change::of_record(path, record, Vec::new())));
        }
        Some(record) if record.is_unchanged(&text) => record.original.clone(),
        _ => match &file.content {
            Content::Script(script) if record.is_none() && text != *script => return Ok(None),
            Content::Whole(_) if record.is_none() && !text.contains("baton") => return Ok(None),
            content => content.remove_from(&text).map_err(|problem| uneditable(&path, &problem))?,
        },
    };
    if new.as_ref() == Some(&text) {
        return Ok(record.map(|record| Change::of_record(path, None, record.folders)));
    }
    let action = if new.is_some() { Action::Restore } else { Action::Delete };
    Ok(Some(Change {
        diff: diff(&text, new.as_deref().unwrap_or_default()),
        action,
        replacement: Some(Replacement {
            path: path.clone(),
            new: new.map(|new| (new, mode)),
            old: Some((text, mode)),
        }),
        record: None,
        folders: record.map(|record| record.folders).unwrap_or_default(),
        path,
    }))
}

/// Writes the changes of one agent: all of them, or none.
pub(crate) fn apply(mut changes: Vec<Change>, records: &Records) -> Result<(), Failure> {
    // The originals are stored before any file changes.
    let before: Vec<(PathBuf, Option<FileRecord>)> =
        changes.iter().map(|change| (change.path.clone(), records.read(&change.path))).collect();
    let stored = changes
        .iter()
        .filter_map(|change| change.record.as_ref())
        .try_for_each(|record| records.write(record));
    stored.inspect_err(|_| records.restore(&before))?;
    let replacements: Vec<&Replacement> =
        changes.iter().filter_map(|change| change.replacement.as_ref()).collect();
    let created = replace_all(&replacements).inspect_err(|_| records.restore(&before))?;
    for change in &mut changes {
        match &mut change.record {
            Some(record) => {
                let folders = created.iter().filter(|folder| change.path.starts_with(folder));
                record.folders.extend(folders.cloned());
                records.write(record)?;
            }
            None => records.delete(&change.path),
        }
    }
    let folders = changes.into_iter().flat_map(|change| change.folders);
    records.remove_folders(folders.collect());
    Ok(())
}

/// Shows the difference. A file may be one long line.
fn diff(old: &str, new: &str) -> String {
    let text = TextDiff::from_lines(old, new).unified_diff().context_radius(2).to_string();
    text.lines().map(|line| shorten(line, MAX_LINE_CHARS) + "\n").collect()
}

fn uneditable(path: &std::path::Path, problem: &str) -> Failure {
    Failure::new(Exit::Failure, "setup_failed", format!("cannot change {}: {problem}", path.display()))
        .hint("nothing was changed; correct the file, then run setup again")
}
