//! `note.delete`: deletes a note.

use baton_core::NoteId;

use crate::prelude::*;

/// The note to delete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeleteNote {
    /// Note id (`note_…`).
    pub note_id: NoteId,
}

/// The deleted note.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeleteNoteOutput {
    /// Note id (`note_…`).
    pub note_id: NoteId,
}

impl Operation<OnStore> for DeleteNote {
    const NAME: &'static str = "note.delete";
    const SUMMARY: &'static str = "Delete a note that is wrong. To correct one, use note_update.";
    const EFFECT: Effect = Effect::Delete;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = DeleteNoteOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let note = context.note(tx, params.note_id)?;
        tx.delete_note(note.id)?;
        Ok(DeleteNoteOutput { note_id: note.id })
    }
}
