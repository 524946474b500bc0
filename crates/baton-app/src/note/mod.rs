//! Operations on notes, one file per verb.

mod create;
mod delete;
mod list;
mod show;
mod spooled;
mod update;
mod view;

pub use create::{CreateNote, CreateNoteOutput, CreateNoteParams, NewNote};
pub use delete::{DeleteNote, DeleteNoteOutput, DeleteNoteParams};
pub use list::{ListNotes, ListNotesOutput, ListNotesParams};
pub use show::{ShowNote, ShowNoteOutput, ShowNoteParams};
pub(crate) use spooled::spooled_note;
pub use update::{UpdateNote, UpdateNoteOutput, UpdateNoteParams};
pub use view::NoteView;
