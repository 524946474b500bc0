//! Rows of notes.

use baton_core::recall::ItemKind;
use baton_core::{Note, NoteId, NoteKind, Repo, SessionId, Venture};

use super::mark::and_visible;
use crate::error::StoreError;
use crate::page::Page;
use crate::record::{Record, record, select};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Filter for notes. Absent conditions match every note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteFilter {
    /// Ventures that the caller may see; absent if the caller may see all.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the note.
    pub repo: Option<Repo>,
    pub session_id: Option<SessionId>,
    pub kind: Option<NoteKind>,
    /// File: a whole path or the last components of one.
    pub file: Option<String>,
}

record! {
    "notes", Note {
        id, session_id, venture, repo, agent, kind, text, file, created_at, updated_at, actor_key_id,
    }
}

impl dyn Tx + '_ {
    /// Returns the highest id of all notes.
    pub fn newest_note_id(&mut self) -> Result<Option<NoteId>, StoreError> {
        self.query_one("SELECT id FROM notes ORDER BY id DESC LIMIT 1", &[])
    }

    /// Finds a note.
    pub fn note(&mut self, id: NoteId) -> Result<Option<Note>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Adds a note.
    pub fn insert_note(&mut self, note: &Note) -> Result<(), StoreError> {
        self.insert("notes", note.values()?, "")?;
        self.enqueue_for_index(ItemKind::Note, &note.id.to_string())
    }

    /// Updates kind, text, file and the time of the correction.
    pub fn update_note(&mut self, note: &Note) -> Result<(), StoreError> {
        self.update(note, "kind, text, file, updated_at", "id")?;
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
        let mut query = QueryBuilder::new(&select::<Note>("WHERE "));
        query.with("id < $?", page.below(NoteId::PREFIX));
        query.in_ventures("venture", filter.ventures.as_deref());
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        query.with_some(" AND session_id = $?", filter.session_id);
        query.with_some(" AND kind = $?", filter.kind);
        if let Some(file) = &filter.file {
            query.names_file("file", file);
        }
        query.text(self.pick(and_visible!("notes.id"), and_visible!("notes.id COLLATE \"C\"")));
        query.with(" ORDER BY id DESC LIMIT $?", page.limit);
        self.query(query.sql(), query.params())
    }
}
