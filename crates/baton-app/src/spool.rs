//! Saves writes of operations to the outbox.

use std::io;

use baton_core::{ErrorCode, Fault, require_same_request};
use baton_store::{Outbox, OutboxEntry, SpooledWrite, StoreError};
use serde::Serialize;

use crate::context::Context;

/// A write of an operation, for the outbox.
pub(crate) struct NewWrite<'a, P> {
    /// Wire name of the operation.
    pub(crate) operation: &'static str,
    /// Id of the new item.
    pub(crate) id: String,
    pub(crate) params: P,
    /// Body of the file.
    pub(crate) body: &'a [u8],
}

/// Saves a write to the outbox.
pub(crate) fn spool<P: Serialize>(
    context: &Context<'_>,
    outbox: &Outbox,
    new: NewWrite<'_, P>,
) -> Result<(), Fault> {
    let NewWrite { operation, id, params, body } = new;
    let params = serde_json::to_value(params).map_err(|error| {
        Fault::new(ErrorCode::Internal, "cannot serialize a write for the outbox").caused_by(error)
    })?;
    let write = SpooledWrite {
        operation: operation.to_owned(),
        key: context.key.map(|(scope, _)| scope.key.to_string()),
        request_hash: context.key.map(|(_, hash)| *hash),
        actor: Some(context.actor.key_id.clone()),
        at: context.now,
        target: outbox.target().cloned(),
        params,
    };
    outbox.put(&id, &write, || Ok(body)).map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Folder { path: outbox.folder().to_owned(), source },
    })?;
    tracing::warn!(operation, id, "the database could not be written; a write was saved to the outbox");
    Ok(())
}

/// Finds the write of an earlier request with the same idempotency key.
///
/// # Errors
///
/// Fails if that was another request.
pub(crate) fn spooled_earlier(context: &Context<'_>, outbox: &Outbox) -> Result<Option<OutboxEntry>, Fault> {
    let Some((scope, request_hash)) = context.key else { return Ok(None) };
    for entry in outbox.entries() {
        let SpooledWrite { operation, key, request_hash: recorded, actor, .. } = &entry.write;
        let has_same_key = operation == scope.operation
            && key.as_deref() == Some(scope.key.as_str())
            && actor.as_ref() == Some(&scope.actor_key_id);
        if let Some(recorded) = recorded.filter(|_| has_same_key) {
            require_same_request(recorded, *request_hash)?;
            return Ok(Some(entry));
        }
    }
    Ok(None)
}
