//! `baton cleanup`: runs the cleanup that `baton serve`, `baton worker` and `baton mcp` run every minute.

use baton_app::maintenance::{Cleanup, CleanupOutput};
use serde_json::json;

use crate::backend::Backend;
use crate::config::Config;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Progress};

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::local(config, "cleaning up")?;
    let mut total = CleanupOutput { ran: true, ..CleanupOutput::default() };
    let progress = Progress::new("cleaning up", Amount::Items("records"));
    loop {
        let (done, _) = backend.call::<Cleanup>(&Cleanup::default(), None)?;
        total.sessions_abandoned += done.sessions_abandoned;
        total.requests_deleted += done.requests_deleted;
        total.keys_deleted += done.keys_deleted;
        total.raw_outputs_dropped += done.raw_outputs_dropped;
        total.checkpoints_dropped += done.checkpoints_dropped;
        total.blobs_removed += done.blobs_removed;
        progress.add(
            done.sessions_abandoned
                + done.requests_deleted
                + done.keys_deleted
                + done.raw_outputs_dropped
                + done.checkpoints_dropped
                + done.blobs_removed,
        );
        if !done.more {
            break;
        }
    }
    drop(progress);
    let text = format!(
        "abandoned {} stale sessions; deleted {} request log records, {} expired idempotency keys, the raw output of \
         {} observations, {} unused checkpoints and {} unreferenced files",
        total.sessions_abandoned,
        total.requests_deleted,
        total.keys_deleted,
        total.raw_outputs_dropped,
        total.checkpoints_dropped,
        total.blobs_removed
    );
    Ok(Answer::new(json!(total), text))
}
