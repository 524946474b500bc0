//! `note.update`: corrects a note.

use baton_core::{NoteId, NoteKind, note_file, note_text};
use baton_observation::make_private;

use super::view::NoteView;

use crate::prelude::*;

/// The corrected fields. Omitted fields keep their value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "UpdateNoteParams")]
pub struct UpdateNote {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Note id (`note_…`).
    pub note_id: NoteId,
    /// New text of the note, at most 2,000 characters.
    #[schemars(length(min = 1, max = 2000))]
    pub text: Option<String>,
    /// New kind: `decision`, `rejected`, `gotcha`, `todo` or `fact`.
    pub kind: Option<NoteKind>,
    /// New file that the note is about, for example `src/auth.rs`.
    pub file: Option<String>,
}

/// The corrected note.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateNoteOutput {
    /// The note as it is stored.
    pub note: NoteView,
}

impl Operation<OnStore> for UpdateNote {
    const NAME: &'static str = "note.update";
    const SUMMARY: &'static str = "Correct the text, kind or file of a note.";
    const EFFECT: Effect = Effect::Write;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    const REQUEST: RequestFormat =
        RequestFormat { privacy: Privacy::Redact(make_private), ..RequestFormat::STRICT };
    type Input = Self;
    type Output = UpdateNoteOutput;
    erased!();

    fn prepare(_: &Context<'_>, mut params: Self) -> Result<Self::Input, Fault> {
        let text = params.text.as_deref().map(note_text).transpose();
        let file = params.file.as_deref().map(note_file).transpose();
        (params.text, params.file) = Fault::both(text, file)?;
        Ok(params)
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let mut note = context.note(tx, params.note_id)?;
        let before = note.clone();
        note.text = params.text.clone().unwrap_or(note.text);
        note.kind = params.kind.unwrap_or(note.kind);
        note.file = params.file.clone().or(note.file);
        if note != before {
            note.updated_at = Some(context.now);
            tx.update_note(&note)?;
        }
        Ok(UpdateNoteOutput { note: note.into() })
    }
}
