//! Notes in the outbox: recorded while the database could not be written, and not yet replayed.

use baton_core::Note;
use baton_store::{Outbox, OutboxEntry};

use super::create::CreateNote;
use crate::context::Context;
use crate::operation::{Operation, Spooling};

/// Returns the notes in the outbox that the caller may access, oldest first. Unreadable ones are logged and skipped.
pub(super) fn spooled_notes(context: &Context<'_>) -> Vec<Note> {
    let mut entries = context.settings.outbox.as_ref().map(Outbox::entries).unwrap_or_default();
    entries.retain(|entry| entry.write.operation == CreateNote::NAME);
    let read = |entry: OutboxEntry| {
        let new = CreateNote::read_spooled(context, &entry);
        let new = new.inspect_err(
            |fault| tracing::error!(name = entry.name, %fault, "cannot read a note in the outbox"),
        );
        // A note of a venture that the caller may not access is an error here.
        new.ok()?.note_without_store(context).ok()
    };
    entries.into_iter().filter_map(read).collect()
}
