//! `baton cleanup`: runs the cleanup that `baton serve`, `baton worker` and `baton mcp` run every minute.

use baton_app::maintenance::{Cleanup, CleanupOutput};
use baton_core::counted;

use crate::backend::Backend;
use crate::config::Config;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Progress};

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::local(config, "cleaning up")?;
    let mut total = CleanupOutput { ran: true, ..CleanupOutput::default() };
    let progress = Progress::new("cleaning up", Amount::Items("records"));
    loop {
        let done = backend.call::<Cleanup>(&Cleanup::default(), None)?;
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
        "abandoned {}; deleted {}, {}, the raw output of {}, {} and {}",
        counted(total.sessions_abandoned, "stale session"),
        counted(total.requests_deleted, "request log record"),
        counted(total.keys_deleted, "expired idempotency key"),
        counted(total.raw_outputs_dropped, "observation"),
        counted(total.checkpoints_dropped, "unused checkpoint"),
        counted(total.blobs_removed, "unreferenced file")
    );
    Answer::new(&total, text)
}
