//! Wire representation of notes.

use baton_core::{Note, NoteId, NoteKind, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A note. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoteView {
    /// Note id (`note_…`).
    pub id: NoteId,
    /// Session in which the note was recorded.
    pub session_id: Option<SessionId>,
    /// Venture, for example `acme`.
    pub venture: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Agent that recorded the note.
    pub agent: Option<String>,
    /// Kind: `decision`, `rejected`, `gotcha`, `todo` or `fact`.
    pub kind: NoteKind,
    /// What the note says, for example `Dates are stored in UTC.`
    pub text: String,
    /// File that the note is about.
    pub file: Option<String>,
    /// Time when the note was recorded.
    pub created_at: Timestamp,
    /// Time of the last correction.
    pub updated_at: Option<Timestamp>,
}

impl From<Note> for NoteView {
    fn from(note: Note) -> Self {
        Self {
            id: note.id,
            session_id: note.session_id,
            venture: note.venture.into(),
            repo: note.repo.into(),
            agent: note.agent.map(Into::into),
            kind: note.kind,
            text: note.text,
            file: note.file,
            created_at: note.created_at,
            updated_at: note.updated_at,
        }
    }
}
