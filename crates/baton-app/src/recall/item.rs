//! Items that search finds: how each kind is read from the store.
//!
//! A new kind needs a variant of `ItemKind`, an arm in [`Loader::load`] and a call of `enqueue_for_index` where it is
//! stored.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use baton_core::checkpoint::CheckpointStatus;
use baton_core::observation::{Observation, TurnId};
use baton_core::recall::{Document, DocumentText, ItemKind, author_of};
use baton_core::task::TaskRecord;
use baton_core::{
    CheckpointId, HandoffId, NoteId, ObservationId, Repo, Session, SessionId, Timestamp, Venture, one_line,
};
use baton_store::{StoreError, Tx};
use serde_json::Value;

use crate::store_errors::corrupt_handoff;

/// Maximum number of tool uses of a turn whose files are counted as files of the turn.
const MAX_TURN_OBSERVATIONS: u32 = 300;
/// Maximum length of a title in characters.
const TITLE_CHARS: usize = 160;

/// An item with everything that search, timeline and get show.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub kind: ItemKind,
    /// Id of the item, for example `obs_01J…` or `note_01J…`.
    pub id: String,
    /// Id in the system that the item comes from.
    pub external_id: Option<String>,
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Session that the item belongs to.
    pub session_id: Option<SessionId>,
    /// Branch of the session.
    pub branch: Option<String>,
    /// Agent that did the work.
    pub agent: Option<String>,
    /// Turn that the item belongs to.
    pub turn: Option<TurnId>,
    /// True for a part of a conversation.
    pub is_conversational: bool,
    /// True if the work changed files.
    pub changes_files: bool,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Title, on one line.
    pub title: String,
    /// Full text.
    pub text: String,
}

impl Item {
    /// Makes an item that belongs to no repository, session or turn and has no text.
    fn new(kind: ItemKind, id: impl ToString, venture: Venture, created_at: Timestamp) -> Self {
        Self {
            kind,
            id: id.to_string(),
            external_id: None,
            venture,
            repo: None,
            session_id: None,
            branch: None,
            agent: None,
            turn: None,
            is_conversational: false,
            changes_files: false,
            files: Vec::new(),
            created_at,
            title: String::new(),
            text: String::new(),
        }
    }

    /// Makes an item of a session, without text.
    fn of_session(kind: ItemKind, id: impl ToString, session: &Session, created_at: Timestamp) -> Self {
        Self {
            repo: Some(session.tuple.repo.clone()),
            session_id: Some(session.id),
            branch: session.facts.branch.clone(),
            agent: Some(session.tuple.agent.to_string()),
            ..Self::new(kind, id, session.tuple.venture.clone(), created_at)
        }
    }

    /// Returns the document that is indexed.
    pub(super) fn document(&self, is_pinned: bool) -> Document {
        // The title of a turn is the beginning of its text.
        let title = if self.kind == ItemKind::Turn { "" } else { self.title.as_str() };
        let author = if self.is_conversational && self.kind == ItemKind::Observation {
            author_of(&self.title).or_else(|| author_of(&self.text)).map(str::to_owned)
        } else {
            None
        };
        Document {
            kind: self.kind,
            item: self.id.clone(),
            external_id: self.external_id.clone(),
            venture: self.venture.clone(),
            repo: self.repo.clone(),
            session_id: self.session_id,
            branch: self.branch.clone(),
            agent: self.agent.clone(),
            author,
            turn: self.turn.map(|turn| turn.to_string()),
            is_conversational: self.is_conversational,
            changes_files: self.changes_files,
            is_pinned,
            files: self.files.clone(),
            created_at: self.created_at,
            text: DocumentText::of(title, &[&self.text], &self.files),
        }
    }
}

/// Reads items and remembers sessions and turns that several of them belong to.
#[derive(Default)]
pub(crate) struct Loader {
    sessions: HashMap<SessionId, Option<Session>>,
    turns: HashMap<SessionId, Vec<(TurnId, Timestamp)>>,
    observations: HashMap<ObservationId, Observation>,
}

