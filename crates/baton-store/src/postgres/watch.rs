//! Listening to what other processes tell through the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::open::{connect, parse};
use super::sql::{QUEUE_CHANNEL, store_error};
use crate::store::PostgresTimeouts;
use crate::watch::{NOTICE, REST};

/// How long it waits before it asks a server again that went away.
const AGAIN: Duration = Duration::from_secs(1);

/// Calls `changed` whenever somebody tells that there is something in the queue, until `over`.
pub(crate) fn watch(url: &str, timeouts: PostgresTimeouts, over: &AtomicBool, changed: &dyn Fn()) {
    while !over.load(Ordering::Relaxed) {
        if let Err(error) = listen(url, timeouts, over, changed) {
            tracing::warn!(%error, "the server can no longer be listened to; trying again");
        }
        if over.load(Ordering::Relaxed) {
            return;
        }
        // What was told meanwhile was not heard.
        changed();
        std::thread::sleep(AGAIN);
    }
}

fn listen(
    url: &str,
    timeouts: PostgresTimeouts,
    over: &AtomicBool,
    changed: &dyn Fn(),
) -> Result<(), crate::error::StoreError> {
    let mut client = connect(&parse(url, timeouts)?)?;
    client.batch_execute(&format!("LISTEN {QUEUE_CHANNEL}")).map_err(store_error)?;
    changed();
    while !over.load(Ordering::Relaxed) {
        // Several notifications that arrive together are reported as one.
        if client.wait_for_notification(NOTICE).map_err(store_error)? {
            changed();
            std::thread::sleep(REST);
        }
        if client.is_closed() {
            return Ok(());
        }
    }
    Ok(())
}
