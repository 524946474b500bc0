//! Notes in the outbox: recorded while the database could not be written, and not yet replayed.

use std::io;

use baton_core::{Actor, ErrorCode, Fault, IdempotencyKey, Note, NoteId, VentureScope};
use baton_store::{Outbox, OutboxEntry, SpooledWrite};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::create::{CreateNote, NewNote};
use crate::call::{Attachment, SpooledCall, SpooledNote};
use crate::checkpoint::outbox_fault;
use crate::context::Context;
use crate::operation::Operation;

/// Parameters of a note in the outbox.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spooled {
    note_id: NoteId,
    request: CreateNote,
}

/// Records a note in the outbox. Returns `None` if that is not possible: without an outbox or a repository, and for a
/// session that the credential may not be allowed to access, which cannot be checked without the database.
pub(super) fn spool(context: &Context<'_>, new: &NewNote) -> Option<Result<Note, Fault>> {
    let outbox = context.settings.outbox.as_ref()?;
    let session_id = new.params.session_id;
    if new.params.repo.is_none() || (session_id.is_some() && context.actor.ventures != VentureScope::All) {
        return None;
    }
    Some(spool_to(outbox, context, new))
}

fn spool_to(outbox: &Outbox, context: &Context<'_>, new: &NewNote) -> Result<Note, Fault> {
    let mut owner = new.owner_without_session(context)?;
    owner.session_id = new.params.session_id;
    let key = context.idempotency_key.map(ToString::to_string);
    if let Some(note_id) = key.as_deref().and_then(|key| spooled_id(outbox, context, key)) {
        return Ok(new.note(context, note_id, owner));
    }
    let note = new.note(context, context.note_id_without_store()?, owner);
    let spooled = Spooled { note_id: note.id, request: new.params.clone() };
    let write = SpooledWrite {
        operation: CreateNote::NAME.to_owned(),
        key,
        actor: Some(context.actor.key_id.clone()),
        at: note.created_at,
        target: outbox.target().cloned(),
        params: serde_json::to_value(spooled).map_err(|error| {
            Fault::new(ErrorCode::Internal, "cannot write the note to the outbox").caused_by(error)
        })?,
    };
    outbox
        .put(&note.id.to_string(), &write, || Ok(io::empty()))
        .map_err(|source| outbox_fault(outbox, source))?;
    tracing::warn!(note = %note.id, "the database could not be written; a note was saved to the outbox");
    Ok(note)
}

/// Finds the note of an earlier request with the same idempotency key and credential.
fn spooled_id(outbox: &Outbox, context: &Context<'_>, key: &str) -> Option<NoteId> {
    let is_same = |write: &SpooledWrite| {
        write.operation == CreateNote::NAME
            && write.key.as_deref() == Some(key)
            && write.actor.as_ref() == Some(&context.actor.key_id)
    };
    let found = outbox.entries().into_iter().find(|entry| is_same(&entry.write))?;
    serde_json::from_value::<Spooled>(found.write.params).ok().map(|spooled| spooled.note_id)
}

/// Reads a note from the outbox.
pub(crate) fn spooled_note(entry: &OutboxEntry) -> Result<SpooledCall, Fault> {
    let write = &entry.write;
    let unreadable = |error: &dyn std::fmt::Display| {
        Fault::new(ErrorCode::InvalidRequest, format!("cannot read a note in the outbox: {error}"))
    };
    let Spooled { note_id, request } =
        serde_json::from_value(write.params.clone()).map_err(|error| unreadable(&error))?;
    let mut params = serde_json::to_value(request).map_err(|error| unreadable(&error))?;
    if let Value::Object(fields) = &mut params {
        fields.retain(|_, value| !value.is_null());
    }
    let local = Actor::local();
    Ok(SpooledCall {
        params,
        attachment: Attachment::SpooledNote(SpooledNote { note_id, recorded_at: write.at }),
        idempotency_key: write.key.as_deref().map(IdempotencyKey::parse).transpose()?,
        actor: Actor { key_id: write.actor.clone().unwrap_or_else(|| local.key_id.clone()), ..local },
    })
}
