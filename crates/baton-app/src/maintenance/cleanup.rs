//! `maintenance.cleanup`: removes stale sessions, old logs, expired keys and unused checkpoints.

use std::time::Duration;

use baton_core::observation::QueueStatus;

use crate::checkpoint::apply_retention;
use crate::prelude::*;

/// Maximum number of rows of each kind per run, which keeps transactions short.
const BATCH: u32 = 1_000;
/// Name of the job, so that one process runs it at a time.
const JOB: &str = "cleanup";

/// Minimum interval between two runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cleanup {
    /// Skip the run if any process cleaned up within this many seconds.
    #[schemars(range(min = 0, max = 86400))]
    pub unless_within_seconds: Option<u32>,
}

/// Result of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupOutput {
    /// True if this call performed the cleanup.
    pub ran: bool,
    /// Number of sessions marked as abandoned.
    pub sessions_abandoned: u64,
    /// Number of request log records deleted because of age or the size limit.
    pub requests_deleted: u64,
    /// Number of expired idempotency keys deleted.
    pub keys_deleted: u64,
    /// Number of completed queue items deleted with their raw output.
    pub raw_outputs_dropped: u64,
    /// Number of unnamed checkpoints deleted from inactive workflows.
    pub checkpoints_dropped: u64,
    /// Number of removed blob files that no checkpoint or captured tool use refers to.
    pub blobs_removed: u64,
    /// True if more items remain to be removed.
    pub more: bool,
}

impl Operation<OnStore> for Cleanup {
    const NAME: &'static str = "maintenance.cleanup";
    const SUMMARY: &'static str =
        "Remove stale sessions, old request logs, expired keys, old raw output and unused checkpoints.";
    const EFFECT: Effect = Effect::Write;
    const FREES_SPACE: bool = true;
    type Output = CleanupOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let now = context.now;
        tx.allow_long_statements()?;
        if let Some(seconds) = params.unless_within_seconds {
            let since = now.minus(Duration::from_secs(u64::from(seconds)));
            if !tx.claim_run(JOB, now, since)? {
                return Ok(CleanupOutput::default());
            }
        }
        let silent = tx.lock_stale_sessions(context.settings.liveness.abandon_before(now), BATCH)?;
        let sessions_abandoned = silent.len() as u64;
        for mut session in silent {
            session.abandon();
            tx.update_session(&session)?;
        }
        let oldest = now.minus(context.settings.request_retention);
        let old_requests = tx.delete_requests(oldest, BATCH)?;
        let keep = context.settings.request_log_max_records;
        let surplus_requests = tx.trim_requests(keep, BATCH)?;
        let keys_deleted = tx.delete_expired_keys(now, BATCH)?;
        let settled_before = now.minus(context.settings.observations.raw_retention);
        let purged = tx.purge_queue(QueueStatus::Done, settled_before, BATCH)?;
        let raw_outputs_dropped = context.effects.purged(purged);
        let checkpoints_dropped = apply_retention(context, tx)?;
        let blobs_removed = remove_orphans(context, tx)?;
        if let Some(outbox) = &context.settings.outbox {
            outbox.remove_stale_temporaries()?;
        }
        let full = u64::from(BATCH);
        Ok(CleanupOutput {
            ran: true,
            sessions_abandoned,
            requests_deleted: old_requests + surplus_requests,
            keys_deleted,
            raw_outputs_dropped,
            checkpoints_dropped,
            blobs_removed,
            more: sessions_abandoned == full
                || old_requests == full
                || surplus_requests == full
                || keys_deleted == full
                || raw_outputs_dropped == full
                || checkpoints_dropped > 0,
        })
    }
}

/// Removes blobs that no row refers to. They are at least an hour old, so removing them before the commit and on every
/// run is safe.
fn remove_orphans(context: &Context<'_>, tx: &mut dyn Tx) -> Result<u64, Fault> {
    let Some(blobs) = context.settings.checkpoints.storage.blobs() else { return Ok(0) };
    let old = blobs.old_names()?;
    let orphans = tx.orphans_among(&old)?;
    for orphan in &orphans {
        blobs.remove(orphan)?;
    }
    Ok(orphans.len() as u64)
}
