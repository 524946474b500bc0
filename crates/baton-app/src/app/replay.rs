//! Replays the writes in the outbox.

use std::sync::Arc;
use std::time::Duration;

use baton_core::{Actor, ErrorCode, Fault, IdempotencyKey, ReplayFirst};
use baton_store::{Outbox, OutboxEntry, ReplayLimits, ReplayResult, SpooledWrite};
use serde_json::Value;

use super::App;
use crate::any_operation::AnyOperation;
use crate::call::{Attachment, Call, Reply};
use crate::catalog::find;
use crate::threads::on_thread;

/// Time limits for replaying the outbox before a call that must not run before it.
const REPLAY_LIMITS: ReplayLimits =
    ReplayLimits { lock: Duration::from_secs(10), total: Duration::from_secs(20) };
/// Time limits for replaying the outbox before another call, which may be that of a hook.
const BRIEF_REPLAY_LIMITS: ReplayLimits =
    ReplayLimits { lock: Duration::from_millis(100), total: Duration::from_secs(2) };

/// Whether a call may write. Writes must not overtake those in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteGate {
    Open,
    /// Earlier writes are still in the outbox, so the store counts as unavailable.
    Blocked,
}

impl App {
    /// Replays the outbox before a call that follows or shows the writes in it.
    pub(super) async fn replay_before_call(
        &self,
        operation: &AnyOperation,
        call: &Call,
        params: &Value,
    ) -> WriteGate {
        let (must_wait, limits) = match operation.replay_first {
            _ if call.is_replay() => return WriteGate::Open,
            ReplayFirst::Always => (true, REPLAY_LIMITS),
            ReplayFirst::IfPossible(applies) if applies(params) => (false, BRIEF_REPLAY_LIMITS),
            ReplayFirst::IfPossible(_) | ReplayFirst::Never => return WriteGate::Open,
        };
        let outbox = self.settings().outbox.clone().filter(|outbox| !outbox.is_empty());
        let Some(outbox) = outbox else { return WriteGate::Open };
        let app = self.clone();
        // Without a thread nothing is replayed, and writes must stay behind the outbox.
        let gate =
            on_thread(move || app.replay_blocking(&outbox, limits)).await.unwrap_or(WriteGate::Blocked);
        if must_wait { gate } else { WriteGate::Open }
    }

    /// Replays the writes in the outbox and returns how many are left. Not for use inside an async runtime.
    pub fn replay_outbox(&self) -> usize {
        let Some(outbox) = &self.settings().outbox else { return 0 };
        if !outbox.is_empty() {
            self.replay_blocking(outbox, REPLAY_LIMITS);
        }
        outbox.count()
    }

    /// Returns the number of writes in the outbox.
    pub fn spooled_writes(&self) -> usize {
        self.settings().outbox.as_ref().map_or(0, Outbox::count)
    }

    /// Calls the operation of a write in the outbox.
    fn replay_write(&self, entry: &OutboxEntry) -> Result<Reply, Fault> {
        let SpooledWrite { operation, key, actor, params, .. } = &entry.write;
        let replayable = find(operation).filter(|operation| operation.read_spooled.is_some());
        // An internal error, so that the write stays in the outbox for a newer version.
        let operation = replayable.ok_or_else(|| {
            let message = format!("cannot replay a write: unknown operation `{operation}`");
            Fault::new(ErrorCode::Internal, message)
        })?;
        let local = Actor::local();
        let call = Call {
            actor: Actor { key_id: actor.clone().unwrap_or_else(|| local.key_id.clone()), ..local },
            idempotency_key: key.as_deref().map(IdempotencyKey::parse).transpose()?,
            attachment: Some(Attachment::Spooled(Arc::new(entry.clone()))),
            ..self.own_call()?
        };
        Ok(self.call_blocking(operation, call, params.clone()))
    }

    fn replay_blocking(&self, outbox: &Outbox, limits: ReplayLimits) -> WriteGate {
        let mut is_disk_full = false;
        let replay = outbox.replay(limits, |entry, _| {
            let (code, message) = match self.replay_write(entry) {
                Ok(reply) if reply.error.is_none() => {
                    tracing::info!(
                        file = entry.name,
                        operation = entry.write.operation,
                        "replayed a write from the outbox"
                    );
                    return ReplayResult::Stored;
                }
                Ok(reply) => {
                    is_disk_full = reply.is_disk_full();
                    (reply.error.unwrap_or(ErrorCode::Internal), reply.body)
                }
                Err(fault) => (fault.code, fault.message),
            };
            replay_result(code, message)
        });
        for problem in &replay.problems {
            tracing::error!("{problem}");
        }
        // On a full disk a call may free space for itself.
        if replay.is_blocked && !is_disk_full { WriteGate::Blocked } else { WriteGate::Open }
    }
}

/// Returns whether a write that could not be replayed is retried or set aside. Other errors than those of the write itself
/// may have their cause elsewhere: a store that is full, a server that is not the right one.
pub fn replay_result(code: ErrorCode, message: String) -> ReplayResult {
    match code {
        ErrorCode::StoreUnavailable | ErrorCode::Overloaded => ReplayResult::Unavailable,
        ErrorCode::InvalidJson
        | ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedSchemaVersion
        | ErrorCode::MissingIdempotencyKey
        | ErrorCode::PayloadTooLarge
        | ErrorCode::SecretFound
        | ErrorCode::SessionEnded
        | ErrorCode::HandoffConflict
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::TaskExists
        | ErrorCode::TaskConflict => ReplayResult::Rejected(message),
        _ => ReplayResult::Failed(message),
    }
}
