//! Queue notifications through `LISTEN` and `NOTIFY`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::open::{connect, parse};
use super::sql::QUEUE_CHANNEL;
use crate::engine::{MIN_NOTIFY_INTERVAL, PostgresTimeouts, STOP_CHECK_INTERVAL};

/// Pause before reconnecting to a server that failed.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Calls `changed` when another process announces queue items, until `stop` is set.
pub(crate) fn watch(url: &str, timeouts: PostgresTimeouts, stop: &AtomicBool, changed: &dyn Fn()) {
    while !stop.load(Ordering::Relaxed) {
        if let Err(error) = listen(url, timeouts, stop, changed) {
            tracing::warn!(%error, "cannot listen for queue notifications; retrying");
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // Notifications may have been missed meanwhile.
        changed();
        std::thread::sleep(RECONNECT_INTERVAL);
    }
}

fn listen(
    url: &str,
    timeouts: PostgresTimeouts,
    stop: &AtomicBool,
    changed: &dyn Fn(),
) -> Result<(), crate::error::StoreError> {
    let mut client = connect(&parse(url, timeouts)?)?;
    client.batch_execute(&format!("LISTEN {QUEUE_CHANNEL}"))?;
    changed();
    while !stop.load(Ordering::Relaxed) {
        // Several notifications that arrive together are reported as one.
        if client.wait_for_notification(STOP_CHECK_INTERVAL)? {
            changed();
            std::thread::sleep(MIN_NOTIFY_INTERVAL);
        }
        if client.is_closed() {
            return Ok(());
        }
    }
    Ok(())
}
