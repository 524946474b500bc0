//! Periodic maintenance of long-running processes: `serve`, the worker and `mcp`.

use std::time::Duration;

use baton_app::maintenance::{Cleanup, CleanupOutput};
use baton_app::recall::index_all;
use baton_app::{App, operation};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

const INTERVAL: Duration = Duration::from_secs(60);
/// A cleanup is skipped if another process of the same store ran one within this time.
const SKIP_IF_RUN_WITHIN_SECONDS: u32 = 50;

/// Runs retention and removes unreferenced files once a minute, starting after `first_after`. Of all processes that
/// share a store, one runs each cleanup.
pub(crate) async fn clean_up_every_minute(app: App, first_after: Duration) {
    let mut minutes = interval_at(Instant::now() + first_after, INTERVAL);
    minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        minutes.tick().await;
        index_new_items(app.clone()).await;
        let mut params = Cleanup { unless_within_seconds: Some(SKIP_IF_RUN_WITHIN_SECONDS) };
        loop {
            let Ok(call) = app.own_call() else { break };
            let reply = app.call(operation::<Cleanup>(), call, json!(params)).await;
            let done: CleanupOutput = serde_json::from_str(&reply.body).unwrap_or_default();
            // A cleanup that ran and changed nothing is not logged.
            let nothing = CleanupOutput { ran: done.ran, ..CleanupOutput::default() };
            if done != nothing {
                tracing::info!(?done, "cleaned up");
            }
            if !done.more {
                break;
            }
            // Further batches of the same cleanup must not be skipped because of the first one.
            params = Cleanup::default();
        }
    }
}

/// Indexes items for search that no worker indexed, for example those of a store that was upgraded or restored.
async fn index_new_items(app: App) {
    let indexed = tokio::task::spawn_blocking(move || index_all(app.store(), |_| {})).await;
    match indexed {
        Ok(Ok(0)) => {}
        Ok(Ok(items)) => tracing::info!(items, "indexed items for search"),
        Ok(Err(fault)) => tracing::warn!(%fault, "cannot index items for search; retrying in a minute"),
        Err(error) => tracing::error!(%error, "indexing for search failed"),
    }
}