impl Loader {
    /// Reads an item. Returns `None` if it does not exist or is not searchable.
    pub(crate) fn load(
        &mut self,
        tx: &mut dyn Tx,
        kind: ItemKind,
        id: &str,
    ) -> Result<Option<Item>, StoreError> {
        match kind {
            ItemKind::Turn => self.turn(tx, id),
            ItemKind::Observation => {
                let Ok(id) = id.parse::<ObservationId>() else { return Ok(None) };
                let Some(found) = tx.observation(id)? else { return Ok(None) };
                self.observation(tx, found).map(Some)
            }
            ItemKind::Handoff => self.handoff(tx, id),
            ItemKind::Summary => self.summary(tx, id),
            ItemKind::Checkpoint => self.checkpoint(tx, id),
            ItemKind::Task => task(tx, id),
            ItemKind::Note => self.note(tx, id),
        }
    }

    /// Like [`load`](Self::load), but leaves out a damaged item and logs it, so that the other items can be used.
    pub(crate) fn load_intact(
        &mut self,
        tx: &mut dyn Tx,
        kind: ItemKind,
        id: &str,
    ) -> Result<Option<Item>, StoreError> {
        match self.load(tx, kind, id) {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(item = id, %error, "a damaged item is left out");
                Ok(None)
            }
            loaded => loaded,
        }
    }

    /// Reads the observations of documents at once, for [`load_indexed`](Self::load_indexed).
    pub(crate) fn read_observations<'a>(
        &mut self,
        tx: &mut dyn Tx,
        documents: impl Iterator<Item = &'a Document>,
    ) -> Result<(), StoreError> {
        let documents = documents.filter(|document| document.kind == ItemKind::Observation);
        let ids: Vec<ObservationId> = documents.filter_map(|document| document.item.parse().ok()).collect();
        let found = tx.observations_with_ids(&ids)?;
        self.observations.extend(found.into_iter().map(|observation| (observation.id, observation)));
        Ok(())
    }

    /// Reads the item of a document, unless it is damaged. Data that the index contains is not read again.
    pub(crate) fn load_indexed(
        &mut self,
        tx: &mut dyn Tx,
        document: &Document,
    ) -> Result<Option<Item>, StoreError> {
        match (document.kind, document.item.parse()) {
            (ItemKind::Observation, Ok(id)) => {
                let turn = document.turn.as_deref().and_then(|turn| turn.parse().ok());
                let (branch, agent) = (document.branch.clone(), document.agent.clone());
                let found = match self.observations.remove(&id) {
                    Some(found) => Some(found),
                    None => tx.observation(id)?,
                };
                Ok(found.map(|found| observation_item(found, turn, branch, agent)))
            }
            (kind, _) => self.load_intact(tx, kind, &document.item),
        }
    }

    fn session(&mut self, tx: &mut dyn Tx, id: SessionId) -> Result<Option<&Session>, StoreError> {
        let found = match self.sessions.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(tx.session(id)?),
        };
        Ok(found.as_ref())
    }

    /// Returns the turn of a session during which something happened.
    pub(super) fn turn_at(
        &mut self,
        tx: &mut dyn Tx,
        session: SessionId,
        at: Timestamp,
    ) -> Result<Option<TurnId>, StoreError> {
        let starts = match self.turns.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(tx.turn_starts(session)?),
        };
        Ok(starts.iter().rev().find(|(_, start)| *start <= at).map(|(turn, _)| *turn))
    }

    /// Makes the item of an observation.
    pub(super) fn observation(&mut self, tx: &mut dyn Tx, found: Observation) -> Result<Item, StoreError> {
        let turn = self.turn_at(tx, found.session_id, found.captured_at)?;
        let session = self.session(tx, found.session_id)?;
        let branch = session.and_then(|session| session.facts.branch.clone());
        // Imported records without an agent belong to a session of the import.
        let agent =
            session.map(|session| session.tuple.agent.to_string()).filter(|agent| agent != IMPORT_TOOL);
        Ok(observation_item(found, turn, branch, agent))
    }

    fn turn(&mut self, tx: &mut dyn Tx, id: &str) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<TurnId>() else { return Ok(None) };
        let Some(turn) = tx.turn(id)? else { return Ok(None) };
        let until = tx.next_turn(&turn)?.map(|next| next.started_at);
        let observations =
            tx.observations_between(turn.session_id, turn.started_at, until, MAX_TURN_OBSERVATIONS)?;
        let mut files: Vec<String> = Vec::new();
        for file in observations.into_iter().flat_map(|observation| observation.files) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let Some(session) = self.session(tx, turn.session_id)? else { return Ok(None) };
        let closing = turn.closing.unwrap_or_default();
        let title = if turn.prompt.is_empty() { &closing } else { &turn.prompt };
        Ok(Some(Item {
            turn: Some(id),
            is_conversational: true,
            files,
            title: one_line(title, TITLE_CHARS),
            text: [turn.prompt.as_str(), &closing].join("\n").trim().to_owned(),
            ..Item::of_session(ItemKind::Turn, id, session, turn.started_at)
        }))
    }

    fn handoff(&mut self, tx: &mut dyn Tx, id: &str) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<HandoffId>() else { return Ok(None) };
        let found = tx.handoff(id)?.filter(|handoff| handoff.withdrawn_at.is_none());
        let Some(handoff) = found else { return Ok(None) };
        let turn = self.turn_at(tx, handoff.session_id, handoff.created_at)?;
        let mut text = vec![handoff.summary.clone()];
        let payload = handoff.payload().map_err(|error| corrupt_handoff(&handoff, &error))?;
        payload.values().for_each(|value| strings(value, &mut text));
        text.dedup();
        Ok(Some(Item {
            repo: Some(handoff.repo),
            session_id: Some(handoff.session_id),
            branch: handoff.branch,
            agent: Some(handoff.from_agent.to_string()),
            turn,
            title: one_line(&handoff.summary, TITLE_CHARS),
            text: text.join("\n"),
            ..Item::new(ItemKind::Handoff, id, handoff.venture, handoff.created_at)
        }))
    }

    fn note(&mut self, tx: &mut dyn Tx, id: &str) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<NoteId>() else { return Ok(None) };
        let Some(note) = tx.note(id)? else { return Ok(None) };
        let (mut turn, mut branch) = (None, None);
        if let Some(session) = note.session_id {
            turn = self.turn_at(tx, session, note.created_at)?;
            branch = self.session(tx, session)?.and_then(|session| session.facts.branch.clone());
        }
        Ok(Some(Item {
            title: one_line(&note.line(), TITLE_CHARS),
            repo: Some(note.repo),
            session_id: note.session_id,
            branch,
            agent: note.agent.map(Into::into),
            turn,
            files: note.file.into_iter().collect(),
            text: note.text,
            ..Item::new(ItemKind::Note, id, note.venture, note.created_at)
        }))
    }

    fn summary(&mut self, tx: &mut dyn Tx, id: &str) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<SessionId>() else { return Ok(None) };
        let Some(stored) = tx.summary(id)? else { return Ok(None) };
        let Some(session) = self.session(tx, id)? else { return Ok(None) };
        let summary = stored.summary;
        let mut text = vec![summary.summary.clone()];
        text.extend(summary.key_decisions);
        // The summary of an imported chat is as old as the chat.
        let created_at = stored.made_at.min(session.ended_at.unwrap_or(session.last_heartbeat_at));
        Ok(Some(Item {
            files: summary.key_files,
            title: one_line(&summary.summary, TITLE_CHARS),
            text: text.join("\n"),
            ..Item::of_session(ItemKind::Summary, id, session, created_at)
        }))
    }

    /// Makes an item of a session that has no summary. Such items are not indexed.
    pub(super) fn session_without_summary(
        &mut self,
        tx: &mut dyn Tx,
        id: &str,
    ) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<SessionId>() else { return Ok(None) };
        let last_turn = tx.turns(id, None, 1)?.pop();
        let Some(session) = self.session(tx, id)? else { return Ok(None) };
        let status = session.status.as_str();
        let mut text =
            vec![format!("started {}, last heartbeat {}", session.created_at, session.last_heartbeat_at)];
        text.extend(session.ended_at.map(|ended_at| format!("{status} {ended_at}")));
        if let Some(turn) = last_turn {
            text.push(format!("last turn {} {}:", turn.id, turn.started_at));
            text.push(turn.prompt);
            text.extend(turn.closing);
        }
        text.retain(|line| !line.is_empty());
        Ok(Some(Item {
            title: format!("{status} session without a summary"),
            text: text.join("\n"),
            ..Item::of_session(ItemKind::Summary, id, session, session.created_at)
        }))
    }

    fn checkpoint(&mut self, tx: &mut dyn Tx, id: &str) -> Result<Option<Item>, StoreError> {
        let Ok(id) = id.parse::<CheckpointId>() else { return Ok(None) };
        let found = tx.checkpoint(id)?.filter(|checkpoint| checkpoint.status != CheckpointStatus::Archived);
        let Some(checkpoint) = found else { return Ok(None) };
        let session = match checkpoint.session_id {
            Some(session) => self.session(tx, session)?,
            None => None,
        };
        let name = checkpoint.labels.name.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut text = vec![checkpoint.workflow_id.to_string()];
        text.extend(checkpoint.labels.tags.iter().map(ToString::to_string));
        Ok(Some(Item {
            repo: session.map(|session| session.tuple.repo.clone()),
            session_id: checkpoint.session_id,
            branch: session.and_then(|session| session.facts.branch.clone()),
            agent: checkpoint.agent.map(Into::into),
            title: if name.is_empty() { checkpoint.workflow_id.to_string() } else { name },
            text: text.join(" "),
            ..Item::new(ItemKind::Checkpoint, id, checkpoint.venture, checkpoint.created_at)
        }))
    }
}

