//! `note.show`: one note.

use baton_core::{Note, NoteId};

use super::spooled::spooled_notes;
use super::view::NoteView;
use crate::prelude::*;

/// The note to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowNote {
    /// Note id (`note_…`).
    pub note_id: NoteId,
}

/// A note.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowNoteOutput {
    /// The note as it is stored.
    pub note: NoteView,
}

impl Operation<OnStore> for ShowNote {
    const NAME: &'static str = "note.show";
    const SUMMARY: &'static str = "Show one note.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = ShowNoteOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let note = match spooled_note(context, params.note_id) {
            Some(note) => note,
            None => context.note(tx, params.note_id)?,
        };
        Ok(ShowNoteOutput { note: note.into() })
    }

    fn without_store(context: &Context<'_>, params: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        Some(Ok(ShowNoteOutput { note: spooled_note(context, params.note_id)?.into() }))
    }
}

fn spooled_note(context: &Context<'_>, id: NoteId) -> Option<Note> {
    spooled_notes(context).into_iter().find(|note| note.id == id)
}
