//! `maintenance.cleanup`: sessions that fell silent are given up, old logs and expired keys go.

use std::time::Duration;

use baton_core::Fault;
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Context, Effect, Operation, store_fault};

/// How many rows of a kind one run touches at the most, so that no transaction holds others up for long.
const BATCH: u32 = 1_000;
const TURN: &str = "cleanup";

/// Cleans up.
#[derive(Debug)]
pub struct Cleanup;

/// When not to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CleanupParams {
    /// Do nothing if any process cleaned up within this many seconds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86400))]
    pub unless_within_seconds: Option<u32>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupOutput {
    /// Whether it was this call's turn.
    pub ran: bool,
    /// Sessions that were given up.
    pub sessions_abandoned: u64,
    /// Calls that left the request log.
    pub requests_deleted: u64,
    /// Idempotency keys that had expired.
    pub keys_deleted: u64,
    /// Whether there is more to do.
    pub more: bool,
}

impl Operation for Cleanup {
    const NAME: &'static str = "maintenance.cleanup";
    const SUMMARY: &'static str =
        "Give up sessions that fell silent, drop old request logs and expired keys.";
    const EFFECT: Effect = Effect::Write;
    type Params = CleanupParams;
    type Output = CleanupOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let now = context.now;
        if let Some(seconds) = params.unless_within_seconds {
            let since = now.minus(Duration::from_secs(u64::from(seconds)));
            if !tx.take_turn(TURN, now, since).map_err(store_fault)? {
                return Ok(CleanupOutput::default());
            }
        }
        let silent = tx
            .lock_silent_sessions(context.settings.liveness.abandon_before(now), BATCH)
            .map_err(store_fault)?;
        let sessions_abandoned = silent.len() as u64;
        for mut session in silent {
            session.abandon();
            tx.update_session(&session).map_err(store_fault)?;
        }
        let oldest = now.minus(context.settings.request_retention);
        let requests_deleted = tx.delete_requests(oldest, BATCH).map_err(store_fault)?;
        let keys_deleted = tx.delete_expired_keys(now, BATCH).map_err(store_fault)?;
        let full = u64::from(BATCH);
        Ok(CleanupOutput {
            ran: true,
            sessions_abandoned,
            requests_deleted,
            keys_deleted,
            more: sessions_abandoned == full || requests_deleted == full || keys_deleted == full,
        })
    }
}