/// Tool name of imported observations.
pub(super) const IMPORT_TOOL: &str = "import";

/// Makes the item of an observation.
fn observation_item(
    found: Observation,
    turn: Option<TurnId>,
    branch: Option<String>,
    agent: Option<String>,
) -> Item {
    let compressed = found.compressed;
    let mut text = compressed.summary;
    if let Some(detail) = compressed.detail.filter(|detail| !detail.is_empty()) {
        text.push('\n');
        text.push_str(&detail);
    }
    Item {
        external_id: found.tool_use_id,
        repo: Some(found.repo),
        session_id: Some(found.session_id),
        branch,
        agent,
        turn,
        // An imported record without files is a message or a note, not a tool use.
        is_conversational: found.tool_name == IMPORT_TOOL && found.files.is_empty(),
        changes_files: !compressed.files_touched.is_empty(),
        files: found.files,
        title: one_line(&compressed.title, TITLE_CHARS),
        text,
        ..Item::new(ItemKind::Observation, found.id, found.venture, found.captured_at)
    }
}

fn task(tx: &mut dyn Tx, item: &str) -> Result<Option<Item>, StoreError> {
    let Some((venture, host, checkout, id)) = TaskRecord::parse_item_id(item) else { return Ok(None) };
    let Some(task) = tx.task(&venture, host, checkout, &id)? else { return Ok(None) };
    Ok(Some(Item {
        external_id: Some(task.task_id.to_string()),
        repo: task.repo,
        title: one_line(&format!("{} {}", task.task_id, task.title), TITLE_CHARS),
        text: format!("{} {} {}", task.task_id, task.title, task.status),
        ..Item::new(ItemKind::Task, item, task.venture, task.updated_at)
    }))
}

/// Adds the texts of a JSON value.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            if !found.contains(text) {
                found.push(text.clone());
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
