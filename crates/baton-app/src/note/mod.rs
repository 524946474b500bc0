//! Operations on notes, one file per verb.

mod create;
mod delete;
mod list;
mod show;
mod spooled;
mod update;
mod view;

pub use create::{CreateNote, CreateNoteOutput, NewNote};
pub use delete::{DeleteNote, DeleteNoteOutput};
pub use list::{ListNotes, ListNotesOutput};
pub use show::{ShowNote, ShowNoteOutput};
pub use update::{UpdateNote, UpdateNoteOutput};
pub use view::NoteView;
