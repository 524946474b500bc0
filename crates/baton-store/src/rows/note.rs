//! Rows of notes.

use baton_core::recall::ItemKind;
use baton_core::{Agent, Note, NoteId, NoteKind, Repo, SessionId, Venture};

use super::mark::and_visible;
use crate::error::StoreError;
use crate::page::Page;
use crate::sql::{Columns, QueryBuilder, RowReader};
use crate::tx::Tx;

/// Filter for notes. Absent conditions match every note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteFilter {
    /// Ventures that the caller may see; absent if the caller may see all.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the note.
    pub repo: Option<Repo>,
    /// Session of the note.
    pub session_id: Option<SessionId>,
    /// Kind of the note.
    pub kind: Option<NoteKind>,
    /// File: a whole path or the last components of one.
    pub file: Option<String>,
}

const SELECT: &str = "SELECT id, session_id, venture, repo, agent, kind, text, file, created_at, updated_at, \
     actor_key_id FROM notes WHERE ";

fn read(columns: &dyn Columns) -> Result<Note, StoreError> {
    let row = RowReader { table: "notes", columns };
    Ok(Note {
        id: row.parsed(0)?,
        session_id: row.opt_parsed(1)?,
        venture: row.parsed(2)?,
        repo: row.parsed(3)?,
        agent: row.opt_parsed(4)?,
        kind: NoteKind::from_wire(&row.text(5)?).ok_or_else(|| row.wrong(5, "unknown kind"))?,
        text: row.text(6)?,
        file: row.opt_text(7)?,
        created_at: row.time(8)?,
        updated_at: row.opt_time(9)?,
        actor_key_id: row.parsed(10)?,
    })
}

impl dyn Tx + '_ {
    /// Returns the highest id of all notes.
    pub fn newest_note_id(&mut self) -> Result<Option<NoteId>, StoreError> {
        self.query_one("SELECT id FROM notes ORDER BY id DESC LIMIT 1", &[], &mut |columns| {
            RowReader { table: "notes", columns }.parsed(0)
        })
    }

    /// Finds a note.
    pub fn note(&mut self, id: NoteId) -> Result<Option<Note>, StoreError> {
        self.query_one(&format!("{SELECT} id = $1"), &[(&id.to_string()).into()], &mut read)
    }

    /// Adds a note.
    pub fn insert_note(&mut self, note: &Note) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO notes (id, session_id, venture, repo, agent, kind, text, file, created_at, updated_at, \
             actor_key_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &[
                (&note.id.to_string()).into(),
                note.session_id.map(|id| id.to_string()).as_ref().into(),
                note.venture.as_str().into(),
                note.repo.as_str().into(),
                note.agent.as_ref().map(Agent::as_str).into(),
                note.kind.as_str().into(),
                (&note.text).into(),
                note.file.as_ref().into(),
                note.created_at.into(),
                note.updated_at.into(),
                note.actor_key_id.as_str().into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Note, &note.id.to_string())
    }

    /// Updates kind, text, file and the time of the correction.
    pub fn update_note(&mut self, note: &Note) -> Result<(), StoreError> {
        self.run(
            "UPDATE notes SET kind = $1, text = $2, file = $3, updated_at = $4 WHERE id = $5",
            &[
                note.kind.as_str().into(),
                (&note.text).into(),
                note.file.as_ref().into(),
                note.updated_at.into(),
                (&note.id.to_string()).into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Note, &note.id.to_string())
    }

    /// Deletes a note. Returns false if it does not exist.
    pub fn delete_note(&mut self, id: NoteId) -> Result<bool, StoreError> {
        let id = id.to_string();
        let is_deleted = self.execute("DELETE FROM notes WHERE id = $1", &[(&id).into()])? == 1;
        self.delete_documents(ItemKind::Note, &[id])?;
        Ok(is_deleted)
    }

    /// Lists notes that are not rejected or superseded, newest first.
    pub fn notes(&mut self, filter: &NoteFilter, page: Page) -> Result<Vec<Note>, StoreError> {
        let below = page.below(NoteId::PREFIX);
        let session = filter.session_id.map(|id| id.to_string());
        let ending = filter.file.as_ref().map(|file| format!("/{file}"));
        let mut query = QueryBuilder::new(SELECT);
        query.with(" id < $?", &below);
        query.in_ventures("venture", filter.ventures.as_deref());
        query.with_some(" AND repo = $?", filter.repo.as_ref().map(|repo| repo.as_str()));
        query.with_some(" AND session_id = $?", session.as_ref());
        query.with_some(" AND kind = $?", filter.kind.map(|kind| kind.as_str()));
        if let (Some(file), Some(ending)) = (&filter.file, &ending) {
            query
                .with(" AND (file = $?", file)
                .with(" OR substr(file, length(file) - length($?) + 1)", ending)
                .with(" = $?)", ending);
        }
        query.text(self.pick(and_visible!("notes.id"), and_visible!("notes.id COLLATE \"C\"")));
        query.with(" ORDER BY id DESC LIMIT $?", page.limit);
        self.query(query.sql(), query.params(), &mut read)
    }
}
