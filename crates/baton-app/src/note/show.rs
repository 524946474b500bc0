//! `note.show`: one note.

use baton_core::NoteId;

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
    const AFTER_OUTBOX: bool = true;
    type Output = ShowNoteOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        Ok(ShowNoteOutput { note: context.note(tx, params.note_id)?.into() })
    }
}
